// Arbitrary bytes as a route file and as neighbours: accepted entries have a prefix without host
// bits and an existing port.
#include "config/inside.h"

#include <stdlib.h>
#include <string.h>

enum { N_PORTS = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_hop(const struct fib_hop *hop)
{
	if (hop->iface >= N_PORTS && hop->iface < IFACE_MAX_PORTS)
		abort();
	if (hop->n_labels > FIB_MAX_PUSHED)
		abort();
	for (unsigned i = 0; i < hop->n_labels; i++)
		if (hop->label[i] > FIB_MAX_LABEL)
			abort();
}

static void check(const struct fib_route *route)
{
	struct wire_prefix masked = route->prefix;

	wire_prefix_mask(&masked);
	if (!wire_addr_equal(&masked.addr, &route->prefix.addr))
		abort();
	if (route->prefix.len > (route->prefix.addr.family == 4 ? 32 : 128))
		abort();
	check_hop(&route->hop);
}

static void check_label(const struct fib_label *label)
{
	if (label->label < FIB_FREE_LABEL || label->label > FIB_MAX_LABEL)
		abort();
	check_hop(&label->hop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static char name[] = "f";
	static struct config config = {
		.ports.n_ports = N_PORTS,
		.ports.ports = {{.name = "left"}, {.name = "right", .has_peer = true},
			{.name = "a.b"}},
	};
	struct neighbour neighbour;
	struct error error = {""};

	config.routes.file[0] = strdup(name);
	config.routes.n_files = 1;
	if (routes_add_lines(&config, 0, (const char *)data, n, &error) &&
		strncmp(error.text, "f:", 2))
		abort();
	for (size_t i = 0; i < config.routes.n; i++)
		check(&config.routes.change[i].route);
	for (size_t i = 0; i < config.routes.n_labels; i++)
		check_label(&config.routes.label[i].label);
	for (size_t i = 0; i < config.routes.n_members; i++)
		check_hop(&config.routes.member[i].hop);
	neighbour_read(&config.ports, (const char *)data, n, &neighbour, &error);
	routes_free(&config.routes);
	free(config.tunnels.tunnel);
	config.tunnels = (struct config_tunnels){0};
	return 0;
}
