// Fills a forwarding table from a configuration. Control thread.
#include "config/inside.h"

#include "fib/fib_fast.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANGES_OF_ADDRESS = 4 };

static struct fib_change route_to(const struct wire_prefix *prefix, uint8_t kind, uint16_t iface)
{
	return (struct fib_change){
		.op = FIB_REPLACE,
		.route = {.prefix = *prefix, .hop = {.iface = iface, .kind = kind}},
	};
}

// Lists the connected prefix, its network address (in IPv6 the subnet-router anycast address: RFC
// 4291, 2.6.1) and broadcast address, then our own address, which takes precedence. Link-local
// packets are not forwarded (RFC 3927, 7; RFC 4291, 2.5.6); the table already ensures this.
static unsigned list_own(const struct own_address *own, struct fib_change out[CHANGES_OF_ADDRESS])
{
	const uint8_t host_len = own->addr.family == 4 ? 32 : 128;
	bool is_link_local = wire_addr_is_link_local(&own->addr);
	struct wire_prefix host = {own->addr, host_len};
	unsigned n = 0;

	if (!is_link_local && own->prefix.len < host_len)
		out[n++] = route_to(&own->prefix, FIB_CONNECTED, own->port);
	if (!is_link_local && own->prefix.len <= host_len - 2) {
		struct wire_prefix first = {own->prefix.addr, host_len},
				   last = {broadcast_of(&own->prefix), host_len};

		out[n++] = route_to(&first, FIB_LOCAL, IFACE_NONE);
		if (own->addr.family == 4)
			out[n++] = route_to(&last, FIB_LOCAL, IFACE_NONE);
	}
	out[n++] = route_to(&host, FIB_LOCAL, IFACE_NONE);
	return n;
}

static int fill_own(const struct own_address *own, struct fib *fib, struct error *error)
{
	struct fib_change change[CHANGES_OF_ADDRESS];
	unsigned n = list_own(own, change);
	int err = 0;

	for (unsigned i = 0; i < n && !err; i++)
		err = fib_change(fib, &change[i], 1, NULL, error);
	return err;
}

static int fill_port(const struct port_settings *port, unsigned i, const struct wire_mac *mac,
	struct fib *fib)
{
	struct iface reported = {.port = i,
		.mac = *mac,
		.peer = port->peer,
		.has_peer = port->has_peer,
		.mtu = port->mtu};

	return fib_iface_set(fib, i, &reported);
}

static int fill_ports(const struct config *config, const struct wire_mac macs[], struct fib *fib,
	struct error *error)
{
	const struct port_table_settings *ports = &config->ports;

	for (unsigned i = port_next(ports, 0); i < ports->n_ports; i = port_next(ports, i + 1)) {
		const struct port_settings *port = &ports->ports[i];
		int err = fill_port(port, i, &macs[i], fib);

		if (err)
			return error_set(error, err, "%s:%d: cannot add port %s to the table: %s",
				config->path, port->line, port->name, strerror(-err));
	}
	return 0;
}

static int fill_addresses(const struct config *config, struct fib *fib, struct error *error)
{
	struct error inner;

	for (unsigned i = 0; i < config->n_own; i++) {
		int err = fill_own(&config->own[i], fib, &inner);

		if (err)
			return error_set(error, err, "%s:%d: %s", config->path, config->own[i].line,
				inner.text);
	}
	return 0;
}

static int fill_neighbours(const struct config *config, struct fib *fib, struct error *error)
{
	const struct route_list *routes = &config->routes;
	struct error inner;

	for (size_t i = 0; i < routes->n_slots; i++) {
		const struct neighbour *neighbour = &routes->slot[i];
		int err = 0;

		if (neighbour->addr.family)
			err = fib_neighbour_set(fib, neighbour->port, &neighbour->addr,
				&neighbour->mac, &inner);
		if (err)
			return error_set(error, err, "%s:%u: %s",
				routes->file[neighbour->spot.file], neighbour->spot.line,
				inner.text);
	}
	return 0;
}

static bool same_prefix(const struct wire_prefix *a, const struct wire_prefix *b)
{
	return a->len == b->len && wire_addr_equal(&a->addr, &b->addr);
}

// Finds what already uses the prefix of route `bad`: an earlier line, or one of our addresses.
static int name_first(const struct config *config, size_t bad, struct error *error)
{
	const struct route_list *routes = &config->routes;
	const struct wire_prefix *prefix = &routes->change[bad].route.prefix;
	const char *file = routes->file[routes->spot[bad].file];
	uint32_t line = routes->spot[bad].line;
	char text[WIRE_PREFIX_TEXT];

	wire_prefix_print(prefix, text);
	for (size_t i = 0; i < bad; i++)
		if (same_prefix(&routes->change[i].route.prefix, prefix))
			return error_set(error, -EEXIST,
				"%s:%u: duplicate route to %s (first in %s:%u); remove one", file,
				line, text, routes->file[routes->spot[i].file],
				routes->spot[i].line);
	for (unsigned i = 0; i < config->n_own; i++)
		if (same_prefix(&config->own[i].prefix, prefix) ||
			wire_addr_equal(&config->own[i].addr, &prefix->addr))
			return error_set(error, -EEXIST,
				"%s:%u: route to %s, which is already connected by the port's "
				"address in %s:%d; remove one",
				file, line, text, config->path, config->own[i].line);
	return error_set(error, -EEXIST, "%s:%u: duplicate route to %s; remove it", file, line,
		text);
}

// The changes with groups allocated in the table. Owner: caller, free.
static int with_groups(const struct route_list *routes, struct fib *fib, struct fib_change **out,
	size_t *bad, struct error *error)
{
	struct fib_change *changes = malloc(routes->n * sizeof(*changes));

	if (!changes)
		return error_set(error, -ENOMEM, "not enough memory for the routes; remove some");
	memcpy(changes, routes->change, routes->n * sizeof(*changes));
	for (size_t i = 0; i < routes->n; i++) {
		struct fib_hop *hop = &changes[i].route.hop;
		const struct fib_member *members;

		if (hop->kind != FIB_GROUP)
			continue;
		unsigned n = routes_members(routes, hop, &members);
		int err = fib_group(fib, members, n, hop, error);
		if (err) {
			*bad = i;
			free(changes);
			return err;
		}
	}
	*out = changes;
	return 0;
}

// Applies everything in one batch, so that the table can process it in order. *bad: index of the
// rejected change.
static int change_all(const struct route_list *routes, struct fib *fib, size_t *bad,
	struct error *error)
{
	struct fib_change *own = NULL;
	int err = routes->has_groups ? with_groups(routes, fib, &own, bad, error) : 0;

	if (!err)
		err = fib_change(fib, own ? own : routes->change, routes->n, bad, error);
	free(own);
	return err;
}

static int fill_routes(const struct config *config, struct fib *fib, struct error *error)
{
	const struct route_list *routes = &config->routes;
	struct error inner;
	size_t bad = routes->n;
	int err = routes->n ? change_all(routes, fib, &bad, &inner) : 0;

	if (!err)
		return 0;
	if (bad >= routes->n)
		return error_set(error, err, "%s: %s", config->path, inner.text);
	if (err == -EEXIST)
		return name_first(config, bad, error);
	return error_set(error, err, "%s:%u: %s", routes->file[routes->spot[bad].file],
		routes->spot[bad].line, inner.text);
}

// The first entry of the label, in `found` if there is one in the table.
static const struct label_entry *first_of(const struct route_list *routes, const struct fib *fib,
	uint32_t label)
{
	struct fib_label found;

	if (!fib_label_next(fib, label, &found) || found.label != label)
		return NULL;
	for (size_t i = 0; i < routes->n_labels; i++)
		if (routes->label[i].label.label == label)
			return &routes->label[i];
	return NULL;
}

static int fill_label(const struct route_list *routes, const struct label_entry *entry,
	struct fib *fib, struct error *error)
{
	const struct label_entry *first = first_of(routes, fib, entry->label.label);
	struct fib_label label = entry->label;
	const struct fib_member *members;
	int err = 0;

	if (first)
		return error_set(error, -EEXIST, "duplicate label %u (first in %s:%u); remove one",
			label.label, routes->file[first->spot.file], first->spot.line);
	if (label.hop.kind == FIB_GROUP) {
		const unsigned n = routes_members(routes, &label.hop, &members);

		err = fib_group(fib, members, n, &label.hop, error);
	}
	return err ? err : fib_label_set(fib, &label, error);
}

// With labels, those of explicit null are known, too (RFC 3032, 2.1).
static int fill_explicit_null(struct fib *fib, struct error *error)
{
	enum { EXPLICIT_NULL4 = 0, EXPLICIT_NULL6 = 2 };
	struct fib_label null = {.label = EXPLICIT_NULL4, .op = FIB_LABEL_LOOKUP};
	int err = fib_label_set(fib, &null, error);

	null.label = EXPLICIT_NULL6;
	return err ? err : fib_label_set(fib, &null, error);
}

static int fill_labels(const struct config *config, struct fib *fib, struct error *error)
{
	const struct route_list *routes = &config->routes;
	struct error inner;

	for (size_t i = 0; i < routes->n_labels; i++) {
		const struct label_entry *entry = &routes->label[i];
		int err = fill_label(routes, entry, fib, &inner);

		if (err)
			return error_set(error, err, "%s:%u: %s", routes->file[entry->spot.file],
				entry->spot.line, inner.text);
	}
	return routes->n_labels ? fill_explicit_null(fib, error) : 0;
}

int config_fill(const struct config *config, const struct wire_mac macs[], struct fib *fib,
	struct error *error)
{
	int err = fill_ports(config, macs, fib, error);

	if (!err && config->taps.is_on)
		return 0;
	if (!err)
		err = fill_addresses(config, fib, error);
	if (!err)
		err = fill_neighbours(config, fib, error);
	if (!err)
		err = fill_routes(config, fib, error);
	if (!err)
		err = tunnels_fill(config, fib, error);
	if (!err)
		err = vxlans_fill(config, fib, error);
	return err ? err : fill_labels(config, fib, error);
}

// Link-local addresses may be those of several ports.
static bool is_shared(const struct config *config, const struct own_address *own)
{
	for (unsigned i = 0; i < config->n_own; i++)
		if (config->own[i].port != own->port &&
			wire_addr_equal(&config->own[i].addr, &own->addr))
			return true;
	return false;
}

static bool has_prefix(const struct fib_change changes[], size_t n,
	const struct wire_prefix *prefix)
{
	for (size_t i = 0; i < n; i++)
		if (same_prefix(&changes[i].route.prefix, prefix))
			return true;
	return false;
}

// The routes of a port's addresses, each prefix once; the last one given for a prefix counts.
static size_t list_port(const struct config *config, unsigned port, uint8_t op,
	struct fib_change out[])
{
	size_t n = 0;

	for (unsigned i = config->n_own; i-- > 0;) {
		struct fib_change own[CHANGES_OF_ADDRESS];

		if (config->own[i].port != port || is_shared(config, &config->own[i]))
			continue;
		for (unsigned k = list_own(&config->own[i], own); k-- > 0;) {
			if (has_prefix(out, n, &own[k].route.prefix))
				continue;
			out[n] = own[k];
			out[n++].op = op;
		}
	}
	return n;
}

int config_fill_port(const struct config *config, unsigned port, const struct wire_mac *mac,
	struct fib *fib, struct error *error)
{
	const struct port_settings *settings = &config->ports.ports[port];
	struct fib_change *changes =
		malloc((CHANGES_OF_ADDRESS * config->n_own + 1) * sizeof(*changes));
	struct error inner;

	if (!changes)
		return error_set(error, -ENOMEM, "not enough memory for the port's addresses");
	int err = fill_port(settings, port, mac, fib);
	if (err) {
		free(changes);
		return error_set(error, err, "cannot add port %s to the table: %s", settings->name,
			strerror(-err));
	}
	size_t n = list_port(config, port, FIB_ADD, changes);

	err = fib_change(fib, changes, n, NULL, &inner);
	free(changes);
	if (!err)
		return 0;
	fib_iface_delete(fib, port);
	return error_set(error, err, "cannot add the addresses of port %s: %s", settings->name,
		inner.text);
}

// A route that was deleted or replaced in the meantime is no error.
void config_clear_port(const struct config *config, unsigned port, struct fib *fib)
{
	struct fib_change *changes =
		malloc((CHANGES_OF_ADDRESS * config->n_own + 1) * sizeof(*changes));
	size_t n = changes ? list_port(config, port, FIB_DELETE, changes) : 0;
	struct error unreported;

	for (size_t i = 0; i < n; i++)
		fib_change(fib, &changes[i], 1, NULL, &unreported);
	free(changes);
	fib_iface_delete(fib, port);
}
