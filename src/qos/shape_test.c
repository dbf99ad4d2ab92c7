// The shaper in virtual time: rates, shares, delays, and random operations with their account.
// Tests only.
#include "qos/shape_node.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HZ 1000000000ull // a tick is a nanosecond
#define US 1000ull
#define MS 1000000ull
enum { MTU = 1518, MOST = 200000, SUBSCRIBERS = 1100, SLOT_US = 5 };

struct last {
	uint64_t order[SHAPE_CLASSES][SHAPE_FLOWS];
};

struct bed {
	struct shape *shape;
	struct shape_config config;
	uint64_t now, n_enqueued, n_sent, n_dropped[SHAPE_DROPS];
	struct shape_packet *packets, **free; // free: a stack
	unsigned n_free;
	uint64_t *order;   // by packet: n_enqueued when it was enqueued
	struct last *last; // by subscriber: what has been sent
	bool has_fair;     // flows of a class may overtake each other
	uint64_t bytes[SUBSCRIBERS], class_bytes[SHAPE_CLASSES];
	uint64_t longest[SHAPE_CLASSES]; // delay
	struct shape_drops drops;
};

static const struct shape_profile plain_profile = {.strict_percent = 50,
	.weight = {0, 1, 1, 1},
	.target_us = 10000000, // CoDel does not drop
	.interval_us = 10000000,
	.limit_us = 100000,
	.limit_bytes = 1u << 30};

static void set(struct bed *bed, enum shape_level level, uint32_t number,
	const struct shape_setting *setting)
{
	struct shape_terms terms;
	struct error error;

	assert_int_equal(shape_terms_of(&bed->config, setting, level, &terms, &error), 0);
	assert_int_equal(shape_set(bed->shape, level, number, &terms, bed->now), 0);
}

// At 16 us of the rate, at least two MTU and what the weight needs.
static struct shape_setting rate_of(uint64_t bits, uint16_t weight)
{
	const uint64_t burst = MAX_OF(bits / 8 / 50000, 2 * MTU);

	return (struct shape_setting){.bits = bits,
		.burst = MAX_OF(burst, (uint64_t)weight * SHAPE_WEIGHT_BYTES),
		.weight = weight};
}

static void open_bed(struct bed *bed, uint64_t port_bits, uint64_t aggregate_bits)
{
	struct shape_setting port = rate_of(port_bits, 16), aggregate = rate_of(aggregate_bits, 16);
	struct error error;

	memset(bed, 0, sizeof(*bed));
	bed->config = (struct shape_config){.hz = HZ,
		.n_ports = 2,
		.n_aggregates = 4,
		.n_subscribers = SUBSCRIBERS,
		.most_held = MOST / 2,
		.mtu = MTU};
	bed->now = 123456789;
	assert_int_equal(shape_open(&bed->shape, &bed->config, bed->now, &error), 0);
	assert_int_equal(shape_set_profile(bed->shape, 0, &plain_profile, &error), 0);
	bed->packets = calloc(MOST, sizeof(*bed->packets));
	bed->free = calloc(MOST, sizeof(struct shape_packet *));
	bed->order = calloc(MOST, sizeof(*bed->order));
	bed->last = calloc(SUBSCRIBERS, sizeof(*bed->last));
	assert_true(bed->packets && bed->free && bed->order && bed->last);
	for (unsigned i = 0; i < MOST; i++)
		bed->free[bed->n_free++] = &bed->packets[i];
	set(bed, SHAPE_PORT, 0, &port);
	set(bed, SHAPE_AGGREGATE, 0, &aggregate);
	set(bed, SHAPE_AGGREGATE, 1, &aggregate);
}

static void take_drops(struct bed *bed)
{
	for (unsigned i = 0; i < bed->drops.n; i++) {
		bed->n_dropped[bed->drops.drop[i].reason]++;
		bed->free[bed->n_free++] = bed->drops.drop[i].packet;
	}
	bed->drops.n = 0;
}

static void balance(const struct bed *bed)
{
	const struct shape_totals *totals = shape_totals(bed->shape);
	uint64_t dropped = 0;

	for (unsigned i = 0; i < SHAPE_DROPS; i++) {
		assert_int_equal(totals->dropped[i], bed->n_dropped[i]);
		dropped += totals->dropped[i];
	}
	assert_int_equal(totals->enqueued, bed->n_enqueued);
	assert_int_equal(totals->sent, bed->n_sent);
	assert_int_equal(totals->enqueued, totals->sent + dropped + totals->held);
	assert_int_equal(bed->n_free + totals->held, MOST);
}

static void close_bed(struct bed *bed)
{
	uint32_t next = 0;
	bool is_done;

	balance(bed);
	do {
		is_done = shape_flush_port(bed->shape, 0, &next, &bed->drops);
		take_drops(bed);
	} while (!is_done);
	balance(bed);
	assert_int_equal(shape_totals(bed->shape)->held, 0);
	shape_close(bed->shape);
	free(bed->packets);
	free(bed->free);
	free(bed->order);
	free(bed->last);
}

static void put(struct bed *bed, uint32_t subscriber, uint8_t class, uint16_t bytes)
{
	struct shape_packet *packet = bed->free[--bed->n_free];

	*packet = (struct shape_packet){.bytes = bytes,
		.class = class,
		.subflow = (uint8_t)rand(),
		.for_caller = subscriber};
	bed->order[packet - bed->packets] = ++bed->n_enqueued;
	shape_enqueue(bed->shape, bed->now, &subscriber, &packet, 1, &bed->drops);
	take_drops(bed);
}

// First in, first out.
static void check_order(struct bed *bed, const struct shape_packet *sent)
{
	const unsigned flow = bed->has_fair ? sent->subflow % SHAPE_FLOWS : 0;
	const uint64_t order = bed->order[sent - bed->packets];
	uint64_t *last = &bed->last[sent->for_caller].order[sent->class][flow];

	assert_true(order > *last);
	*last = order;
}

// Sends all that may be sent now. Returns bytes.
static uint64_t send_due(struct bed *bed)
{
	struct shape_packet *sent[SHAPE_BURST];
	uint64_t bytes = 0;
	unsigned n, empty = 0;

	while (empty < 4) { // work is bounded: nothing may come although something is due
		n = shape_dequeue(bed->shape, &(struct shape_round){bed->now, 0, SHAPE_BURST}, sent,
			&bed->drops);
		take_drops(bed);
		empty = n ? 0 : empty + 1;
		for (unsigned i = 0; i < n; i++) {
			const uint64_t delay = bed->now - sent[i]->since;

			check_order(bed, sent[i]);
			bytes += sent[i]->bytes;
			bed->bytes[sent[i]->for_caller] += sent[i]->bytes;
			bed->class_bytes[sent[i]->class] += sent[i]->bytes;
			bed->longest[sent[i]->class] = MAX_OF(bed->longest[sent[i]->class], delay);
			bed->free[bed->n_free++] = sent[i];
		}
		bed->n_sent += n;
	}
	return bytes;
}

static void keep_backlog(struct bed *bed, uint32_t first, uint32_t end, unsigned n)
{
	for (uint32_t i = first; i < end; i++)
		while (shape_held(bed->shape, i) < n)
			put(bed, i, 1, MTU);
}

static void rates_are_exact(void **state)
{
	static const uint64_t rates[] = {64000, 1000000, 33333333, 1000000000, 10000000000};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(rates); i++) {
		const uint64_t packet_ns = MTU * 8 * HZ / rates[i];
		const uint64_t step = MAX_OF(MIN_OF(packet_ns / 3, 500 * US), 4 * US);
		const struct shape_setting setting = rate_of(rates[i], 16);
		struct bed bed;
		uint64_t began, bytes = 0;

		open_bed(&bed, 400000000000, 100000000000);
		set(&bed, SHAPE_SUBSCRIBER, 0, &setting);
		began = bed.now;
		while (bed.now < began + 4000 * packet_ns) {
			keep_backlog(&bed, 0, 1, 8 + 4 * (unsigned)(step / packet_ns));
			bytes += send_due(&bed);
			bed.now += step;
		}
		const double got = (double)bytes * 8 * HZ / (double)(bed.now - began);
		assert_true(fabs(got / (double)rates[i] - 1) < 0.001);
		close_bed(&bed);
	}
}

static void classes_share_by_weight(void **state)
{
	const struct shape_profile profile = {.strict_percent = 20,
		.weight = {0, 1, 3, 8},
		.target_us = 10000000,
		.interval_us = 10000000,
		.limit_us = 10000000,
		.limit_bytes = 1u << 30};
	const struct shape_setting setting = rate_of(100000000, 16);
	static const double share[] = {0.2, 0.8 / 12, 0.8 / 4, 0.8 * 8 / 12};
	struct bed bed;
	uint64_t bytes = 0;

	(void)state;
	open_bed(&bed, 10000000000, 10000000000);
	assert_int_equal(shape_set_profile(bed.shape, 0, &profile, NULL), 0);
	set(&bed, SHAPE_SUBSCRIBER, 0, &setting);
	for (unsigned class = 0; class < SHAPE_CLASSES; class ++)
		for (unsigned i = 0; i < 12000; i++)
			put(&bed, 0, class, class & 1 ? 400 + i % 1000 : MTU);
	for (unsigned i = 0; i < 20000; i++, bed.now += 20 * US)
		bytes += send_due(&bed);
	for (unsigned class = 0; class < SHAPE_CLASSES; class ++)
		assert_true(fabs((double)bed.class_bytes[class] / (double)bytes / share[class] -
				    1) < 0.01);
	close_bed(&bed);
}

static void a_thousand_equal_subscribers_get_equal_shares(void **state)
{
	const struct shape_setting setting = rate_of(20000000, 16);
	double sum = 0, squares = 0;
	struct bed bed;

	(void)state;
	open_bed(&bed, 10000000000, 1000000000);
	for (unsigned i = 0; i < 1000; i++)
		set(&bed, SHAPE_SUBSCRIBER, i, &setting);
	for (unsigned i = 0; i < 30000; i++, bed.now += 20 * US) {
		if (i % 100 == 0)
			keep_backlog(&bed, 0, 1000, 8);
		send_due(&bed);
	}
	for (unsigned i = 0; i < 1000; i++) {
		sum += (double)bed.bytes[i];
		squares += (double)bed.bytes[i] * (double)bed.bytes[i];
	}
	assert_true(fabs(sum * 8 / 0.6 / 1e9 - 1) < 0.001); // the parent's rate
	assert_true(sum * sum / (1000 * squares) >= 0.999);
	close_bed(&bed);
}

// 100 Mbit/s for children of 10, 20, 60 (weight 16) and 80 (weight 32): the two that want less
// than their share get all, the others share the rest by weight.
static void parents_share_their_rate_by_weight(void **state)
{
	static const uint64_t mbits[] = {10, 20, 60, 80};
	static const double want[] = {10, 20, 70.0 / 3, 140.0 / 3};
	struct bed bed;

	(void)state;
	open_bed(&bed, 10000000000, 100000000);
	for (unsigned i = 0; i < 4; i++) {
		const struct shape_setting setting = rate_of(mbits[i] * 1000000, i == 3 ? 32 : 16);

		set(&bed, SHAPE_SUBSCRIBER, i, &setting);
	}
	for (unsigned i = 0; i < 100000; i++, bed.now += 20 * US) {
		keep_backlog(&bed, 0, 4, 8);
		send_due(&bed);
	}
	for (unsigned i = 0; i < 4; i++)
		assert_true(fabs((double)bed.bytes[i] * 8 / 2e6 / want[i] - 1) < 0.01);
	close_bed(&bed);
}

static void strict_packets_wait_for_one_mtu_at_most(void **state)
{
	const struct shape_setting setting = rate_of(10000000, 16);
	const uint64_t mtu_ns = MTU * 8 * HZ / setting.bits;
	struct bed bed;

	(void)state;
	open_bed(&bed, 10000000000, 10000000000);
	set(&bed, SHAPE_SUBSCRIBER, 0, &setting);
	for (unsigned i = 0; i < 200000; i++, bed.now += 10 * US) {
		keep_backlog(&bed, 0, 1, 20);
		if (i % 97 == 0)
			put(&bed, 0, 0, 200); // 1.65 of its 5 Mbit/s
		send_due(&bed);
	}
	assert_true(bed.class_bytes[0] > 400000);
	assert_true(bed.longest[0] <= mtu_ns + (SLOT_US + 10) * US);
	close_bed(&bed);
}

static void a_stalled_worker_sends_no_more_than_a_burst(void **state)
{
	struct shape_setting setting = rate_of(100000000, 16);
	struct bed bed;

	(void)state;
	setting.burst = 20000;
	open_bed(&bed, 10000000000, 10000000000);
	set(&bed, SHAPE_SUBSCRIBER, 0, &setting);
	for (unsigned stall_ms = 1; stall_ms < 100000; stall_ms *= 3) {
		keep_backlog(&bed, 0, 1, 100);
		send_due(&bed);
		bed.now += stall_ms * MS;
		const uint64_t bytes = send_due(&bed);
		assert_true(bytes <= 20000 + MTU);
		assert_true(bytes >= MIN_OF(20000, stall_ms * 12500 - MTU));
	}
	close_bed(&bed);
}

static void changes_of_the_rate_give_no_bytes(void **state)
{
	const struct shape_setting slow = rate_of(1000000, 16), fast = rate_of(1000000000, 16);
	struct bed bed;
	uint64_t bytes = 0, began;

	(void)state;
	open_bed(&bed, 10000000000, 10000000000);
	set(&bed, SHAPE_SUBSCRIBER, 0, &slow);
	began = bed.now;
	for (unsigned i = 0; i < 40000; i++, bed.now += 25 * US) {
		keep_backlog(&bed, 0, 1, 8);
		for (unsigned k = 0; k < 5; k++) { // ends with the slow one
			set(&bed, SHAPE_SUBSCRIBER, 0, &fast);
			set(&bed, SHAPE_SUBSCRIBER, 0, &slow);
		}
		bytes += send_due(&bed);
	}
	assert_true(bytes <= (bed.now - began) / 8000 + slow.burst + MTU);
	assert_true(bytes >= (bed.now - began) / 8000 * 99 / 100 - MTU);
	set(&bed, SHAPE_SUBSCRIBER, 0, &fast); // in force at once, whatever it owed
	bed.now += 100 * US;
	keep_backlog(&bed, 0, 1, 8);
	assert_true(send_due(&bed) >= 3 * MTU);
	close_bed(&bed);
}

// RFC 8289 as its pseudocode has it, over an array.
struct model {
	const uint64_t *since;
	unsigned next, end, n_dropped;
	uint64_t first_above, drop_next, target, interval;
	uint32_t count, last_count;
	bool dropping;
};

static bool model_pop(struct model *m, uint64_t now, unsigned *packet)
{
	if (m->next == m->end) {
		m->first_above = 0;
		return false;
	}
	*packet = m->next++;
	if (now - m->since[*packet] < m->target || (m->end - m->next) * 1000 <= MTU) {
		m->first_above = 0;
		return false;
	}
	if (m->first_above == 0) {
		m->first_above = now + m->interval;
		return false;
	}
	return now >= m->first_above;
}

static uint64_t model_step(const struct model *m, uint64_t t)
{
	return t + (uint64_t)floorl((long double)m->interval / sqrtl(m->count));
}

// Returns the packet that is sent; the caller sees drops as gaps.
static unsigned model_take(struct model *m, uint64_t now)
{
	unsigned packet = UINT32_MAX;
	bool ok = model_pop(m, now, &packet);

	if (m->dropping) {
		if (!ok)
			m->dropping = false;
		while (m->dropping && now >= m->drop_next) {
			m->n_dropped++;
			m->count++;
			ok = model_pop(m, now, &packet);
			if (!ok)
				m->dropping = false;
			else
				m->drop_next = model_step(m, m->drop_next);
		}
	} else if (ok) {
		m->n_dropped++;
		model_pop(m, now, &packet);
		m->dropping = true;
		const uint32_t delta = m->count - m->last_count;
		const int64_t since = (int64_t)(now - m->drop_next);
		m->count = delta > 1 && since < (int64_t)(16 * m->interval) ? delta : 1;
		m->drop_next = model_step(m, now);
		m->last_count = m->count;
	}
	return packet;
}

// Load alternates between more and less than the queue sends, so that it enters and leaves the
// dropping state with and without a memory of the last time.
static void codel_drops_what_a_plain_model_drops(void **state)
{
	enum { N = 30000 };
	static struct shape_packet packet[N + 1];
	static uint64_t since[N + 1];
	static struct shape_drops drops;
	const struct codel_terms terms = {5 * MS, 100 * MS, MTU, false};
	struct shape_queue queue = {.head = NULL};
	struct model model = {.since = since, .target = 5 * MS, .interval = 100 * MS};
	uint64_t now = 1000 * MS, arrival = now;

	(void)state;
	srand(29);
	while (model.end < N) {
		const uint64_t phase = now / (700 * MS) % 3;

		for (; arrival <= now && model.end < N; model.end++) {
			struct shape_packet *p = &packet[model.end];

			*p = (struct shape_packet){.bytes = 1000, .since = arrival};
			since[model.end] = arrival;
			if (queue.head)
				queue.tail->next = p;
			else
				queue.head = p;
			queue.tail = p;
			queue.bytes += 1000;
			arrival += (phase == 0          ? 600
					   : phase == 1 ? 1300
							: 900) *
			                   US +
			           (uint64_t)rand() % 997;
		}
		drops.n = (unsigned)rand() % 2 ? 0 : ARRAY_LEN(drops.drop) - 1;
		struct shape_packet *sent;
		while (!(sent = codel_take(&queue, &terms, now, &drops)) && queue.head)
			drops.n = ARRAY_LEN(drops.drop) - 1; // full: once more
		const unsigned want = model_take(&model, now);
		assert_ptr_equal(sent, want == UINT32_MAX ? NULL : &packet[want]);
		now += 1000 * US + (uint64_t)rand() % 1009;
	}
	assert_true(model.n_dropped > 100);
}

static void the_control_law_is_exact(void **state)
{
	(void)state;
	for (uint64_t count = 1; count < UINT32_MAX; count += count / 50 + 1) {
		const long double want = 100000000 / sqrtl(count);
		const uint64_t got = codel_step(100000000, (uint32_t)count);

		assert_true((long double)got <= want && (long double)got > want - 2);
	}
}

struct random_bed {
	struct bed bed;
	double allowed[SUBSCRIBERS]; // bytes that its rates have allowed so far
	struct shape_setting setting[SUBSCRIBERS];
};

enum { RANDOM = 40 };

static void change_at_random(struct random_bed *r, uint32_t id)
{
	static const uint64_t rates[] = {64000, 500000, 10000000, 300000000, 10000000000};
	struct shape_setting setting = rate_of(rates[rand() % 5], (uint16_t)(1 + rand() % 30));

	setting.parent = (uint32_t)rand() % 2;
	setting.profile = (uint8_t)(rand() % 3);
	set(&r->bed, SHAPE_SUBSCRIBER, id, &setting);
	r->setting[id] = setting;
	r->allowed[id] += 2; // rounding
}

// Nobody has to wait who is due, and whose aggregate and port are, but for slots of the wheel: of
// one that was put into the wheel, and of that which is not over.
static void nobody_waits_for_nothing(const struct bed *bed)
{
	const struct shape *s = bed->shape;
	const uint64_t slots = 2ull << s->slot_shift;

	for (unsigned i = 0; i < RANDOM; i++) {
		uint32_t id = s->first[SHAPE_SUBSCRIBER] + i;
		uint64_t due = s->node[id].classes == 1 ? s->node[id].strict_due : 0;

		if (!s->node[id].classes)
			continue;
		for (unsigned level = 0; level <= SHAPE_SUBSCRIBER; level++) {
			due = MAX_OF(due, s->node[id].due);
			id = s->node[id].parent;
		}
		assert_true(due + slots > bed->now);
	}
}

// Any mix of operations: the account closes after each, nobody gets more than its rate and one
// burst, packets of a flow keep their order, and a queue that may send does not wait.
static void random_operations_keep_the_account(void **state)
{
	static struct random_bed r;
	struct bed *bed = &r.bed;
	const struct shape_profile fair = {80, {0, 1, 2, 3}, true, false, true, 5000, 100000, 50000,
					   1 << 20, 300},
				   short_ = {10, {0, 5, 1, 1}, false, false, false, 1000, 5000,
					   2000, 40000, 0};

	(void)state;
	srand(8290);
	open_bed(bed, 2000000000, 900000000);
	bed->has_fair = true;
	assert_int_equal(shape_set_profile(bed->shape, 1, &fair, NULL), 0);
	assert_int_equal(shape_set_profile(bed->shape, 2, &short_, NULL), 0);
	for (unsigned i = 0; i < RANDOM; i++)
		change_at_random(&r, i);
	for (unsigned step = 0; step < 60000; step++) {
		const uint32_t id = (uint32_t)rand() % RANDOM;
		const uint64_t ticks = (uint64_t)rand() % (rand() % 500 ? 40 * US : 30 * MS);

		for (int n = rand() % 30; n > 0; n--)
			put(bed, id, (uint8_t)(rand() % 4), (uint16_t)(64 + rand() % 1455));
		if (rand() % 50 == 0)
			change_at_random(&r, (uint32_t)rand() % RANDOM);
		if (rand() % 300 == 0)
			shape_flush(bed->shape, (uint32_t)rand() % RANDOM, &bed->drops);
		take_drops(bed);
		if (rand() % 900 == 0)
			put(bed, SUBSCRIBERS + id, 0, 64);
		bed->now += ticks;
		for (unsigned i = 0; i < RANDOM; i++)
			r.allowed[i] += (double)ticks * (double)r.setting[i].bits / 8e9;
		if (rand() % 4) {
			send_due(bed);
			nobody_waits_for_nothing(bed);
		}
		balance(bed);
		for (unsigned i = 0; i < RANDOM; i++)
			assert_true((double)bed->bytes[i] <= r.allowed[i] + 2 * MTU + 40000);
	}
	for (unsigned i = 0; i < RANDOM; i++) // nobody is forgotten
		assert_true(bed->bytes[i] > 0);
	bed->now += 100000 * MS; // all that is left comes out
	for (unsigned i = 0; i < 3000 && shape_totals(bed->shape)->held; i++, bed->now += 300 * MS)
		send_due(bed);
	assert_int_equal(shape_totals(bed->shape)->held, 0);
	close_bed(bed);
}

static void a_million_subscribers_cost_a_line_each(void **state)
{
	enum { N = 1 << 20, ACTIVE = 64000, EACH = 2 };
	const struct shape_config config = {HZ, 1, 1000, N, 2 * ACTIVE * EACH, MTU};
	struct shape_packet *packet = calloc(ACTIVE * EACH, sizeof(*packet));
	static struct bed bed;
	struct shape_setting setting = rate_of(10000000, 16), wide = rate_of(400000000000, 16);
	struct error error;

	(void)state;
	assert_non_null(packet);
	bed = (struct bed){.config = config, .now = 1};
	assert_int_equal(shape_open(&bed.shape, &config, 1, &error), 0);
	assert_int_equal(shape_set_profile(bed.shape, 0, &plain_profile, &error), 0);
	set(&bed, SHAPE_PORT, 0, &wide);
	for (unsigned i = 0; i < 1000; i++)
		set(&bed, SHAPE_AGGREGATE, i, &wide);
	for (uint32_t i = 0; i < N; i++) {
		setting.parent = i % 1000;
		set(&bed, SHAPE_SUBSCRIBER, i, &setting);
	}
	assert_true(shape_memory(bed.shape) < (N + 1100) * 64ull + 200000);
	for (uint32_t i = 0; i < ACTIVE * EACH; i++) {
		const uint32_t id = i % ACTIVE * 16;
		struct shape_packet *p = &packet[i];

		*p = (struct shape_packet){.bytes = 1000, .class = 2};
		shape_enqueue(bed.shape, bed.now, &id, &p, 1, &bed.drops);
		assert_int_equal(bed.drops.n, 0);
	}
	assert_true(shape_memory(bed.shape) < (N + 1100) * 64ull + ACTIVE * 192ull + 400000);
	struct shape_packet *sent[SHAPE_BURST];
	uint64_t n = 0;
	for (unsigned i = 0; i < 100000 && n < ACTIVE * EACH; i++, bed.now += US)
		n += shape_dequeue(bed.shape, &(struct shape_round){bed.now, 0, SHAPE_BURST}, sent,
			&bed.drops);
	assert_int_equal(n, ACTIVE * EACH);
	assert_int_equal(shape_totals(bed.shape)->held, 0);
	shape_close(bed.shape);
	free(packet);
}

static void what_is_refused(void **state)
{
	static const struct shape_setting rows[] = {
		{63999, 3000, 0, 16, 0}, {400000000001, 1000000, 0, 16, 0},
		{1000000, MTU - 1, 0, 16, 0}, {1000000, 3000, 0, 0, 0}, {1000000, 3000, 0, 257, 0},
		{1000000, 3000, 0, 32, 0},     // less than the weight needs
		{10000000000, 3000, 0, 16, 0}, // less than 16 us
		{1000000, 1000000, 0, 16, 0},  // 8 s
	};
	struct shape_terms terms;
	struct error error;
	struct bed bed;

	(void)state;
	open_bed(&bed, 10000000000, 10000000000);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(shape_terms_of(&bed.config, &rows[i], SHAPE_SUBSCRIBER, &terms,
					 &error),
			-EINVAL);
	terms = (struct shape_terms){.per_byte = 1 << 24, .burst = 20000, .quantum = 96};
	assert_int_equal(shape_set(bed.shape, SHAPE_SUBSCRIBER, SUBSCRIBERS, &terms, 0), -EINVAL);
	terms.parent = 3; // not open
	assert_int_equal(shape_set(bed.shape, SHAPE_SUBSCRIBER, 0, &terms, 0), -ENOENT);
	terms.parent = 0;
	terms.profile = 9;
	assert_int_equal(shape_set(bed.shape, SHAPE_SUBSCRIBER, 0, &terms, 0), -ENOENT);
	terms.profile = 0;
	assert_int_equal(shape_remove(bed.shape, SHAPE_SUBSCRIBER, 0), -ENOENT);
	assert_int_equal(shape_set(bed.shape, SHAPE_SUBSCRIBER, 0, &terms, bed.now), 0);
	put(&bed, 0, 1, 64);
	assert_int_equal(shape_remove(bed.shape, SHAPE_SUBSCRIBER, 0), -EBUSY);
	assert_int_equal(shape_remove(bed.shape, SHAPE_AGGREGATE, 0), -EBUSY);
	assert_true(shape_flush(bed.shape, 0, &bed.drops));
	take_drops(&bed);
	assert_int_equal(shape_remove(bed.shape, SHAPE_SUBSCRIBER, 0), 0);
	close_bed(&bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_exact),
		cmocka_unit_test(classes_share_by_weight),
		cmocka_unit_test(a_thousand_equal_subscribers_get_equal_shares),
		cmocka_unit_test(parents_share_their_rate_by_weight),
		cmocka_unit_test(strict_packets_wait_for_one_mtu_at_most),
		cmocka_unit_test(a_stalled_worker_sends_no_more_than_a_burst),
		cmocka_unit_test(changes_of_the_rate_give_no_bytes),
		cmocka_unit_test(codel_drops_what_a_plain_model_drops),
		cmocka_unit_test(the_control_law_is_exact),
		cmocka_unit_test(random_operations_keep_the_account),
		cmocka_unit_test(a_million_subscribers_cost_a_line_each),
		cmocka_unit_test(what_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
