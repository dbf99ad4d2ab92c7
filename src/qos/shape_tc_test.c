// Plain queues and ECN: the shaper in virtual time beside integer models of Linux's token buckets
// (tbf, htb) and of CoDel with ECN. Tests only.
#include "qos/shape_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HZ 1000000000ull // a tick is a nanosecond
#define MS 1000000ull
// A step is a whole number of slots of the wheel, so that nothing waits for a slot.
enum { MTU = 1538, FRAME = 1514, MOST = 4096, ALL = 1 << 17, STEP = 8192, STEPS = 60000 };

static const struct shape_profile fifo = {.strict_percent = 50,
	.weight = {0, 1, 1, 1},
	.is_fifo = true,
	.interval_us = 1,
	.limit_bytes = UINT32_MAX};

struct bed {
	struct shape *shape;
	struct shape_config config;
	struct shape_packet packet[ALL];
	uint64_t now;
	uint32_t n; // packets that have come
	struct shape_drops drops;
};

static void open_bed(struct bed *bed, uint64_t bits, uint64_t burst,
	const struct shape_profile *profile)
{
	const struct shape_setting wide = {SHAPE_MOST_RATE, SHAPE_MOST_RATE / 8000, 0, 1, 0};
	const struct shape_setting setting = {bits, burst, 0, 1, 0};
	struct shape_terms terms;
	struct error error;

	memset(bed, 0, sizeof(*bed));
	bed->config = (struct shape_config){HZ, 1, 1, 1, MOST, MTU};
	bed->now = STEP;
	assert_int_equal(shape_open(&bed->shape, &bed->config, bed->now, &error), 0);
	assert_int_equal(shape_set_profile(bed->shape, 0, profile, &error), 0);
	for (enum shape_level level = SHAPE_PORT; level <= SHAPE_SUBSCRIBER; level++) {
		assert_int_equal(shape_terms_of(&bed->config,
					 level == SHAPE_SUBSCRIBER ? &setting : &wide, level,
					 &terms, &error),
			0);
		assert_int_equal(shape_set(bed->shape, level, 0, &terms, bed->now), 0);
	}
	bed->now += HZ - HZ % STEP; // its bucket is full, as Linux's are at first
}

static void close_bed(struct bed *bed)
{
	const struct shape_totals *totals = shape_totals(bed->shape);
	uint64_t dropped = 0;

	for (unsigned i = 0; i < SHAPE_DROPS; i++)
		dropped += totals->dropped[i];
	assert_int_equal(totals->enqueued, totals->sent + dropped + totals->held);
	assert_int_equal(totals->enqueued, bed->n);
	while (!shape_flush(bed->shape, 0, &bed->drops))
		bed->drops.n = 0;
	shape_close(bed->shape);
}

// Returns whether the packet was dropped; no other one is.
static bool put(struct bed *bed, uint32_t bytes)
{
	struct shape_packet *packet = &bed->packet[bed->n++];
	const uint32_t subscriber = 0;

	assert_true(bed->n <= ALL);
	*packet = (struct shape_packet){.bytes = bytes, .class = 3};
	bed->drops.n = 0;
	shape_enqueue(bed->shape, bed->now, &subscriber, &packet, 1, &bed->drops);
	assert_true(bed->drops.n <= 1);
	if (bed->drops.n) {
		assert_ptr_equal(bed->drops.drop[0].packet, packet);
		assert_int_equal(bed->drops.drop[0].reason, SHAPE_DROP_LIMIT);
	}
	return bed->drops.n;
}

// Returns bytes that have left.
static uint64_t send_due(struct bed *bed)
{
	struct shape_packet *sent[SHAPE_BURST];
	uint64_t bytes = 0;

	for (unsigned empty = 0; empty < 4;) {
		const unsigned n = shape_dequeue(bed->shape,
			&(struct shape_round){bed->now, 0, SHAPE_BURST}, sent, &bed->drops);

		for (unsigned i = 0; i < n; i++)
			bytes += sent[i]->bytes;
		empty = n ? 0 : empty + 1;
	}
	return bytes;
}

// A token bucket of Linux, and the plain queue before it. Tokens are bit x ns of its rate. tbf
// sends what it has the tokens for, htb what comes before it has a debt.
struct model {
	bool is_htb;
	uint64_t bits, limit_bytes, limit_packets;
	int64_t tokens, most;
	uint64_t last;
	uint32_t bytes[MOST];
	uint32_t head, tail;
	uint64_t held;
};

#define COST(bytes) ((int64_t)(bytes)*8 * (int64_t)HZ)

static uint64_t model_send(struct model *m, uint64_t now)
{
	uint64_t sent = 0;

	m->tokens = MIN_OF(m->tokens + (int64_t)(m->bits * (now - m->last)), m->most);
	m->last = now;
	while (m->head != m->tail) {
		const uint32_t bytes = m->bytes[m->head % MOST];

		if (m->tokens < (m->is_htb ? 0 : COST(bytes)))
			break;
		m->tokens -= COST(bytes);
		m->held -= bytes;
		m->head++;
		sent += bytes;
	}
	return sent;
}

// Linux sends what it may at once, so that this is not in the queue.
static bool model_put(struct model *m, uint64_t now, uint32_t bytes, uint64_t *sent)
{
	*sent += model_send(m, now);
	if (m->held + bytes > m->limit_bytes || m->tail - m->head >= m->limit_packets)
		return true;
	m->bytes[m->tail++ % MOST] = bytes;
	m->held += bytes;
	*sent += model_send(m, now);
	return false;
}

struct row {
	bool is_htb;
	uint64_t bits, burst, limit_bytes;
	uint32_t limit_packets;
};

// As accel-ppp writes them: 100 ms of the rate, and 50 ms more to wait; and other ones.
static const struct row rows[] = {
	{false, 1000000, 12500, 18750, 0},
	{false, 8000000, 100000, 150000, 0},
	{false, 80000000, 1000000, 1500000, 0},
	{false, 8000000, 6000, 2000, 0},
	{true, 1000000, 12500, 0, 1000},
	{true, 8000000, 100000, 0, 10},
	{true, 80000000, 1600, 0, 3},
};

static struct model model_of(const struct row *row, uint64_t now)
{
	return (struct model){.is_htb = row->is_htb,
		.bits = row->bits,
		.limit_bytes = row->limit_bytes ? row->limit_bytes : UINT64_MAX,
		.limit_packets = row->limit_packets ? row->limit_packets : UINT64_MAX,
		.most = COST(row->burst),
		.tokens = COST(row->burst),
		.last = now};
}

static struct shape_profile profile_of(const struct row *row)
{
	struct shape_profile out = fifo;

	out.limit_bytes = row->limit_bytes ? (uint32_t)row->limit_bytes : UINT32_MAX;
	out.limit_packets = row->limit_packets;
	return out;
}

// A pause now and then, so that the bucket fills; then many at once, or few.
static unsigned arrivals(uint64_t bits, uint64_t now)
{
	const uint64_t phase = now / (100 * MS) % 4;
	const unsigned mean = (unsigned)(bits * STEP / HZ / 8 * 3 / 2);

	if (phase == 0)
		return 0;
	if (rand() % 200 == 0)
		return (unsigned)rand() % 90;
	return (unsigned)rand() % FRAME < mean;
}

static void each_packet_fares_as_in_linux(void **state)
{
	static struct bed bed;

	(void)state;
	srand(31);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		const struct shape_profile profile = profile_of(row);
		uint64_t n_dropped = 0, n_sent = 0;

		open_bed(&bed, row->bits, row->is_htb ? row->burst : row->burst - FRAME, &profile);
		struct model model = model_of(row, bed.now);

		for (unsigned step = 0; step < STEPS; step++, bed.now += STEP) {
			uint64_t ours = send_due(&bed), linuxs = model_send(&model, bed.now);

			for (unsigned k = arrivals(row->bits, bed.now); k; k--) {
				// htb's law does not depend on the length
				const uint32_t bytes =
					row->is_htb ? 60 + (uint32_t)rand() % 1455 : FRAME;
				const bool is_dropped = put(&bed, bytes);

				assert_int_equal(model_put(&model, bed.now, bytes, &linuxs),
					is_dropped);
				n_dropped += is_dropped;
			}
			ours += send_due(&bed);
			assert_int_equal(ours, linuxs);
			n_sent += ours;
		}
		assert_true(n_sent > row->bits / 8 / 4);
		assert_true(n_dropped > 0 || row->limit_packets == 1000);
		close_bed(&bed);
	}
}

// tbf looks at the length of the packet that is to leave, the shaper does not: what it lets pass is
// never more, and at most one frame less.
static void short_packets_pass_one_frame_later_than_tbf_at_most(void **state)
{
	static struct bed bed;
	const struct row row = {false, 8000000, 20000, 0, 0};
	const struct shape_profile profile = profile_of(&row);
	uint64_t ours = 0, linuxs = 0;

	(void)state;
	srand(37);
	open_bed(&bed, row.bits, row.burst - FRAME, &profile);
	struct model model = model_of(&row, bed.now);

	for (unsigned step = 0; step < STEPS; step++, bed.now += STEP) {
		const bool is_pause = bed.now / (100 * MS) % 4 != 1;

		for (unsigned k = is_pause || rand() % 400 ? 0 : 1 + (unsigned)rand() % 8; k; k--) {
			const uint32_t bytes = 60 + (uint32_t)rand() % 1455;

			assert_false(put(&bed, bytes));
			assert_false(model_put(&model, bed.now, bytes, &linuxs));
		}
		ours += send_due(&bed);
		linuxs += model_send(&model, bed.now);
		assert_true(ours <= linuxs && linuxs - ours <= FRAME);
	}
	assert_true(ours > 50000);
	close_bed(&bed);
}

// One burst passes, the queue takes its limit, and all else is dropped; then it leaves at the rate.
static void a_burst_passes_and_the_limit_waits(void **state)
{
	enum { BURST = 20 * FRAME, LIMIT = 7 * FRAME };
	const struct row row = {false, 8000000, BURST, LIMIT, 0};
	const struct shape_profile profile = profile_of(&row);
	static struct bed bed;
	unsigned dropped = 0;

	(void)state;
	open_bed(&bed, row.bits, BURST - FRAME, &profile);
	for (unsigned i = 0; i < 100; i++)
		dropped += put(&bed, FRAME);
	assert_int_equal(dropped, 100 - 20 - 7);
	assert_int_equal(send_due(&bed), BURST);
	assert_int_equal(shape_held(bed.shape, 0), 7);
	const uint64_t began = bed.now;

	for (unsigned i = 1; i <= 7; i++) {
		bed.now = (began + i * FRAME * 1000ull) / STEP * STEP;
		assert_int_equal(send_due(&bed), 0);
		bed.now += STEP;
		assert_int_equal(send_due(&bed), FRAME);
	}
	assert_int_equal(shape_held(bed.shape, 0), 0);
	close_bed(&bed);
}

// With ECN no packet that has it is dropped, and those are marked that would have been.
static void codel_marks_what_has_ecn(void **state)
{
	enum { N = 20000 };
	static struct shape_packet packet[2][N];
	static struct shape_drops drops;
	struct shape_queue queue[2] = {{.head = NULL}};
	unsigned n_dropped = 0, n_marked = 0, end = 0;
	uint64_t now = 1000 * MS;

	(void)state;
	srand(41);
	// The second one has no ECN: what it is told is what a queue without marks does.
	for (unsigned step = 0; end < N; step++, now += 1000000) {
		for (unsigned k = step / 1000 % 2 ? 1 : 1 + !(rand() % 3); k && end < N; k--, end++)
			for (unsigned q = 0; q < 2; q++) {
				struct shape_packet *p = &packet[q][end];

				*p = (struct shape_packet){.bytes = 1000,
					.since = now,
					.has_ecn = !q};
				*(queue[q].head ? &queue[q].tail->next : &queue[q].head) = p;
				queue[q].tail = p;
				queue[q].bytes += p->bytes;
			}
		for (unsigned q = 0; q < 2; q++) {
			const struct codel_terms terms = {5 * MS, 100 * MS, MTU, true};

			drops.n = 0;
			const struct shape_packet *sent =
				codel_take(&queue[q], &terms, now, &drops);

			assert_true(q || !drops.n);
			assert_false(q && sent && sent->is_marked);
			n_marked += !q && sent && sent->is_marked;
			n_dropped += drops.n;
		}
	}
	assert_true(n_marked > 50 && n_dropped > 50);
}

// RFC 8289 with marks: the time between marks is the interval by the root of their number.
static void marks_come_at_the_times_of_rfc_8289(void **state)
{
	static struct shape_packet packet[4000];
	static struct shape_drops drops;
	const struct codel_terms terms = {5 * MS, 100 * MS, MTU, true};
	struct shape_queue queue = {.head = &packet[0], .bytes = 1000 * ARRAY_LEN(packet)};
	uint64_t now = 1000 * MS, next = now + 100 * MS;
	unsigned count = 0;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(packet); i++)
		packet[i] = (struct shape_packet){.next = i + 1 < ARRAY_LEN(packet) ? &packet[i + 1]
		                                                                    : NULL,
			.bytes = 1000,
			.has_ecn = true};
	queue.tail = &packet[ARRAY_LEN(packet) - 1];
	for (unsigned i = 0; i + 2 < ARRAY_LEN(packet); i++, now += MS) {
		const struct shape_packet *sent = codel_take(&queue, &terms, now, &drops);

		assert_ptr_equal(sent, &packet[i]);
		assert_int_equal(sent->is_marked, now >= next);
		if (sent->is_marked)
			next = (count ? next : now) + codel_step(terms.interval, count + 1),
			count++;
	}
	assert_int_equal(drops.n, 0);
	assert_true(count > 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_packet_fares_as_in_linux),
		cmocka_unit_test(short_packets_pass_one_frame_later_than_tbf_at_most),
		cmocka_unit_test(a_burst_passes_and_the_limit_waits),
		cmocka_unit_test(codel_marks_what_has_ecn),
		cmocka_unit_test(marks_come_at_the_times_of_rfc_8289),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
