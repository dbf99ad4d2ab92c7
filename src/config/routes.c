// The list of all configured routes and neighbours, with the position of each. Control thread.
#include "base/vector.h"
#include "config/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 64 };

static const char *file_of(const struct config *config, struct spot spot)
{
	return config->routes.file[spot.file];
}

static int no_memory(struct error *error)
{
	return error_set(error, -ENOMEM, "not enough memory for the routes; remove some");
}

// Space for one more route.
static int reserve(struct route_list *routes)
{
	size_t wanted = routes->n + 1, capacity = routes->capacity;

	if (vector_reserve(&routes->change, &capacity, wanted, sizeof(*routes->change)))
		return -ENOMEM;
	return vector_reserve(&routes->spot, &routes->capacity, wanted, sizeof(*routes->spot));
}

// Our own address cannot be a gateway.
static int check_other(const struct config *config, struct spot spot, const struct wire_addr *addr,
	struct error *error)
{
	char text[WIRE_ADDR_TEXT];

	if (!addr->family || !own_has(config, addr))
		return 0;
	return error_set(error, -EINVAL,
		"%s:%u: %s is an address of the router itself; expected that of a neighbour",
		file_of(config, spot), spot.line, wire_addr_print(addr, text));
}

// Where a group's members are in the list; stored in its hop until the table is filled.
struct members_at {
	uint32_t first, n;
};

static int add_group(struct route_list *routes, const struct route_line *line, struct fib_hop *hop)
{
	struct members_at at = {routes->n_members, line->n_members};
	size_t wanted = routes->n_members + line->n_members;

	if (vector_reserve(&routes->member, &routes->member_capacity, wanted,
		    sizeof(*routes->member)))
		return -ENOMEM;
	for (unsigned i = 0; i < line->n_members; i++)
		routes->member[routes->n_members++] =
			(struct fib_member){line->member[i].hop, line->member[i].weight};
	routes->has_groups = true;
	memcpy(hop->via.bytes, &at, sizeof(at));
	return 0;
}

unsigned routes_members(const struct route_list *routes, const struct fib_hop *hop,
	const struct fib_member **out)
{
	struct members_at at;

	memcpy(&at, hop->via.bytes, sizeof(at));
	*out = &routes->member[at.first];
	return at.n;
}

static int check_members(struct config *config, struct spot spot, const struct route_line *line,
	struct error *error)
{
	for (unsigned i = 0; i < line->n_members; i++) {
		const struct route_member *member = &line->member[i];
		const struct fib_hop *hop = &member->hop;
		int err = check_other(config, spot, &hop->via, error);

		if (!err && member->has_mac)
			err = routes_add_neighbour(config,
				&(struct neighbour){hop->via, member->mac, hop->iface, spot},
				error);
		if (err)
			return err;
	}
	return 0;
}

// Takes over what was read of a label.
static int add_label(struct route_list *routes, struct spot spot, const struct route_line *line)
{
	struct label_entry entry = {.label = line->label, .spot = spot};

	if (vector_reserve(&routes->label, &routes->label_capacity, routes->n_labels + 1,
		    sizeof(*routes->label)))
		return -ENOMEM;
	entry.label.hop = line->route.hop;
	if (entry.label.hop.kind == FIB_GROUP && add_group(routes, line, &entry.label.hop))
		return -ENOMEM;
	routes->label[routes->n_labels++] = entry;
	return 0;
}

int routes_add(struct config *config, struct spot spot, const char *text, size_t n,
	struct error *error)
{
	struct route_list *routes = &config->routes;
	struct route_line line;
	struct error inner;
	int err = route_read(&config->ports, text, n, &line, &inner);

	if (err > 0)
		return 0;
	if (err)
		return error_set(error, err, "%s:%u: %s", file_of(config, spot), spot.line,
			inner.text);
	err = check_members(config, spot, &line, error);
	if (err)
		return err;
	if (line.has_tunnel) {
		err = tunnels_add(config, spot, &line.tunnel, &line.route.hop.iface, error);
		if (err)
			return err;
	}
	if (line.is_label)
		return add_label(routes, spot, &line) ? no_memory(error) : 0;
	if (reserve(routes))
		return no_memory(error);
	if (line.route.hop.kind == FIB_GROUP && add_group(routes, &line, &line.route.hop))
		return no_memory(error);
	routes->spot[routes->n] = spot;
	routes->change[routes->n++] = (struct fib_change){.op = FIB_ADD, .route = line.route};
	return 0;
}

int routes_add_lines(struct config *config, unsigned file, const char *bytes, size_t n,
	struct error *error)
{
	static const char mark[] = {'\xef', '\xbb', '\xbf'}; // UTF-8 byte order mark, written by
	                                                     // some editors
	const char *end = bytes + n;
	struct spot spot = {.file = file};

	if (n >= sizeof(mark) && !memcmp(bytes, mark, sizeof(mark)))
		bytes += sizeof(mark);
	while (bytes < end) {
		const char *stop = memchr(bytes, '\n', end - bytes);

		if (!stop)
			stop = end;
		spot.line++;
		int err = routes_add(config, spot, bytes, stop - bytes, error);
		if (err)
			return err;
		bytes = stop + 1;
	}
	return 0;
}

static size_t hash(const struct neighbour *neighbour)
{
	uint64_t words[2];

	memcpy(words, neighbour->addr.bytes, sizeof(words));
	uint64_t mixed = (words[0] ^ (words[1] + neighbour->port) * 0x9e3779b97f4a7c15u) *
	                 0xff51afd7ed558ccdu;
	return mixed >> 24;
}

// The slot of that neighbour, or the free slot for it; there is always a free one.
static struct neighbour *find_slot(struct neighbour *slot, size_t n_slots,
	const struct neighbour *wanted)
{
	size_t i = hash(wanted) & (n_slots - 1);

	while (slot[i].addr.family &&
		(slot[i].port != wanted->port || !wire_addr_equal(&slot[i].addr, &wanted->addr)))
		i = (i + 1) & (n_slots - 1);
	return &slot[i];
}

static int grow_slots(struct route_list *routes)
{
	size_t n_slots = routes->n_slots ? routes->n_slots * 2 : FIRST_SLOTS;
	struct neighbour *slot = calloc(n_slots, sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	for (size_t i = 0; i < routes->n_slots; i++)
		if (routes->slot[i].addr.family)
			*find_slot(slot, n_slots, &routes->slot[i]) = routes->slot[i];
	free(routes->slot);
	routes->slot = slot;
	routes->n_slots = n_slots;
	return 0;
}

int routes_add_neighbour(struct config *config, const struct neighbour *neighbour,
	struct error *error)
{
	struct route_list *routes = &config->routes;
	char addr[WIRE_ADDR_TEXT], was[WIRE_MAC_TEXT], now[WIRE_MAC_TEXT];

	int err = check_other(config, neighbour->spot, &neighbour->addr, error);
	if (err)
		return err;
	if (routes->n_neighbours * 2 >= routes->n_slots && grow_slots(routes))
		return no_memory(error);
	struct neighbour *slot = find_slot(routes->slot, routes->n_slots, neighbour);
	if (!slot->addr.family) {
		*slot = *neighbour;
		routes->n_neighbours++;
		return 0;
	}
	if (wire_mac_equal(&slot->mac, &neighbour->mac))
		return 0;
	return error_set(error, -EEXIST,
		"%s:%u: neighbour %s has MAC address %s here and %s in %s:%u; remove one",
		file_of(config, neighbour->spot), neighbour->spot.line,
		wire_addr_print(&neighbour->addr, addr), wire_mac_print(&neighbour->mac, now),
		wire_mac_print(&slot->mac, was), file_of(config, slot->spot), slot->spot.line);
}

void routes_free(struct route_list *routes)
{
	for (unsigned i = 0; i < routes->n_files; i++)
		free(routes->file[i]);
	free(routes->change);
	free(routes->spot);
	free(routes->slot);
	free(routes->member);
	free(routes->label);
	memset(routes, 0, sizeof(*routes));
}
