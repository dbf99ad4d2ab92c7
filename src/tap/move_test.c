// Frames between the workers' rings and TAP interfaces: to Linux by class and within limits, from
// Linux in order; every frame is counted, no buffer is lost.
#include "tap/fixture.h"

#include "base/clock.h"

#include <sys/socket.h>
#include <unistd.h>

static void hands_punted_packets_to_the_tap_of_their_port(void **state)
{
	open_module();
	int first = listen_to_tap(0), second = listen_to_tap(1);

	for (unsigned i = 0; i < 50; i++) {
		assert_true(punt(0, VERDICT_TTL_EXPIRED, i));
		assert_true(punt(1, VERDICT_LOCAL, 1000 + i));
	}
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(receive_mark(first), i);
		assert_int_equal(receive_mark(second), 1000 + i);
	}
	settle();
	assert_int_equal(sum_tap(VERDICT_FORWARD), 100);
	assert_int_equal(stats_read(&tap_stats(taps)->punted_by_port[1]), 50);
	close(first);
	close(second);
}

static void serves_the_highest_class_first(void **state)
{
	open_module();
	thread_stop(taps);
	int fd = listen_to_tap(0);

	for (unsigned i = 0; i < 40; i++)
		assert_true(punt(0, VERDICT_TTL_EXPIRED, 1));
	assert_true(punt(0, VERDICT_ARP, 2));
	move_rest(taps);
	assert_int_equal(receive_mark(fd), 2);
	assert_int_equal(receive_mark(fd), 1);
	close(fd);
}

static void drops_what_is_over_its_class_s_limit(void **state)
{
	const uint64_t start_ns = clock_now_ns();

	settings.class[CLASS_TTL] = (struct tap_class_settings){.rate = 1, .burst = 70};
	open_module();
	for (unsigned i = 0; i < 70; i++)
		assert_true(punt(0, VERDICT_TTL_EXPIRED, i));
	settle();
	for (unsigned i = 0; i < 30; i++)
		assert_true(punt(0, VERDICT_TTL_EXPIRED, i));
	assert_true(punt(0, VERDICT_NO_ROUTE, 0));
	settle();
	const uint64_t over = stats_read(&tap_stats(taps)->class[CLASS_TTL].over_limit);
	const uint64_t seconds = (clock_now_ns() - start_ns) / 1000000000 + 1; // one more in each
	assert_in_range(over, 30 - MIN_OF(seconds, 30), 30);
	assert_int_equal(stats_read(&tap_stats(taps)->class[CLASS_UNREACHABLE].punted), 1);

	settings.class[CLASS_TTL].rate = HIGH_RATE;
	tap_change(taps, &settings);
	assert_int_equal(tap_class(taps, CLASS_TTL).rate, HIGH_RATE);
	usleep(10000);
	assert_true(punt(0, VERDICT_TTL_EXPIRED, 0));
	settle();
	assert_int_equal(stats_read(&tap_stats(taps)->class[CLASS_TTL].over_limit), over);
}

static void counts_what_lies_in_the_rings_at_the_end(void **state)
{
	open_module();
	thread_stop(taps);
	for (unsigned i = 0; i < 180; i++)
		assert_true(punt(0, VERDICT_TTL_EXPIRED, i));
	taps->thread_runs = false;
	move_rest(taps);
	assert_int_equal(settled(), 180);
	close_module();
	assert_int_equal(count_free(), n_mbufs_free);
}

// Acts as the worker: receives until `n` frames with marks have arrived, which must be in order.
static void take_marks(unsigned n)
{
	uint64_t start_ns = clock_now_ns();
	struct rte_mbuf *mbufs[32];

	for (unsigned next = 0; next < n && clock_now_ns() - start_ns < wait_ns;) {
		unsigned taken = tap_take(tap_worker(taps, 0), mbufs, 32);

		for (unsigned i = 0; i < taken; i++) {
			const uint8_t *bytes = rte_pktmbuf_mtod(mbufs[i], const uint8_t *);

			if (!has_mark(bytes))
				continue;
			assert_int_equal(mbufs[i]->port, 0);
			assert_int_equal(mbufs[i]->pkt_len, FRAME_BYTES);
			assert_int_equal(mark_of(bytes), next++);
		}
		rte_pktmbuf_free_bulk(mbufs, taken);
		if (next == n)
			return;
	}
	fail_msg("frames that Linux sent did not come");
}

static void takes_what_linux_sends_in_order(void **state)
{
	uint8_t bytes[FRAME_BYTES];

	open_module();
	bring_carrier();
	int fd = listen_to_tap(0);

	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 300; i++) {
			fill_frame(bytes, i);
			assert_int_equal(send(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
		}
		take_marks(300);
	}
	close(fd);
	close_module();
	assert_int_equal(count_free(), n_mbufs_free);
}

// Until the thread has taken so many frames from Linux.
static void wait_for_injected(unsigned n)
{
	const uint64_t start_ns = clock_now_ns();

	while (rte_ring_count(tap_worker(taps, 0)->inject) < n) {
		assert_true(clock_now_ns() - start_ns < wait_ns);
		usleep(100);
	}
}

static void keeps_what_linux_sends_in_linux_while_a_worker_stands_still(void **state)
{
	uint8_t bytes[FRAME_BYTES];

	open_module();
	bring_carrier();
	int fd = listen_to_tap(0);

	for (unsigned i = 0; i < 1500; i++) {
		fill_frame(bytes, i);
		assert_int_equal(send(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
		// More than that Linux may keep for us while the thread gets no core.
		if (i % 64 == 0)
			wait_for_injected(MIN_OF(i, 1000u));
	}
	assert_in_range(rte_ring_count(tap_worker(taps, 0)->inject), 1000, RINGS_INJECT);
	take_marks(1500);
	close(fd);
}

static void writes_a_frame_in_several_buffers_as_one(void **state)
{
	struct rte_mbuf *first, *second;
	uint8_t bytes[FRAME_BYTES], seen[2048];

	open_module();
	int fd = listen_to_tap(0);
	fill_frame(bytes, 5);
	first = rte_pktmbuf_alloc(port_pool(ports, 0));
	second = rte_pktmbuf_alloc(port_pool(ports, 0));
	memcpy(rte_pktmbuf_append(first, 50), bytes, 50);
	memcpy(rte_pktmbuf_append(second, FRAME_BYTES - 50), bytes + 50, FRAME_BYTES - 50);
	assert_int_equal(rte_pktmbuf_chain(first, second), 0);
	first->port = 0;
	rte_ring_sp_enqueue(tap_worker(taps, 0)->punt[CLASS_HOST], first);
	do
		assert_true(recv(fd, seen, sizeof(seen), 0) > 0);
	while (!has_mark(seen));
	assert_memory_equal(seen, bytes, FRAME_BYTES);
	close(fd);
	close_module();
	assert_int_equal(count_free(), n_mbufs_free);
}

static void drops_a_frame_from_linux_that_fits_no_buffer_and_goes_on(void **state)
{
	static uint8_t large[3000];
	uint8_t bytes[FRAME_BYTES];

	open_module();
	bring_carrier();
	assert_int_equal(run("ip -n %s link set tw0 mtu 4000", namespace_name), 0);
	int fd = listen_to_tap(0);

	fill_frame(large, 0);
	fill_frame(bytes, 0);
	assert_int_equal(send(fd, large, sizeof(large), 0), sizeof(large));
	assert_int_equal(send(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	take_marks(1);
	tap_poll(taps);
	assert_int_equal(taps->taps[0].n_too_long, 1);
	assert_true(taps->taps[0].said_too_long);
	close(fd);
}

static void lends_buffers_when_the_pool_has_some_again(void **state)
{
	struct rte_mempool *pool = rte_pktmbuf_pool_create("few", 63, 0, 0, 2176, SOCKET_ID_ANY);
	struct rte_mbuf *mbufs[RINGS_BULK], *taken[1];
	struct tap_worker worker;

	assert_non_null(pool);
	assert_int_equal(tap_worker_make(&worker, settings.class), 0);
	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, mbufs, RINGS_BULK), 0);
	rings_lend(&worker, pool);
	assert_int_equal(rte_ring_count(worker.empty), 0);
	assert_int_equal(worker.n_owed, RINGS_INJECT);
	rte_pktmbuf_free_bulk(mbufs, RINGS_BULK);
	assert_int_equal(tap_take(&worker, taken, 1), 0);
	assert_int_equal(rte_ring_count(worker.empty), RINGS_BULK);
	assert_int_equal(worker.n_owed, RINGS_INJECT - RINGS_BULK);
	tap_worker_free(&worker);
	assert_int_equal(rte_mempool_avail_count(pool), 63);
	rte_mempool_free(pool);
}

static void counts_what_a_tap_that_is_down_refuses(void **state)
{
	open_module();
	run("ip -n %s link set tw0 down", namespace_name);
	assert_true(punt(0, VERDICT_LOCAL, 0));
	settle();
	assert_int_equal(sum_tap(VERDICT_TAP_REFUSED), 1);
}

int main(void)
{
#define ROOM_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		ROOM_TEST(hands_punted_packets_to_the_tap_of_their_port),
		ROOM_TEST(serves_the_highest_class_first),
		ROOM_TEST(drops_what_is_over_its_class_s_limit),
		ROOM_TEST(counts_what_lies_in_the_rings_at_the_end),
		ROOM_TEST(takes_what_linux_sends_in_order),
		ROOM_TEST(keeps_what_linux_sends_in_linux_while_a_worker_stands_still),
		ROOM_TEST(writes_a_frame_in_several_buffers_as_one),
		ROOM_TEST(drops_a_frame_from_linux_that_fits_no_buffer_and_goes_on),
		ROOM_TEST(lends_buffers_when_the_pool_has_some_again),
		ROOM_TEST(counts_what_a_tap_that_is_down_refuses),
	};

	return cmocka_run_group_tests(tests, open_ports, close_ports);
}
