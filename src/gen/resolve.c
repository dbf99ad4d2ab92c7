// Resolves the MAC addresses of next hops before a run. Control thread.
#include "gen/neighbours.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static bool is_link_local6(const struct wire_addr *addr)
{
	return addr->family == 6 && wire_addr_is_link_local(addr);
}

// A single destination in a network of the port itself, otherwise the gateway. Labels alone hide
// the destination, but there is a gateway of its family.
static int find_next_hop(const struct port_table_settings *settings,
	const struct gen_streams *streams, unsigned i, struct wire_addr *out, struct error *error)
{
	const struct gen_stream *stream = &streams->stream[i];
	const struct port_settings *port = &settings->ports[stream->from];
	const bool is_plain = stream->encap.type == GEN_PLAIN;
	const struct wire_addr *dst =
		stream->encap.dst.family ? &stream->encap.dst : &stream->recipe.dst;
	const uint32_t count = is_plain ? stream->fields[GEN_DST_IP].count : 1;
	uint8_t family = dst->family;

	*out = port->gateway[family == 6];
	if (count == 1 && stream->encap.type != GEN_MPLS && neighbours_are_on_link(port, dst))
		*out = *dst;
	if (out->family)
		return 0;
	return error_set(error, -EINVAL,
		"streams[%u] (%s): dst_mac \"auto\": port %s has no IPv%u gateway to resolve; add "
		"\"addresses\" and \"gateway\" to the port, or specify the MAC address here",
		i, stream->name, port->name, family);
}

int neighbours_check(const struct port_table_settings *settings, const struct gen_streams *streams,
	struct error *error)
{
	struct wire_addr next_hop;
	int err = 0;

	for (unsigned i = 0; i < streams->n && !err; i++)
		if (streams->stream[i].wants_mac)
			err = find_next_hop(settings, streams, i, &next_hop, error);
	return err;
}

static bool is_same(const struct neighbour *a, const struct neighbour *b)
{
	return a->port == b->port && a->has_vlan == b->has_vlan && a->vlan_tag == b->vlan_tag &&
	       wire_addr_equal(&a->addr, &b->addr);
}

// The index in `wanted` of a stream's next hop.
static int want(struct neighbours *n, const struct gen_streams *streams, unsigned i,
	unsigned *place, struct error *error)
{
	const struct gen_stream *stream = &streams->stream[i];
	struct neighbour one = {.port = stream->from,
		.has_vlan = stream->recipe.has_vlan,
		.vlan_tag = stream->recipe.has_vlan ? stream->recipe.vlan_tag : 0};
	int err = find_next_hop(n->settings, streams, i, &one.addr, error);

	if (err)
		return err;
	for (*place = 0; *place < n->n_wanted && !is_same(&n->wanted[*place], &one);)
		++*place;
	if (*place == n->n_wanted)
		n->wanted[n->n_wanted++] = one;
	return 0;
}

// Our own address in the network of the requested one.
static struct wire_addr find_own(const struct neighbours *n, const struct neighbour *wanted)
{
	const struct port_settings *port = &n->settings->ports[wanted->port];

	for (unsigned i = 0; i < port->n_addresses && !is_link_local6(&wanted->addr); i++) {
		const struct port_settings one = {.n_addresses = 1,
			.addresses = {port->addresses[i]}};

		if (neighbours_are_on_link(&one, &wanted->addr))
			return port->addresses[i].addr;
	}
	return neighbours_link_local(&n->mac[wanted->port]);
}

// Sends requests; returns how many addresses are still unknown.
static unsigned ask(struct neighbours *n, bool again)
{
	unsigned n_unknown = 0;

	for (unsigned i = 0; i < n->n_wanted; i++) {
		const struct neighbour *wanted = &n->wanted[i];

		if (wanted->is_known)
			continue;
		n_unknown++;
		if (!again)
			continue;
		const struct wire_neighbour question = {.has_vlan = wanted->has_vlan,
			.vlan_tag = wanted->vlan_tag,
			.target = wanted->addr,
			.sender = find_own(n, wanted),
			.asker_mac = n->mac[wanted->port]};
		neighbours_say(n, wanted->port, &question);
	}
	return n_unknown;
}

static void ask_until_known(struct neighbours *n, const struct gen_streams *streams)
{
	const uint64_t start_ns = clock_now_ns(), again_ns = NEIGHBOURS_AGAIN_MS * 1000000ull;
	uint64_t next_ns = start_ns;

	for (;;) {
		uint64_t now_ns = clock_now_ns();
		bool again = now_ns >= next_ns;

		next_ns += again ? again_ns : 0;
		if (!ask(n, again) || now_ns - start_ns > NEIGHBOURS_PATIENCE_MS * 1000000ull)
			return;
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
		neighbours_poll(n, streams);
	}
}

static int no_answer(const struct neighbours *n, const struct gen_stream *stream,
	const struct neighbour *wanted, struct error *error)
{
	char text[WIRE_ADDR_TEXT];

	return error_set(error, -EHOSTUNREACH,
		"stream %s: %s on port %s did not reply to ARP or ND within %d s; check that it is "
		"up and has an address in the port's network, then send again, or specify dst_mac",
		stream->name, wire_addr_print(&wanted->addr, text),
		n->settings->ports[wanted->port].name, NEIGHBOURS_PATIENCE_MS / 1000);
}

int neighbours_resolve(struct neighbours *n, struct gen_streams *streams, struct error *error)
{
	unsigned place[GEN_MAX_STREAMS];

	n->n_wanted = 0;
	for (unsigned i = 0; i < streams->n; i++)
		if (streams->stream[i].wants_mac && want(n, streams, i, &place[i], error))
			return -EINVAL;
	ask_until_known(n, streams);
	for (unsigned i = 0; i < streams->n; i++) {
		struct gen_stream *stream = &streams->stream[i];

		if (!stream->wants_mac)
			continue;
		if (!n->wanted[place[i]].is_known)
			return no_answer(n, stream, &n->wanted[place[i]], error);
		stream->recipe.dst_mac = n->wanted[place[i]].mac;
	}
	return 0;
}
