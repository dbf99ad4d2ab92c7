// Packets to next hops whose ids have more than 15 bits: each leaves for its neighbour and is
// counted, also as member of a group. Tests only.
#include "datapath/fake.h"

#include <stdio.h>
#include <string.h>

enum { FILLERS = 70000, HOSTS = 200, OUT = 1, FIRST_WIDE = 1 << 16 };

static struct wire_mac mac_of(unsigned host)
{
	return (struct wire_mac){{2, 0, 0, 9, host >> 8, host}};
}

static struct wire_addr addr_of(uint8_t family, unsigned host)
{
	if (family == 4)
		return (struct wire_addr){{10, OUT, 9, host}, 4};
	return (struct wire_addr){{0x20, 1, 0xd, 0xb8, 0, OUT, [14] = 9, [15] = host}, 6};
}

static void set_neighbour(const struct wire_addr *addr, const struct wire_mac *mac)
{
	assert_int_equal(fib_neighbour_set(fake.fib, OUT, addr, mac, NULL), 0);
}

// Other neighbours have taken the first ids.
static int open_wide(void **state)
{
	const struct wire_mac mac = {{2, 0, 0, 8, 8, 8}};
	char text[32];

	fake_open(state);
	for (uint32_t i = 0; i < FILLERS; i++) {
		const uint32_t number = 0x40000000 + (i << 14);
		const struct wire_addr addr = {{number >> 24, number >> 16 & 255, number >> 8 & 255,
						       1},
			4};
		set_neighbour(&addr, &mac);
	}
	for (unsigned host = 0; host < HOSTS; host++) {
		const struct wire_mac own = mac_of(host);
		for (uint8_t family = 4; family <= 6; family += 2) {
			const struct fib_hop hop = {.via = addr_of(family, host), .iface = OUT};
			set_neighbour(&hop.via, &own);
			sprintf(text, family == 4 ? "10.88.%u.0/25" : "2001:db8:88:%x::/64", host);
			fake_route(0, text, &hop);
		}
	}
	return 0;
}

static uint32_t id_of(const char *text)
{
	struct wire_addr addr;

	assert_int_equal(wire_addr_parse(text, &addr), 0);
	return fib_lookup(fake.fib, 0, &addr);
}

static void expect_left(unsigned at, struct bytes frame, unsigned host)
{
	struct bytes left = frame_forwarded(&frame, OUT);

	memcpy(left.at, mac_of(host).bytes, 6);
	expect_bytes(fake.device[OUT].sent[at], &left);
}

static void leave_for_their_neighbours(void **state)
{
	static struct bytes frame[HOSTS];
	uint32_t id[HOSTS];
	char text[48];

	for (unsigned i = 0; i < 2 * FAKE_VARIANTS; i++) {
		fake_reset(fake_variants[i / 2]);
		for (unsigned host = 0; host < HOSTS; host++) {
			sprintf(text, i % 2 ? "10.88.%u.77" : "2001:db8:88:%x::77", host);
			id[host] = id_of(text);
			assert_in_range(id[host], FIRST_WIDE, FIB_MAX_HOPS);
			frame[host] = frame_to(0, text);
			fake_receive(0, &frame[host]);
		}
		fake_run();
		assert_int_equal(fake.device[OUT].n_sent, HOSTS);
		for (unsigned host = 0; host < HOSTS; host++) {
			expect_left(host, frame[host], host);
			assert_int_equal(fake.stat.hop[id[host]], 1);
		}
	}
}

static void leave_by_the_members_of_a_group(void **state)
{
	const struct fib_member members[] = {{{.via = addr_of(4, 3), .iface = OUT}, 1},
		{{.via = addr_of(4, 5), .iface = OUT}, 1}};
	const uint32_t id[] = {id_of("10.88.3.1"), id_of("10.88.5.1")};
	struct bytes frame = frame_to(0, "10.89.0.1");
	struct fib_hop group;

	assert_int_equal(fib_group(fake.fib, members, 2, &group, NULL), 0);
	fake_route(0, "10.89.0.0/16", &group);
	for (unsigned i = 0; i < FAKE_VARIANTS; i++) {
		unsigned n_of[2] = {0};

		fake_reset(fake_variants[i]);
		for (unsigned port = 0; port < HOSTS; port++) { // source ports
			frame.at[34] = port;
			fake_receive(0, &frame);
		}
		fake_run();
		assert_int_equal(fake.device[OUT].n_sent, HOSTS);
		for (unsigned at = 0; at < HOSTS; at++) {
			const uint8_t *sent =
				rte_pktmbuf_mtod(fake.device[OUT].sent[at], uint8_t *);
			for (unsigned k = 0; k < 2; k++)
				n_of[k] += !memcmp(sent, mac_of(k ? 5 : 3).bytes, 6);
		}
		assert_int_equal(n_of[0] + n_of[1], HOSTS);
		for (unsigned k = 0; k < 2; k++) {
			assert_int_equal(fake.stat.hop[id[k]], n_of[k]);
			assert_int_not_equal(n_of[k], 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leave_for_their_neighbours),
		cmocka_unit_test(leave_by_the_members_of_a_group),
	};
	return cmocka_run_group_tests(tests, open_wide, fake_close);
}
