// Arbitrary bytes in a packet to the end of tunnels of all kinds: nothing behind the packet is
// read, and the account closes. The first byte chooses the outer header, the second one is its DSCP
// and ECN.
#include "datapath/fake.h"
#include "wire/headers.h"

#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum {
	FIRST_TUNNEL = 300,
	IN = 0,
	OUT = 1,
	MPLS_PORT = 6635,
	FOU_PORT = 5555,
	VXLAN_PORT = 4789,
	MOST = 1400
};
enum { POP = 300, SWAP, LEAST_FRAME = 60 };

static const struct wire_addr here4 = {.family = 4, .bytes = {10, 0, 0, 1}};
static const struct wire_addr there4 = {.family = 4, .bytes = {10, 1, 9, 9}};
static const struct wire_addr here6 = {.family = 6, .bytes = {0x20, 1, 0xd, 0xb8, 0, 0, [15] = 1}};
static const struct wire_addr there6 = {.family = 6, .bytes = {0x20, 1, 0xd, 0xb8, 0, 1, [15] = 9}};

static void add_tunnel(uint16_t iface, const struct iface_tunnel *tunnel)
{
	struct iface settings = {.mtu = 9600, .tunnel = *tunnel};

	settings.is_bridge = iface_carries_frames(&settings);
	settings.has_peer = !settings.is_bridge;
	settings.flags = settings.is_bridge ? 0 : IFACE_MPLS;
	assert_int_equal(fib_iface_set(fake.fib, iface, &settings), 0);
}

static void add_tunnels(void)
{
	const uint16_t ip = IFACE_TUNNEL_IP4 | IFACE_TUNNEL_IP6, udp = IFACE_TUNNEL_UDP;
	const struct iface_tunnel rows[] = {
		{.kind = IFACE_GRE, .flags = ip | IFACE_TUNNEL_MPLS},
		{.kind = IFACE_GRE,
			.flags = IFACE_TUNNEL_KEY | IFACE_TUNNEL_WANTS_KEY | ip | IFACE_TUNNEL_MPLS,
			.wanted_key = 7},
		{.kind = IFACE_IPIP, .flags = ip | udp, .dest_port = FOU_PORT},
		{.kind = IFACE_IPIP,
			.flags = udp | IFACE_TUNNEL_MPLS | IFACE_TUNNEL_ZERO_CHECKSUM,
			.dest_port = MPLS_PORT},
		{.kind = IFACE_GRETAP, .flags = IFACE_TUNNEL_WANTS_CHECKSUM},
		{.kind = IFACE_VXLAN, .dest_port = VXLAN_PORT, .key = 1},
	};

	for (uint16_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		struct iface_tunnel tunnel = rows[i / 2];

		tunnel.local = i % 2 ? here6 : here4;
		if (tunnel.kind != IFACE_VXLAN)
			tunnel.remote = i % 2 ? there6 : there4;
		tunnel.vxlan = i;
		add_tunnel(FIRST_TUNNEL + i, &tunnel);
	}
}

// The table stays until the end; what refers to its memory is in pages that the leak detector does
// not see.
static void open_once(void)
{
	const struct fib_hop local = {.kind = FIB_LOCAL, .iface = IFACE_NONE};
	struct fib_label label = {.label = POP, .op = FIB_LABEL_LOOKUP, .hop.iface = IFACE_NONE};
	static bool is_open;
	void *state = NULL;

	if (is_open)
		return;
	is_open = true;
	__lsan_disable();
	fake_open(&state);
	fake_route(0, "10.0.0.1/32", &local);
	fake_route(0, "2001:db8::1/128", &local);
	add_tunnels();
	assert_int_equal(fib_label_set(fake.fib, &label, NULL), 0);
	label = (struct fib_label){.label = SWAP,
		.op = FIB_LABEL_FORWARD,
		.hop = {.kind = FIB_VIA,
			.iface = OUT,
			.via = {.family = 4, .bytes = {10, OUT, 0, 2}},
			.n_labels = 1,
			.label = {310}}};
	assert_int_equal(fib_label_set(fake.fib, &label, NULL), 0);
	__lsan_enable();
}

// The outer header with everything that follows.
static struct bytes outer4(uint8_t protocol, uint8_t tos, const uint8_t *bytes, uint16_t n)
{
	struct bytes frame = frame_to(IN, "10.0.0.1");
	const uint16_t length_be = htobe16(WIRE_IP4_BYTES + n);

	frame.n = 14 + WIRE_IP4_BYTES + n;
	frame.at[15] = tos;
	memcpy(frame.at + 16, &length_be, sizeof(length_be));
	frame.at[23] = protocol;
	memcpy(frame.at + 26, there4.bytes, 4);
	memcpy(frame.at + 34, bytes, n);
	frame_mend(&frame);
	return frame;
}

static struct bytes outer6(uint8_t protocol, uint8_t tos, const uint8_t *bytes, uint16_t n)
{
	struct bytes frame = frame_to(IN, "2001:db8::1");
	const uint16_t length_be = htobe16(n);

	frame.n = 14 + WIRE_IP6_BYTES + n;
	frame.at[14] = 0x60 | tos >> 4;
	frame.at[15] = tos << 4;
	memcpy(frame.at + 18, &length_be, sizeof(length_be));
	frame.at[20] = protocol;
	memcpy(frame.at + 22, there6.bytes, 16);
	memcpy(frame.at + 54, bytes, n);
	return frame;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const uint8_t protocols[] = {WIRE_PROTO_IP4, WIRE_PROTO_IP6, WIRE_PROTO_GRE,
		WIRE_PROTO_UDP, WIRE_PROTO_MPLS, WIRE_PROTO_DESTINATION};
	struct bytes frame;

	if (n < 2 || n > MOST)
		return 0;
	open_once();
	fake_reset(fake_variants[0]); // others read whole vectors
	const uint8_t protocol = protocols[(data[0] >> 1) % ARRAY_LEN(protocols)];
	frame = data[0] & 1 ? outer6(protocol, data[1], data + 2, n - 2)
	                    : outer4(protocol, data[1], data + 2, n - 2);
	const struct rte_mbuf *m = fake_receive(IN, &frame);
	const uint16_t end = MAX_OF(frame.n, LEAST_FRAME);
	uint8_t *behind = (uint8_t *)m->buf_addr + m->data_off + end;
	const size_t most = FAKE_ROOM - m->data_off - end;
	ASAN_POISON_MEMORY_REGION(behind, most);
	fake_run();
	ASAN_UNPOISON_MEMORY_REGION(behind, most);
	return 0;
}
