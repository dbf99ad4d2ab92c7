// The innermost headers of random frames, against the fields that they were built from.
#include "wire/innermost.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 1024, FRAMES = 200000, N_WORKERS = 4, N_FLOWS = 10000, WITHIN_PERCENT = 5 };

// Built from the end: what is in front of a packet is put in front of its bytes.
struct built {
	uint8_t room[MOST];
	size_t at; // of the first byte
};

static uint64_t seed = 20261128;

static uint32_t number(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 32) % below;
}

static uint8_t *in_front(struct built *b, size_t bytes)
{
	assert_true(b->at >= bytes);
	b->at -= bytes;
	return memset(b->room + b->at, 0, bytes);
}

static size_t bytes_of(const struct built *b)
{
	return MOST - b->at;
}

static void fill(uint8_t *to, size_t bytes)
{
	while (bytes--)
		*to++ = number(256);
}

static void write16(uint8_t *to, uint16_t value)
{
	to[0] = value >> 8;
	to[1] = value;
}

static bool is_tunnel_port(uint16_t port)
{
	return port == 4789 || port == 6635;
}

// --- Headers in front.

static void add_ip4(struct built *b, uint8_t proto, uint16_t fragment)
{
	const unsigned options = number(3) * 4;
	const size_t total = bytes_of(b) + WIRE_IP4_BYTES + options;
	struct wire_ip4 *ip = (void *)in_front(b, WIRE_IP4_BYTES + options);

	fill((uint8_t *)ip, WIRE_IP4_BYTES + options);
	ip->version_ihl = 0x40 | (WIRE_IP4_BYTES + options) / 4;
	ip->total_length_be = htobe16(total);
	ip->fragment_be = htobe16(fragment);
	ip->protocol = proto;
}

static void add_ip6(struct built *b, uint8_t proto)
{
	const size_t payload = bytes_of(b);
	struct wire_ip6 *ip = (void *)in_front(b, WIRE_IP6_BYTES);

	fill((uint8_t *)ip, WIRE_IP6_BYTES);
	ip->version_class_flow_be = htobe32(0x60000000 | number(1 << 28));
	ip->payload_length_be = htobe16(payload);
	ip->next_header = proto;
}

static void add_ip(struct built *b, uint8_t proto)
{
	if (number(2))
		add_ip4(b, proto, 0);
	else
		add_ip6(b, proto);
}

static uint8_t version(const struct built *b)
{
	return b->room[b->at] >> 4;
}

static uint16_t ethertype(const struct built *b)
{
	return version(b) == 4 ? WIRE_ETHERTYPE_IP4 : WIRE_ETHERTYPE_IP6;
}

static void add_ether(struct built *b, uint16_t type)
{
	uint8_t *ether;

	write16(in_front(b, 2), type);
	for (unsigned n = number(3); n; n--) {
		write16(in_front(b, 2), number(1 << 16));
		write16(in_front(b, 2), number(2) ? WIRE_ETHERTYPE_VLAN : WIRE_ETHERTYPE_QINQ);
	}
	ether = in_front(b, 12);
	fill(ether, 12);
}

static void add_labels(struct built *b)
{
	for (unsigned i = 0, n = 1 + number(WIRE_INNERMOST_LABELS); i < n; i++) {
		uint8_t *label = in_front(b, 4);

		fill(label, 4);
		label[2] = (label[2] & ~1) | !i;
	}
}

static void add_udp(struct built *b, uint16_t port)
{
	const size_t bytes = bytes_of(b) + WIRE_UDP_BYTES;
	struct wire_udp *udp = (void *)in_front(b, WIRE_UDP_BYTES);

	fill((uint8_t *)udp, WIRE_UDP_BYTES);
	udp->dst_port_be = htobe16(port);
	udp->length_be = htobe16(bytes);
	add_ip(b, WIRE_PROTO_UDP);
}

static void add_vxlan(struct built *b)
{
	add_ether(b, ethertype(b));
	in_front(b, 8)[0] = 0x08;
	add_udp(b, 4789);
}

static void add_gre(struct built *b)
{
	static const uint16_t bits[] = {0x8000, 0x2000, 0x1000};
	uint16_t flags = 0, type = ethertype(b);

	if (!number(3)) {
		add_ether(b, type);
		type = 0x6558;
	} else if (!number(3)) {
		add_labels(b);
		type = 0x8847;
	}
	for (unsigned i = 0; i < ARRAY_LEN(bits); i++)
		if (number(2)) {
			flags |= bits[i];
			fill(in_front(b, 4), 4);
		}
	write16(in_front(b, 2), type);
	write16(in_front(b, 2), flags);
	add_ip(b, 47);
}

static void add_tunnel(struct built *b)
{
	switch (number(5)) {
	case 0:
		add_vxlan(b);
		break;
	case 1:
		add_gre(b);
		break;
	case 2:
		add_ip(b, version(b) == 4 ? 4 : 41);
		break;
	case 3:
		add_labels(b);
		add_ip(b, 137);
		break;
	default:
		add_labels(b);
		add_udp(b, 6635);
	}
}

static void add_outside(struct built *b)
{
	if (number(3)) {
		add_ether(b, ethertype(b));
		return;
	}
	add_labels(b);
	add_ether(b, 0x8847);
}

// --- Packets of a flow.

struct flow {
	uint8_t family, proto, address[32];
	uint16_t src_port, dst_port;
};

static void random_flow(struct flow *flow)
{
	static const uint8_t protos[] = {6, 17, 132, 33, 136, 1, 50, 112};

	memset(flow, 0, sizeof(*flow));
	flow->family = number(2) ? 4 : 6;
	flow->proto = protos[number(ARRAY_LEN(protos))];
	fill(flow->address, flow->family == 4 ? 8 : 32);
	flow->src_port = 1 + number(65535);
	do
		flow->dst_port = number(65536);
	while (is_tunnel_port(flow->dst_port));
}

static bool has_ports(const struct flow *flow)
{
	return flow->proto != 1 && flow->proto != 50 && flow->proto != 112;
}

// Of a fragment: 1 is the first one, 2 a later one.
static struct wire_innermost expected(const struct flow *flow, unsigned fragment)
{
	struct wire_innermost key;
	uint8_t ports[4];

	memset(&key, 0, sizeof(key));
	key.family = flow->family;
	memcpy(key.address, flow->address, sizeof(flow->address));
	if (fragment)
		return key;
	key.protocol = flow->proto;
	write16(ports, flow->src_port);
	write16(ports + 2, flow->dst_port);
	if (has_ports(flow))
		memcpy(&key.ports, ports, sizeof(ports));
	return key;
}

static void add_extensions(struct built *b, uint8_t *proto, unsigned fragment)
{
	if (fragment) {
		uint8_t *header = in_front(b, 8);

		fill(header, 8);
		header[0] = *proto;
		write16(header + 2, fragment == 1 ? 1 : (1 + number(8000)) << 3 | number(2));
		*proto = 44;
	} else if (number(2)) {
		uint8_t *header = in_front(b, 16);

		header[0] = *proto;
		header[1] = 1;
		*proto = 60;
	}
}

static void add_packet(struct built *b, const struct flow *flow, unsigned fragment)
{
	const uint16_t fragment4 = !fragment       ? number(2) << 14
	                           : fragment == 1 ? 0x2000
	                                           : (1 + number(8000)) | number(2) << 13;
	uint8_t *l4 = in_front(b, 8 + number(64)), proto = flow->proto;

	fill(l4, bytes_of(b));
	if (has_ports(flow) && fragment != 2) {
		write16(l4, flow->src_port);
		write16(l4 + 2, flow->dst_port);
	}
	if (flow->family == 6) {
		add_extensions(b, &proto, fragment);
		add_ip6(b, proto);
		memcpy(b->room + b->at + 8, flow->address, 32);
	} else {
		add_ip4(b, proto, fragment4);
		memcpy(b->room + b->at + 12, flow->address, 8);
	}
}

static uint32_t hash(const struct wire_innermost *key)
{
	return wire_innermost_hash(key);
}

static struct wire_innermost read_built(const struct built *b)
{
	struct wire_innermost key;

	wire_innermost_read(&key, b->room + b->at, bytes_of(b));
	return key;
}

// --- Tests.

static void every_frame_of_a_flow_has_its_hash_whatever_it_travels_in(void **state)
{
	struct flow flow;

	for (unsigned i = 0; i < FRAMES; i++) {
		struct built b = {.at = MOST};
		const unsigned fragment = number(4) ? 0 : 1 + number(2);

		if (i % 16 == 0)
			random_flow(&flow);
		add_packet(&b, &flow, fragment);
		for (unsigned depth = number(3); depth; depth--)
			add_tunnel(&b);
		add_outside(&b);
		struct wire_innermost want = expected(&flow, fragment), found = read_built(&b);

		assert_memory_equal(&found, &want, sizeof(want));
		assert_int_equal(hash(&found), hash(&want));
	}
}

// Also frames that end anywhere: what was readable counts, and never what an outer header says of
// a packet that is readable itself.
static void a_frame_that_ends_early_is_read_as_far_as_it_goes(void **state)
{
	for (unsigned i = 0; i < FRAMES / 100; i++) {
		struct built b = {.at = MOST};
		struct flow flow;

		random_flow(&flow);
		add_packet(&b, &flow, 0);
		const size_t inner = bytes_of(&b);
		add_tunnel(&b);
		add_outside(&b);
		struct wire_innermost want = expected(&flow, 0), found;

		for (size_t n = 0; n < bytes_of(&b); n++) {
			uint8_t *piece = malloc(n + !n);

			memcpy(piece, b.room + b.at, n);
			wire_innermost_read(&found, piece, n);
			free(piece);
			if (n < WIRE_ETHER_BYTES)
				assert_int_equal(found.address[0] | found.ports | found.family, 0);
			if (n >= bytes_of(&b) - inner + (flow.family == 4 ? 20 : 40))
				assert_memory_equal(found.address, want.address,
					sizeof(want.address));
		}
	}
}

static void a_packet_that_carries_what_is_not_readable_counts_itself(void **state)
{
	static const uint16_t types[] = {WIRE_ETHERTYPE_ARP, 0x88cc, 0x0101};

	for (unsigned i = 0; i < FRAMES / 100; i++) {
		struct built b = {.at = MOST};

		fill(in_front(&b, 28), 28);
		add_ether(&b, types[number(ARRAY_LEN(types))]);
		in_front(&b, 8)[0] = 0x08;
		add_udp(&b, 4789);
		const uint8_t family = version(&b), *packet = b.room + b.at;
		struct wire_innermost found;
		uint64_t address[4] = {0};

		memcpy(address, packet + (family == 4 ? 12 : 8), family == 4 ? 8 : 32);
		add_ether(&b, family == 4 ? WIRE_ETHERTYPE_IP4 : WIRE_ETHERTYPE_IP6);
		found = read_built(&b);
		assert_int_equal(found.family, family);
		assert_int_equal(found.protocol, 17);
		assert_true(found.ports != 0);
		assert_memory_equal(found.address, address, sizeof(address));
	}
}

static void frames_without_ip_are_told_apart_by_their_macs_and_labels(void **state)
{
	struct built b = {.at = MOST};
	uint8_t *frame = in_front(&b, 60);
	struct wire_innermost first, second;

	write16(frame + 12, WIRE_ETHERTYPE_ARP);
	first = read_built(&b);
	frame[11] = 1;
	second = read_built(&b);
	assert_true(hash(&first) != hash(&second));
	write16(frame + 12, 0x8847);
	frame[16] = 1; // the bottom of the stack
	first = read_built(&b);
	frame[14] = 1;
	second = read_built(&b);
	assert_int_equal(first.family, 0);
	assert_true(first.labels != second.labels);
	assert_true(hash(&first) != hash(&second));
}

// One outer flow, many inner ones: the slots of the table are dealt to the workers in turn.
static void inner_flows_of_one_tunnel_are_spread_evenly(void **state)
{
	for (unsigned kind = 0; kind < 2; kind++) {
		unsigned n[N_WORKERS] = {0};
		struct flow flow = {.family = kind ? 6 : 4, .proto = 17, .dst_port = 1};

		for (unsigned i = 0; i < N_FLOWS; i++) {
			struct built b = {.at = MOST};

			flow.address[flow.family == 4 ? 6 : 30] = i / 100;
			flow.src_port = 1024 + i % 100;
			add_packet(&b, &flow, 0);
			add_vxlan(&b);
			add_ether(&b, ethertype(&b));
			struct wire_innermost key = read_built(&b);

			n[(hash(&key) >> 24) % N_WORKERS]++;
		}
		for (unsigned w = 0; w < N_WORKERS; w++)
			assert_in_range(n[w] * 100 / N_FLOWS, 25 - WITHIN_PERCENT,
				25 + WITHIN_PERCENT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_frame_of_a_flow_has_its_hash_whatever_it_travels_in),
		cmocka_unit_test(a_frame_that_ends_early_is_read_as_far_as_it_goes),
		cmocka_unit_test(a_packet_that_carries_what_is_not_readable_counts_itself),
		cmocka_unit_test(frames_without_ip_are_told_apart_by_their_macs_and_labels),
		cmocka_unit_test(inner_flows_of_one_tunnel_are_spread_evenly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
