// A worker's rings without TAP interfaces: what is enqueued where, and what is refused.
#include "tap/rings.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { FRAME_BYTES = 64, HEADROOM = 128 };

static struct tap_settings settings;
static struct tap_worker worker;
static struct stats_worker stat;

static struct rte_mbuf *make_frame(struct rte_mbuf *mbuf, const uint8_t *bytes)
{
	static uint8_t room[HEADROOM + FRAME_BYTES];

	memcpy(room + HEADROOM, bytes, FRAME_BYTES);
	*mbuf = (struct rte_mbuf){.buf_addr = room,
		.data_off = HEADROOM,
		.data_len = FRAME_BYTES,
		.pkt_len = FRAME_BYTES,
		.nb_segs = 1,
		.port = 9};
	return mbuf;
}

static int make_worker(void **state)
{
	memset(&stat, 0, sizeof(stat));
	tap_settings_default(&settings);
	return tap_worker_make(&worker, settings.class);
}

static int free_worker(void **state)
{
	void *one;

	// These frames do not come from a pool.
	for (unsigned c = 0; c < N_CLASSES; c++)
		while (rte_ring_sc_dequeue(worker.punt[c], &one) == 0)
			;
	tap_worker_free(&worker);
	return 0;
}

static void hands_a_packet_over_in_the_class_of_its_verdict(void **state)
{
	static const uint8_t bytes[FRAME_BYTES];
	struct rte_mbuf mbuf;
	void *out;

	assert_true(tap_punt(&worker, &stat, make_frame(&mbuf, bytes),
		VERDICT_TTL_EXPIRED | 3 << TAP_PORT_SHIFT));
	assert_int_equal(rte_ring_count(worker.punt[CLASS_TTL]), 1);
	assert_int_equal(rte_ring_sc_dequeue(worker.punt[CLASS_TTL], &out), 0);
	assert_ptr_equal(out, &mbuf);
	assert_int_equal(mbuf.port, 3);
	assert_int_equal(stat.handed[VERDICT_TTL_EXPIRED], 1);
	assert_int_equal(stat.verdict[VERDICT_TTL_EXPIRED], 0);
}

static void looks_into_a_packet_whose_verdict_leaves_its_class_open(void **state)
{
	static const uint8_t ospf[FRAME_BYTES] = {1, 0, 0x5e, 0, 0,
		5, [12] = 8, [14] = 0x45, [23] = 89, [30] = 224, 0, 0, 5};
	static const uint8_t ssh[FRAME_BYTES] = {2, [12] = 8, [14] = 0x45, [23] = 6, [37] = 22};
	struct rte_mbuf mbuf;

	assert_true(tap_punt(&worker, &stat, make_frame(&mbuf, ospf), VERDICT_MAC_GROUP));
	assert_int_equal(rte_ring_count(worker.punt[CLASS_ROUTING]), 1);
	assert_true(tap_punt(&worker, &stat, make_frame(&mbuf, ssh), VERDICT_LOCAL));
	assert_int_equal(rte_ring_count(worker.punt[CLASS_HOST]), 1);
}

static void leaves_a_packet_whose_verdict_has_no_class_to_the_caller(void **state)
{
	static const uint8_t bytes[FRAME_BYTES];
	struct rte_mbuf mbuf;

	assert_false(tap_punt(&worker, &stat, make_frame(&mbuf, bytes), VERDICT_BLACKHOLE));
	for (unsigned v = 0; v < N_VERDICTS; v++)
		assert_int_equal(stat.verdict[v] + stat.handed[v], 0);
}

static void takes_a_burst_and_counts_what_is_beyond_it(void **state)
{
	static const uint8_t bytes[FRAME_BYTES];
	struct rte_mbuf mbuf;
	unsigned n = 0;

	make_frame(&mbuf, bytes);
	while (tap_punt(&worker, &stat, &mbuf, VERDICT_TTL_EXPIRED))
		n++;
	assert_int_equal(n, settings.class[CLASS_TTL].burst);
	assert_int_equal(stat.handed[VERDICT_TTL_EXPIRED], n);
	assert_int_equal(stat.verdict[VERDICT_PUNT_RING_FULL], 1);
	assert_int_equal(stat.ring_full[CLASS_TTL], 1);
	assert_true(tap_punt(&worker, &stat, &mbuf, VERDICT_NO_ROUTE));
}

static void has_room_for_64_packets_where_the_burst_is_smaller(void **state)
{
	assert_int_equal(settings.class[CLASS_REDIRECT].burst, 20);
	assert_int_equal(rte_ring_get_capacity(worker.punt[CLASS_REDIRECT]), 64);
}

static void finds_nothing_to_take_where_linux_sent_nothing(void **state)
{
	struct rte_mbuf *mbufs[8];

	assert_int_equal(tap_take(&worker, mbufs, 8), 0);
}

int main(void)
{
#define WORKER_TEST(f) cmocka_unit_test_setup_teardown(f, make_worker, free_worker)
	const struct CMUnitTest tests[] = {
		WORKER_TEST(hands_a_packet_over_in_the_class_of_its_verdict),
		WORKER_TEST(looks_into_a_packet_whose_verdict_leaves_its_class_open),
		WORKER_TEST(leaves_a_packet_whose_verdict_has_no_class_to_the_caller),
		WORKER_TEST(takes_a_burst_and_counts_what_is_beyond_it),
		WORKER_TEST(has_room_for_64_packets_where_the_burst_is_smaller),
		WORKER_TEST(finds_nothing_to_take_where_linux_sent_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
