// Fills a forwarding table from a configuration. Control thread.
#include "config/inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add(struct fib *fib, const struct wire_prefix *prefix, uint8_t kind, uint16_t iface,
	struct error *error)
{
	struct fib_change change = {
		.op = FIB_REPLACE,
		.route = {.prefix = *prefix, .hop = {.iface = iface, .kind = kind}},
	};

	return fib_change(fib, &change, 1, NULL, error);
}

// Adds the connected prefix, its network address (in IPv6 the subnet-router anycast address: RFC
// 4291, 2.6.1) and broadcast address, then our own address, which takes precedence. Link-local
// packets are not forwarded (RFC 3927, 7; RFC 4291, 2.5.6); the table already ensures this.
static int fill_own(const struct own_address *own, struct fib *fib, struct error *error)
{
	const uint8_t host_len = own->addr.family == 4 ? 32 : 128;
	struct wire_prefix host = {own->addr, host_len};
	int err = 0;

	if (wire_addr_is_link_local(&own->addr))
		return add(fib, &host, FIB_LOCAL, IFACE_NONE, error);
	if (own->prefix.len < host_len)
		err = add(fib, &own->prefix, FIB_CONNECTED, own->port, error);
	if (!err && own->prefix.len <= host_len - 2) {
		struct wire_prefix first = {own->prefix.addr, host_len},
				   last = {broadcast_of(&own->prefix), host_len};

		err = add(fib, &first, FIB_LOCAL, IFACE_NONE, error);
		if (!err && own->addr.family == 4)
			err = add(fib, &last, FIB_LOCAL, IFACE_NONE, error);
	}
	return err ? err : add(fib, &host, FIB_LOCAL, IFACE_NONE, error);
}

static int fill_ports(const struct config *config, const struct wire_mac macs[], struct fib *fib,
	struct error *error)
{
	for (unsigned i = 0; i < config->ports.n_ports; i++) {
		const struct port_settings *port = &config->ports.ports[i];
		struct iface reported = {.port = i,
			.mac = macs[i],
			.peer = port->peer,
			.has_peer = port->has_peer,
			.mtu = port->mtu};
		int err = fib_iface_set(fib, i, &reported);

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
	return err ? err : fill_routes(config, fib, error);
}
