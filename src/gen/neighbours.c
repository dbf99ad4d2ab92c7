// Answers requests for the addresses of ports and streams. Control thread.
#include "gen/neighbours.h"

#include "base/bits.h"
#include "gen/expect.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct wire_addr neighbours_link_local(const struct wire_mac *mac)
{
	const uint8_t *m = mac->bytes;

	return (struct wire_addr){.family = 6,
		.bytes = {0xfe, 0x80, [8] = m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}};
}

bool neighbours_are_on_link(const struct port_settings *port, const struct wire_addr *addr)
{
	for (unsigned i = 0; i < port->n_addresses; i++) {
		struct wire_prefix ours = port->addresses[i], theirs = {*addr, ours.len};

		if (ours.addr.family != addr->family)
			continue;
		wire_prefix_mask(&ours);
		wire_prefix_mask(&theirs);
		if (wire_addr_equal(&ours.addr, &theirs.addr))
			return true;
	}
	return false;
}

static int make_post(struct neighbours *n, const struct neighbours_terms *terms, unsigned i)
{
	struct post *post = aligned_alloc(_Alignof(struct post), sizeof(*post));
	struct port_info info;

	if (!post)
		return -ENOMEM;
	memset(post, 0, sizeof(*post));
	post->out = port_worker(terms->ports, terms->worker_of[i])->out[i];
	post->out.queue = 0; // of the only worker that sends on the port
	post->out.shared = NULL;
	post->pool = port_pool(terms->ports, i);
	port_info(terms->ports, i, &info);
	n->mac[i] = info.mac;
	n->post[i] = post;
	return 0;
}

int neighbours_make(struct neighbours *n, const struct neighbours_terms *terms, struct error *error)
{
	*n = (struct neighbours){.settings = terms->settings};
	for (unsigned i = 0; i < terms->settings->n_ports; i++)
		if (terms->settings->ports[i].n_addresses && make_post(n, terms, i))
			return error_set(error, -ENOMEM,
				"not enough memory for the neighbours of port %s",
				terms->settings->ports[i].name);
	return 0;
}

void neighbours_free(struct neighbours *n)
{
	for (unsigned i = 0; i < PORT_MAX; i++)
		free(n->post[i]);
	*n = (struct neighbours){0};
}

void neighbours_say(struct neighbours *n, unsigned port, const struct wire_neighbour *said)
{
	uint8_t frame[WIRE_NEIGHBOUR_BYTES];
	size_t bytes = wire_neighbour_build(said, frame);

	if (post_put(&n->post[port]->to_send, frame, bytes, said->is_reply))
		__atomic_store_n(&n->n_posted, n->n_posted + 1, __ATOMIC_RELEASE);
}

static bool is_in_range(const struct wire_addr *addr, const struct wire_addr *first, uint32_t count)
{
	unsigned at = first->family == 6 ? 12 : 0; // offset of the last 32 bits
	uint32_t low_be, number_be;

	if (addr->family != first->family || memcmp(addr->bytes, first->bytes, at) != 0)
		return false;
	memcpy(&low_be, first->bytes + at, sizeof(low_be));
	memcpy(&number_be, addr->bytes + at, sizeof(number_be));
	return be32toh(number_be) - be32toh(low_be) < count;
}

// Streams simulate hosts on both ends if their addresses are in that network, and the ends of their
// encapsulation. A stream without an outer packet has none, of family 0.
static bool is_of_stream(const struct gen_stream *stream, unsigned port,
	const struct wire_addr *addr)
{
	const struct wire_recipe *recipe = &stream->recipe;

	if (stream->from == port && !stream->is_receive_only &&
		(is_in_range(addr, &recipe->src, stream->fields[GEN_SRC_IP].count) ||
			wire_addr_equal(addr, &stream->encap.src)))
		return true;
	return expect_ends_on(stream, port) &&
	       (is_in_range(addr, &recipe->dst, stream->fields[GEN_DST_IP].count) ||
		       wire_addr_equal(addr, &stream->encap.dst) ||
		       wire_addr_equal(addr, &stream->expect.encap.dst));
}

static bool is_ours(const struct neighbours *n, const struct gen_streams *streams, unsigned i,
	const struct wire_addr *addr)
{
	const struct port_settings *port = &n->settings->ports[i];
	const struct wire_addr link_local = neighbours_link_local(&n->mac[i]);
	bool has_ip6 = false;

	for (unsigned k = 0; k < port->n_addresses; k++) {
		if (wire_addr_equal(&port->addresses[k].addr, addr))
			return true;
		has_ip6 |= port->addresses[k].addr.family == 6;
	}
	if (has_ip6 && wire_addr_equal(&link_local, addr))
		return true;
	if (!neighbours_are_on_link(port, addr) || wire_addr_equal(&port->gateway[0], addr) ||
		wire_addr_equal(&port->gateway[1], addr))
		return false;
	for (unsigned k = 0; k < streams->n; k++)
		if (is_of_stream(&streams->stream[k], i, addr))
			return true;
	return false;
}

static void answer(struct neighbours *n, unsigned port, struct wire_neighbour *asked)
{
	asked->is_reply = true;
	asked->about_mac = n->mac[port];
	neighbours_say(n, port, asked);
}

static void learn(struct neighbours *n, unsigned port, const struct wire_neighbour *reported)
{
	for (unsigned i = 0; i < n->n_wanted; i++) {
		struct neighbour *wanted = &n->wanted[i];

		if (wanted->port != port || wanted->has_vlan != reported->has_vlan ||
			(wanted->vlan_tag & 0xfff) != (reported->vlan_tag & 0xfff) ||
			!wire_addr_equal(&wanted->addr, &reported->target))
			continue;
		wanted->mac = reported->about_mac;
		wanted->is_known = true;
	}
}

void neighbours_poll(struct neighbours *n, const struct gen_streams *streams)
{
	struct post_frame frame;
	struct wire_neighbour said;

	for (unsigned i = 0; i < n->settings->n_ports; i++) {
		if (!n->post[i])
			continue;
		for (unsigned k = 0;
			k < NEIGHBOURS_AT_ONCE && post_take(&n->post[i]->received, &frame); k++) {
			if (wire_neighbour_read(frame.bytes, frame.n, &said))
				n->n_malformed[i]++;
			else if (said.is_reply)
				learn(n, i, &said);
			else if (is_ours(n, streams, i, &said.target))
				answer(n, i, &said);
		}
	}
}
