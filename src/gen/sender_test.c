// A sender with a fake device, which accepts a configurable number of frames and records their
// stamps.
#include "gen/run.h"

#include "base/bits.h"
#include "gen/fields.h"
#include "gen/flows.h"
#include "gen/pace.h"
#include "gen/timeline.h"
#include "wire/headers.h"
#include "wire/stamp.h"

#include <rte_eal.h>
#include <rte_mbuf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	DEVICE = RTE_MAX_ETHPORTS - 1,
	N_MBUFS = 255,
	HZ = 1000000000,
	KEEP = 4096,
	SAID = 1000, // TSC value passed by the tests, far below the real one
	STAMP_AT = WIRE_ETHER_BYTES + WIRE_IP4_BYTES + WIRE_UDP_BYTES,
};

struct taken {
	struct stamp stamp;
	uint32_t dst;
	uint16_t n_bytes;
};

static struct {
	unsigned room; // frames accepted until this is set again
	bool holds;    // keeps their buffers until the next transmit call, even one without frames
	unsigned n_held;
	struct rte_mbuf *held[N_MBUFS];
	unsigned n;
	struct taken taken[KEEP];
} device;
static void *queue_data[RTE_MAX_QUEUES_PER_PORT] = {&device};
static struct rte_mempool *pool;
static char capture_path[64];
static const struct port_out out = {.device = DEVICE};
static struct gen_stream stream;
static struct sender *sender;
static struct timeline timeline;
static const struct sender_counters *counters;

static void note(const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct taken *taken = &device.taken[device.n++ % KEEP];

	stamp_read(frame + STAMP_AT, &taken->stamp);
	memcpy(&taken->dst, frame + WIRE_ETHER_BYTES + offsetof(struct wire_ip4, dst), 4);
	taken->dst = be32toh(taken->dst);
	taken->n_bytes = m->pkt_len;
	assert_int_equal(m->data_len, m->pkt_len);
	assert_int_equal(m->nb_segs, 1);
	assert_int_equal(m->data_off, RTE_PKTMBUF_HEADROOM);
	assert_int_equal(m->ol_flags, 0);
}

static uint16_t take(void *queue, struct rte_mbuf **mbuf, uint16_t n)
{
	uint16_t n_taken = MIN_OF(n, device.room);

	rte_pktmbuf_free_bulk(device.held, device.n_held);
	device.n_held = 0;
	for (uint16_t i = 0; i < n_taken; i++) {
		note(mbuf[i]);
		// A ring device returns buffers as modified by their receiver.
		mbuf[i]->ol_flags = RTE_MBUF_F_RX_RSS_HASH | RTE_MBUF_F_TX_VLAN;
		mbuf[i]->data_off += 14;
		mbuf[i]->data_len = mbuf[i]->pkt_len = 7;
		if (device.holds)
			device.held[device.n_held++] = mbuf[i];
		else
			rte_pktmbuf_free(mbuf[i]);
	}
	device.room -= n_taken;
	return n_taken;
}

static int set_up_group(void **state)
{
	static char *args[] = {"sender_test", "--no-huge", "-m64", "--no-pci", "--no-telemetry",
		"--no-shconf", "--log-level=error", "--file-prefix=sender_test"};

	if (rte_eal_init(ARRAY_LEN(args), args) < 0)
		return -1;
	pool = rte_pktmbuf_pool_create("sender_test", N_MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	rte_eth_fp_ops[DEVICE].tx_pkt_burst = take;
	rte_eth_fp_ops[DEVICE].txq.data = queue_data;
	snprintf(capture_path, sizeof(capture_path), "/tmp/sender_test.%d", getpid());
	return pool ? 0 : -1;
}

static int tear_down_group(void **state)
{
	rte_mempool_free(pool);
	return rte_eal_cleanup();
}

static int set_up(void **state)
{
	stream = (struct gen_stream){.name = "east",
		.id = 9,
		.recipe = wire_recipe(4),
		.n_flows = 1000,
		.n_sizes = 1,
		.sizes = {{64, 1}},
		.burst = 1};
	for (unsigned i = 0; i < GEN_N_FIELDS; i++)
		stream.fields[i].count = 1;
	stream.fields[GEN_DST_IP] = (struct gen_field){1000, true};
	device.room = UINT32_MAX;
	device.holds = false;
	device.n = 0;
	return 0;
}

static int tear_down(void **state)
{
	uint64_t n_due = 0;

	// Each frame that was sent, including refused ones, was due at some time.
	for (unsigned i = 0; i < TIMELINE_BUCKETS; i++)
		n_due += timeline.count[i];
	assert_true(!sender || n_due == counters->sent);
	sender_destroy(sender);
	sender = NULL;
	unlink(capture_path);
	// No buffer is lost, whatever was refused.
	assert_int_equal(rte_mempool_avail_count(pool), N_MBUFS);
	return 0;
}

static void begin(bool has_backpressure, uint64_t end)
{
	struct sender_terms terms = {&stream, &out, pool, has_backpressure, HZ, 3, &timeline};
	struct error error;

	memset(&timeline, 0, sizeof(timeline));
	timeline_begin(&timeline, SAID, end ? end - SAID : 0);
	assert_int_equal(sender_create(&sender, &terms, &error), 0);
	sender_begin(sender, SAID, end);
	counters = sender_counters(sender);
}

// The recorded frames from `from` on have consecutive sequence numbers from `sequence` on, and the
// right flows.
static void check_frames(unsigned from, uint64_t sequence)
{
	static struct frame_values values;
	struct error error = {""};
	struct fields fields;
	struct flows flows;

	fields_make(&fields, &stream);
	assert_int_equal(flows_make(&flows, &stream, &error), 0);
	for (unsigned i = from; i < device.n; i++, sequence++) {
		fields_seek(&fields, flows_of(&flows, sequence));
		fields_fill(&fields, &values, 1);
		assert_int_equal(device.taken[i].stamp.sequence, sequence);
		assert_int_equal(device.taken[i].dst, values.field[GEN_DST_IP][0]);
		assert_int_equal(device.taken[i].stamp.magic, STAMP_MAGIC | 3);
		assert_int_equal(device.taken[i].stamp.stream, 9);
	}
	flows_free(&flows);
}

static void sends_each_frame_when_it_is_due_with_its_time_and_number(void **state)
{
	stream.pps = 1e6;
	stream.n_frames = 3000;
	begin(false, 0);
	for (unsigned i = 0; i < 3000; i++) {
		uint64_t due = SAID + i * 1000;

		assert_true(sender_turn(sender, due - 1));
		assert_int_equal(device.n, i);
		assert_int_equal(sender_turn(sender, due), i < 2999);
		assert_int_equal(device.n, i + 1);
		assert_int_equal(device.taken[i].stamp.due, due);
	}
	check_frames(0, 0);
	assert_int_equal(counters->sent, 3000);
	assert_int_equal(counters->sent_bytes, 3000 * 64);
	assert_int_equal(counters->late + counters->busy + counters->refused, 0);
	assert_true(counters->first_tsc && counters->first_tsc < counters->last_tsc);
	assert_int_equal(device.taken[2999].stamp.sent, counters->last_tsc & STAMP_40_BITS);
}

static void uses_up_the_numbers_of_frames_that_a_full_ring_refused(void **state)
{
	stream.pps = 1e6;
	begin(true, SAID + 100 * 1000);
	device.room = 10;
	assert_true(sender_turn(sender, SAID + 29 * 1000));
	assert_int_equal(device.n, 10);
	device.room = UINT32_MAX;
	assert_false(
		sender_turn(sender, SAID + 93 * 1000) && sender_turn(sender, SAID + 99 * 1000));
	check_frames(10, 30);
	assert_int_equal(device.n, 80);
	assert_int_equal(counters->sent, 100);
	assert_int_equal(counters->sent_bytes, 100 * 64);
	assert_int_equal(counters->refused, 20);
	assert_int_equal(timeline.count[20 * 1000 / 2048], 2); // refused frames were due, too
	assert_int_equal(counters->late + counters->busy, 0);
}

static void gives_numbers_back_where_a_device_took_no_more(void **state)
{
	stream.pps = 1e6;
	stream.n_sizes = 2;
	stream.sizes[0] = (struct gen_size){64, 2};
	stream.sizes[1] = (struct gen_size){128, 1};
	begin(false, SAID + 100 * 1000);
	device.room = 11;
	assert_true(sender_turn(sender, SAID + 29 * 1000));
	device.room = 0;
	assert_true(sender_turn(sender, SAID + 30 * 1000));
	device.room = UINT32_MAX;
	assert_true(sender_turn(sender, SAID + 93 * 1000));
	assert_false(sender_turn(sender, SAID + 99 * 1000));
	check_frames(0, 0);
	assert_int_equal(device.taken[11].stamp.due, SAID + 31 * 1000);
	assert_int_equal(device.n, 80);
	assert_int_equal(counters->sent, 80);
	assert_int_equal(counters->late, 20);
	assert_int_equal(counters->busy, 20);
	assert_int_equal(timeline.count[20 * 1000 / 2048], 0);
	assert_int_equal(timeline.count[60 * 1000 / 2048], 2);
	assert_int_equal(counters->refused, 0);
	uint64_t bytes = 0;
	for (unsigned i = 0; i < device.n; i++) {
		assert_int_equal(device.taken[i].n_bytes,
			device.taken[i % 3].n_bytes); // the mix continues as if nothing had
		                                      // happened
		bytes += device.taken[i].n_bytes + 4;
	}
	assert_int_equal(counters->sent_bytes, bytes);
}

static void counts_what_it_was_too_late_for(void **state)
{
	const uint64_t gap = GEN_MAX_BURST + 436;

	stream.pps = 1e6;
	begin(true, SAID + 2 * gap * 1000);
	for (unsigned sent = 0; sent < GEN_MAX_BURST; sent += GEN_MAX_BURST)
		assert_true(sender_turn(sender, SAID + (gap - 1) * 1000));
	assert_int_equal(counters->sent, GEN_MAX_BURST);
	assert_int_equal(counters->late, 436);
	assert_int_equal(device.taken[0].stamp.due, SAID + 436 * 1000);
	check_frames(0, 0);
	while (sender_turn(sender, SAID + 5 * gap * 1000))
		;
	assert_int_equal(counters->sent, 2 * GEN_MAX_BURST);
	assert_int_equal(counters->late, 872);
}

static void goes_as_fast_as_the_device_takes_frames(void **state)
{
	stream.n_frames = 300;
	begin(false, 0);
	device.room = 100;
	for (unsigned i = 0; i < 5; i++)
		assert_true(sender_turn(sender, SAID + i));
	assert_int_equal(counters->sent, 100);
	device.room = UINT32_MAX;
	unsigned turns = 1;
	while (sender_turn(sender, SAID + 9))
		turns++;
	assert_int_equal(turns, 4);
	assert_int_equal(counters->sent, 300);
	assert_int_equal(counters->late + counters->busy, 0);
	check_frames(0, 0);
}

static void waits_for_buffers_and_loses_no_time_of_a_frame(void **state)
{
	struct rte_mbuf *held[N_MBUFS];

	stream.pps = 1e6;
	begin(true, SAID + 20 * 1000);
	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, held, N_MBUFS), 0);
	assert_true(sender_turn(sender, SAID + 9 * 1000));
	assert_int_equal(device.n, 0);
	rte_pktmbuf_free_bulk(held, N_MBUFS);
	assert_true(sender_turn(sender, SAID + 9 * 1000));
	assert_int_equal(device.n, 10);
	assert_int_equal(device.taken[0].stamp.due, SAID);
	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, held, N_MBUFS), 0);
	assert_false(sender_turn(sender, SAID + 20 * 1000));
	rte_pktmbuf_free_bulk(held, N_MBUFS);
	assert_int_equal(counters->sent, 10);
	assert_int_equal(counters->late, 10);
}

static void gives_back_the_buffers_of_the_run_before(void **state)
{
	stream.n_frames = GEN_MAX_BURST;
	device.holds = true;
	begin(false, 0);
	assert_false(sender_turn(sender, SAID));
	assert_int_equal(rte_mempool_avail_count(pool), N_MBUFS - GEN_MAX_BURST);
	sender_prepare(sender);
	assert_int_equal(rte_mempool_avail_count(pool), N_MBUFS);
	assert_int_equal(device.n, GEN_MAX_BURST);
}

static void refuses_frames_that_are_longer_than_the_buffers(void **state)
{
	struct sender_terms terms = {&stream, &out, pool, false, HZ, 3, &timeline};
	struct error error;

	stream.sizes[0].bytes = 2053; // a buffer holds 2048
	assert_int_equal(sender_create(&sender, &terms, &error), -22);
	assert_string_equal(error.text, "stream east: frames of 2053 bytes exceed the MTU of its "
					"port; raise the MTU or use a smaller size");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void frames_of_flows_in_no_turn_keep_them_when_a_device_took_no_more(void **state)
{
	stream.distribution = GEN_ZIPF;
	stream.exponent = 1.1;
	stream.seed = 5;
	stream.pps = 1e6;
	begin(false, SAID + 100 * 1000);
	device.room = 11;
	assert_true(sender_turn(sender, SAID + 29 * 1000));
	device.room = UINT32_MAX;
	sender_turn(sender, SAID + 93 * 1000);
	sender_turn(sender, SAID + 99 * 1000);
	check_frames(0, 0);
	assert_int_equal(device.n, 81);
	assert_int_equal(counters->sent, 81);
	assert_int_equal(counters->busy, 19);
}

// Three UDP frames at 1 Mpps, repeated; the second has no space for a stamp.
static void read_capture(bool stamps)
{
	static const struct gen_port port = {"left", {{2, 0, 0, 0, 0, 0x11}}, 0, 0};
	static struct gen_streams streams;
	const uint32_t head[] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 65535, 1};
	const uint32_t frame_head[] = {0, 0, 60, 60};
	uint8_t frame[60] = {[12] = 8, [14] = 0x45, [17] = 46, [23] = WIRE_PROTO_UDP};
	struct error error = {""};
	FILE *file = fopen(capture_path, "w");

	assert_non_null(file);
	fwrite(head, sizeof(head), 1, file);
	for (unsigned i = 0; i < 3; i++) {
		frame[39] = i == 1 ? 0 : 26;
		fwrite(frame_head, sizeof(frame_head), 1, file);
		fwrite(frame, sizeof(frame), 1, file);
	}
	assert_int_equal(fclose(file), 0);
	json_t *list = json_pack("[{s:s, s:s, s:s, s:s, s:s, s:b}]", "name", "east", "from", "left",
		"to", "left", "pcap", capture_path, "rate", "1 Mpps", "stamp", stamps);
	assert_int_equal(gen_read_streams(&streams, list, &port, 1, &error), 0);
	json_decref(list);
	stream = streams.stream[0];
}

// Sends sixty of its frames, of which a full ring refuses the eleventh to the thirtieth.
static void send_capture(bool stamps)
{
	read_capture(stamps);
	begin(true, SAID + 60 * 1000);
	device.room = 10;
	assert_true(sender_turn(sender, SAID + 29 * 1000));
	device.room = UINT32_MAX;
	sender_turn(sender, SAID + 59 * 1000);
	assert_int_equal(device.n, 40);
}

static void counts_stamped_frames_of_a_capture_that_a_full_ring_refused(void **state)
{
	send_capture(true);
	assert_int_equal(device.taken[10].stamp.sequence, 20); // two out of three are stamped
	assert_int_equal(device.taken[10].stamp.due, SAID + 30 * 1000);
	assert_int_equal(counters->sent, 40);
	assert_int_equal(counters->unstamped, 20);
	assert_int_equal(counters->sent_bytes, 60 * 64);
	assert_int_equal(counters->refused, 13);
	assert_int_equal(counters->late + counters->busy, 0);
}

static void never_sent_what_a_full_ring_refused_of_a_capture_without_stamps(void **state)
{
	send_capture(false);
	assert_int_equal(counters->unstamped, 40);
	assert_int_equal(counters->sent_bytes, 40 * 64);
	assert_int_equal(counters->sent + counters->refused, 0);
	assert_int_equal(counters->late, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sends_each_frame_when_it_is_due_with_its_time_and_number),
		TEST(uses_up_the_numbers_of_frames_that_a_full_ring_refused),
		TEST(gives_numbers_back_where_a_device_took_no_more),
		TEST(counts_what_it_was_too_late_for),
		TEST(goes_as_fast_as_the_device_takes_frames),
		TEST(waits_for_buffers_and_loses_no_time_of_a_frame),
		TEST(gives_back_the_buffers_of_the_run_before),
		TEST(refuses_frames_that_are_longer_than_the_buffers),
		TEST(frames_of_flows_in_no_turn_keep_them_when_a_device_took_no_more),
		TEST(counts_stamped_frames_of_a_capture_that_a_full_ring_refused),
		TEST(never_sent_what_a_full_ring_refused_of_a_capture_without_stamps),
	};

	return cmocka_run_group_tests(tests, set_up_group, tear_down_group);
}
