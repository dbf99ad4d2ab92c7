// Frames in GRE: the bytes that are sent, and what is taken out of received packets.
#include "datapath/vxlans.h"

#include "wire/checksum.h"
#include "wire/headers.h"

#include <rte_cycles.h>
#include <string.h>

// A device of frames in GRE, with a checksum and key 77.
static void reset_gre(bool is_ip6)
{
	reset(is_ip6, 0);
	device.tunnel.kind = IFACE_GRETAP;
	device.tunnel.remote = end_addr(0, is_ip6);
	device.tunnel.key = device.tunnel.wanted_key = 77;
	device.tunnel.flags = IFACE_TUNNEL_CHECKSUM | IFACE_TUNNEL_KEY | IFACE_TUNNEL_WANTS_KEY |
	                      IFACE_TUNNEL_WANTS_CHECKSUM | IFACE_TUNNEL_LINUX;
	fake_set(DEVICE, &device);
	assert_int_equal(mac_set_flood(table, MEMBER, remote, 1, NULL), 0);
	note_before();
}

static uint16_t gre_sum(const uint8_t *frame, uint32_t n, bool is_ip6)
{
	const unsigned at = is_ip6 ? 54 : 34;

	return wire_sum_finish_be(wire_sum(0, frame + at, n - at));
}

static struct bytes gre_of(const struct bytes *udp, const struct bytes *inner, bool is_ip6)
{
	static const uint8_t gre[] = {0xa0, 0, 0x65, 0x58, 0, 0, 0, 0, 0, 0, 0, 77};
	const unsigned at = is_ip6 ? 54 : 34;
	struct bytes made = *udp;

	made.at[is_ip6 ? 20 : 23] = 47;
	memcpy(made.at + at, gre, sizeof(gre));
	memcpy(made.at + at + sizeof(gre), inner->at, inner->n);
	made.n = at + sizeof(gre) + inner->n;
	const unsigned bytes = made.n - (is_ip6 ? at : 14);
	made.at[is_ip6 ? 18 : 16] = bytes >> 8;
	made.at[is_ip6 ? 19 : 17] = bytes;
	const uint16_t sum_be = gre_sum(made.at, made.n, is_ip6);
	memcpy(made.at + at + 4, &sum_be, 2);
	if (!is_ip6)
		frame_mend(&made);
	return made;
}

// The id and the flow label are as they were sent.
static void frames_in_gre_have_these_bytes(void **state)
{
	const struct bytes inner = frame_between(NOBODY, 1);

	for (unsigned is_ip6 = 0; is_ip6 < 2; is_ip6++) {
		struct bytes out = wrapped(&inner, 0, is_ip6);

		out = gre_of(&out, &inner, is_ip6);
		reset_gre(is_ip6);
		receive(HOSTS, &inner);
		assert_int_equal(n_sent(UNDER), 1);
		const uint8_t *sent = rte_pktmbuf_mtod(fake.device[UNDER].sent[0], uint8_t *);
		memcpy(out.at + (is_ip6 ? 15 : 18), sent + (is_ip6 ? 15 : 18), is_ip6 ? 3 : 2);
		if (is_ip6)
			assert_int_equal(sent[15] & 0xf0, 0); // the traffic class
		else
			frame_mend(&out);
		expect_bytes(fake.device[UNDER].sent[0], &out);
	}
}

static void frames_in_gre_are_received(void **state)
{
	const struct bytes inner = frame_between(NOBODY, 1);

	for (unsigned is_ip6 = 0; is_ip6 < 2; is_ip6++) {
		const unsigned gre = is_ip6 ? 54 : 34;
		struct bytes in = arriving(&inner, 0, is_ip6);

		in = gre_of(&in, &inner, is_ip6);
		in.n += 5; // what follows the packet is cut off
		reset_gre(is_ip6);
		receive(UNDER, &in);
		assert_int_equal(n_sent(HOSTS), 1);
		expect_bytes(fake.device[HOSTS].sent[0], &inner);
		in.at[gre + 20]++;
		expect_refused(&in, VERDICT_TUNNEL_CHECKSUM);
		in.at[gre + 20]--;
		in.at[gre + 11]++; // another key, and the sum of it
		in.at[gre + 5]--;
		expect_refused(&in, VERDICT_LOCAL);
		device.flags = IFACE_DOWN;
		fake_set(DEVICE, &device);
		in.at[gre + 11]--;
		in.at[gre + 5]++;
		expect_refused(&in, VERDICT_TUNNEL_UNKNOWN);
		device.flags = 0;
	}
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_vxlan, close_vxlan)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(frames_in_gre_have_these_bytes),
		TEST(frames_in_gre_are_received),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
