// See lists.h. Tests only.
#include "datapath/lists.h"

#include <rte_eal.h>
#include <stdio.h>
#include <unistd.h>

enum { N_IFACES = 64 };

struct acl_table *lists, *filters;

// Interfaces are named by their index.
static const char *iface_name(void *ctx, unsigned iface)
{
	static char name[N_IFACES][4];

	snprintf(name[iface], sizeof(name[iface]), "%u", iface);
	return name[iface];
}

int lists_open(void **state, uint64_t hz)
{
	static char prefix[64];
	static char *args[] = {"acl_test", "--no-huge", "-m64", "--no-pci", "--no-telemetry",
		"--no-shconf", "--log-level=error", prefix};
	const struct acl_settings settings = {.n_workers = 1,
		.iface_name = iface_name,
		.n_ifaces = N_IFACES,
		.n_ports = 4,
		.hz = hz};
	const struct fib_hop unresolved = {.kind = FIB_CONNECTED, .iface = PLAIN_OUT};
	const struct fib_hop local = {.kind = FIB_LOCAL, .iface = IFACE_NONE};

	snprintf(prefix, sizeof(prefix), "--file-prefix=datapath-acl-%d", getpid());
	if (rte_eal_init(ARRAY_LEN(args), args) < 0)
		return -1;
	vlans_open(state);
	fake_route(0, "172.20.0.0/16", &local);
	fake_route(0, "172.21.0.0/16", &unresolved);
	return acl_open(&lists, &settings, NULL) || acl_open(&filters, &settings, NULL);
}

int lists_close(void **state)
{
	acl_close(lists);
	acl_close(filters);
	return fake_close(state);
}

void lists_use(struct acl_table *table, unsigned iface, enum acl_direction direction,
	bool denies_rest, const char *const text[])
{
	struct acl_rule rule[LISTS_MAX_RULES];
	struct acl_source source = {"list", rule, 0, denies_rest};
	struct acl_use use = {"", "list", direction};
	struct error error = {""};

	snprintf(use.iface, sizeof(use.iface), "%u", iface);
	for (; source.n < LISTS_MAX_RULES && text[source.n]; source.n++)
		if (acl_rule_parse(&rule[source.n], text[source.n], &error))
			fail_msg("%s: %s", text[source.n], error.text);
	if (acl_apply(table, &(struct acl_set){&source, &use, 1, 1}, &error))
		fail_msg("%s", error.text);
}
