// What check reads of next hops: their limits and the summary table. Tests only.
#include "datapath/hop_limits.h"

#include "datapath/dice.h"
#include "datapath/judge.h"
#include "datapath/steps.h"
#include "datapath/variant.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 20000, N_PORTS = 256 };

static struct worker worker;
static struct stats_worker stat;
static struct rte_mbuf mbuf[BURST_MAX];
static uint8_t frame[64]; // shared by all packets

// Hops 0 to 599. Every eighth one is not usable, and those beyond FIB_PLAIN_HOPS are not in the
// summary table. Nor are those on port FIB_NOT_PLAIN, which is a valid one. From FAR_HOPS on, ids
// that end in the bits of others.
enum { SOME_HOPS = 600, FAR_HOPS = 1 << 16, LEAST_FRAME = 1000 };
static void make_hops(struct fib_hop_entry all[], uint16_t most[], struct fib_plain_hops *plain)
{
	plain->frame_max = LEAST_FRAME;
	for (unsigned id = 0; id < SOME_HOPS; id++) {
		bool is_plain = id % 8;

		most[id] = LEAST_FRAME + dice(9);
		all[id] = (struct fib_hop_entry){
			.port = id % 32 < 4 ? 254 : dice(N_PORTS),
			.kind = is_plain ? FIB_HOP_PLAIN : FIB_HOP_STOP,
		};
		if (is_plain)
			all[id].frame_max = most[id];
		else
			all[id].verdict = VERDICT_BLACKHOLE;
		if (id < FIB_PLAIN_HOPS)
			plain->port[id] = is_plain ? all[id].port : FIB_NOT_PLAIN;
		most[FAR_HOPS + id] = most[id];
		all[FAR_HOPS + id] = all[id];
		all[FAR_HOPS + id].port = all[id].port ^ 1;
	}
}

// A burst that passes without per-packet checks except for at most `odd` packets.
static void deal(struct burst *b, unsigned n, unsigned odd)
{
	unsigned same = 8 * dice(FIB_PLAIN_HOPS / 8) + 1 + dice(7), spread = dice(3);

	*b = (struct burst){.n = n};
	for (unsigned i = 0; i < BURST_MAX; i++) {
		b->mbuf[i] = &mbuf[i];
		b->frame[i] = frame;
		b->length[i] = 60 + dice(LEAST_FRAME - 59);
		b->ttl[i] = 2 + dice(254);
		b->hop[i] = spread == 0   ? same
		            : spread == 1 ? same / 32 * 32 + 1 + dice(3)
		                          : 8 * dice(FIB_PLAIN_HOPS / 8) + 1 + dice(7);
	}
	for (; odd; odd--) {
		unsigned i = dice(BURST_MAX); // may be past the end
		unsigned kind = dice(6);

		b->ttl[i] = kind == 0 ? dice(2) : b->ttl[i];
		b->length[i] = kind == 1 ? LEAST_FRAME + 1 + dice(9) : b->length[i];
		b->hop[i] = kind == 2 ? dice(SOME_HOPS) : b->hop[i];
		b->hop[i] =
			kind == 3 ? FIB_PLAIN_HOPS + dice(SOME_HOPS - FIB_PLAIN_HOPS) : b->hop[i];
		b->hop[i] = kind == 4 ? b->hop[i] & ~7u : b->hop[i];
		b->hop[i] |= kind == 5 ? FAR_HOPS : 0;
	}
}

static bool may_pass_at_once(const struct burst *b, const struct fib_plain_hops *plain)
{
	for (unsigned i = 0; i < b->n; i++)
		if (b->hop[i] >= FIB_PLAIN_HOPS || plain->port[b->hop[i]] == FIB_NOT_PLAIN ||
			b->ttl[i] <= 1 || b->length[i] > plain->frame_max)
			return false;
	return true;
}

// Packets that pass by the summary table leave as their entries say, and no others pass by it.
static void hops_in_brief_are_no_shortcut(void **state)
{
	static struct fib_hop_entry all[FAR_HOPS + SOME_HOPS];
	static uint16_t most[FAR_HOPS + SOME_HOPS];
	static struct fib_plain_hops plain, none;
	static struct burst dealt, long_way, short_way;
	const uint8_t layer3 = 0;
	const struct fib_view brief = {.hops = all,
		.plain = &plain,
		.frame_max4 = most,
		.layer3_hash = &layer3};
	const struct fib_view whole = {.hops = all,
		.plain = &none,
		.frame_max4 = most,
		.layer3_hash = &layer3};
	unsigned n_passed = 0;

	memset(none.port, FIB_NOT_PLAIN, sizeof(none.port));
	make_hops(all, most, &plain);
	worker = (struct worker){.stat = &stat, .variant = datapath_choose_variant()};
	for (unsigned round = 0; round < ROUNDS; round++) {
		deal(&dealt, round % 2 ? BURST_MAX : dice(BURST_MAX + 1), dice(2));
		long_way = short_way = dealt;
		long_way.view = &whole;
		short_way.view = &brief;
		bool passes = worker.variant->all_plain(&short_way);
		assert_int_equal(passes,
			worker.variant != &datapath_scalar && may_pass_at_once(&dealt, &plain));
		n_passed += passes;
		short_way = dealt;
		short_way.view = &brief;
		worker.n_dropped = 0;
		datapath_check(&worker, &long_way);
		unsigned dropped = worker.n_dropped;
		worker.n_dropped = 0;
		datapath_check(&worker, &short_way);
		assert_int_equal(worker.n_dropped, dropped);
		assert_int_equal(short_way.n, long_way.n);
		assert_int_equal(short_way.has_one_hop, long_way.has_one_hop);
		assert_int_equal(short_way.has_one_port, long_way.has_one_port);
		for (unsigned i = 0; i < long_way.n; i++) {
			assert_ptr_equal(short_way.mbuf[i], long_way.mbuf[i]);
			assert_int_equal(burst_port(&short_way, i), burst_port(&long_way, i));
			assert_int_equal(burst_port(&short_way, i), all[short_way.hop[i]].port);
		}
	}
	assert_true(worker.variant == &datapath_scalar || n_passed > ROUNDS / 4);
}

static uint8_t any_kind(void)
{
	return dice(8) ? FIB_HOP_PLAIN : dice(FIB_HOP_STOP + 1);
}

// Next hops of every kind; the members of the group are not groups. IPv4 packets to some may be
// longer than their entries say.
static void make_any_hops(struct fib_hop_entry all[], uint16_t most[], uint32_t bucket[],
	struct fib_plain_hops *plain)
{
	static const uint8_t verdicts[] = {VERDICT_BLACKHOLE, VERDICT_LOCAL,
		VERDICT_NEIGHBOUR_UNRESOLVED};

	plain->frame_max = LEAST_FRAME;
	memset(plain->port, FIB_NOT_PLAIN, sizeof(plain->port));
	for (unsigned id = 0; id < SOME_HOPS; id++) {
		const uint8_t kind = any_kind();

		all[id] = (struct fib_hop_entry){.port = dice(N_PORTS), .kind = kind};
		most[id] = LEAST_FRAME + dice(5);
		if (kind == FIB_HOP_STOP)
			all[id].verdict = verdicts[dice(ARRAY_LEN(verdicts))];
		else if (kind != FIB_HOP_GROUP)
			all[id].frame_max = LEAST_FRAME + dice(most[id] - LEAST_FRAME + 1);
		if (id < FIB_PLAIN_HOPS && kind == FIB_HOP_PLAIN)
			plain->port[id] = all[id].port;
	}
	for (unsigned i = 0; i < FIB_GROUP_BUCKETS; i++)
		do
			bucket[i] = dice(SOME_HOPS);
		while (all[bucket[i]].kind == FIB_HOP_GROUP);
}

static uint8_t any_ttl(void)
{
	return dice(50) ? 2 + dice(254) : dice(3);
}

static void deal_any(struct burst *b)
{
	unsigned first = dice(SOME_HOPS), n_hops = 1 + (dice(2) ? 0 : dice(SOME_HOPS - first));

	*b = (struct burst){.n = 1 + dice(BURST_MAX), .has = BURST_PACKETS, .is_ip6 = dice(2)};
	b->linux_mask = dice(4) ? 0 : dice(2) ? UINT64_MAX : 1ull << dice(64);
	for (unsigned i = 0; i < BURST_MAX; i++) {
		b->mbuf[i] = &mbuf[i];
		b->frame[i] = frame;
		b->length[i] = dice(30) ? 60 + dice(900) : LEAST_FRAME - 1 + dice(7);
		b->ttl[i] = any_ttl();
		b->hop[i] = first + dice(n_hops);
	}
}

// In the simplest way; no hop is a group.
static enum verdict expected_verdict(const struct burst *b, unsigned i)
{
	const struct fib_hop_entry *hop = &b->view->hops[b->hop[i]];
	const unsigned most = b->is_ip6 ? hop->frame_max : b->view->frame_max4[b->hop[i]];
	enum verdict verdict = hop->kind == FIB_HOP_STOP ? hop->verdict
	                       : b->ttl[i] < 2           ? VERDICT_TTL_EXPIRED
	                       : b->length[i] > most     ? VERDICT_MTU_EXCEEDED
	                                                 : VERDICT_FORWARD;

	assert_int_equal(judge(limits_read(b->view, b->hop[i]), most, b->length[i], b->ttl[i]),
		verdict);
	return b->linux_mask >> i & 1 ? VERDICT_LINUX : verdict;
}

static void expect_judged(const struct burst *judged, const struct burst *unresolved,
	const uint64_t before[N_VERDICTS])
{
	static struct burst resolved;
	const struct burst *dealt = &resolved;
	uint64_t want[N_VERDICTS];
	unsigned n = 0;

	resolved = *unresolved;
	datapath_ecmp(&resolved);
	memcpy(want, before, sizeof(want));
	for (unsigned i = 0; i < dealt->n; i++) {
		const struct fib_hop_entry *hop = &dealt->view->hops[dealt->hop[i]];
		enum verdict verdict = expected_verdict(dealt, i);

		if (verdict != VERDICT_FORWARD) {
			want[verdict]++;
			continue;
		}
		assert_true(n < judged->n);
		assert_ptr_equal(judged->mbuf[n], dealt->mbuf[i]);
		assert_int_equal(judged->hop[n], dealt->hop[i]);
		assert_true(!judged->has_one_hop || judged->hop[0] == dealt->hop[i]);
		assert_int_equal(burst_port(judged, n), hop->port);
		assert_int_equal(judged->template_mask >> n & 1, hop->kind == FIB_HOP_TEMPLATE);
		assert_true(hop->kind == FIB_HOP_PLAIN || judged->has & BURST_TEMPLATES);
		n++;
	}
	assert_int_equal(judged->n, n);
	assert_memory_equal(stat.verdict, want, sizeof(want));
}

// Any hops, TTLs and lengths: each way to check a burst gives each packet the verdict of judge().
static void all_judge_alike(void **state)
{
	static struct fib_hop_entry all[SOME_HOPS];
	static uint16_t most[SOME_HOPS];
	static uint32_t bucket[FIB_GROUP_BUCKETS];
	static struct fib_plain_hops plain, none;
	static struct tap_worker tap;
	const struct datapath_variant *const variants[] = {&datapath_scalar,
		datapath_choose_variant()};
	const uint8_t layer3 = 0;
	struct fib_view views[2] = {{.hops = all,
		.plain = &plain,
		.frame_max4 = most,
		.bucket = bucket,
		.layer3_hash = &layer3}};
	unsigned n_passed = 0;

	views[1] = views[0];
	views[1].plain = &none;

	memset(none.port, FIB_NOT_PLAIN, sizeof(none.port));
	memset(tap.class_of, CLASS_NONE, sizeof(tap.class_of));
	for (unsigned round = 0; round < ROUNDS; round++) {
		static struct burst dealt, judged;
		uint64_t before[N_VERDICTS];

		if (round % 50 == 0)
			make_any_hops(all, most, bucket, &plain);
		deal_any(&dealt);
		for (unsigned way = 0; way < ARRAY_LEN(variants) * ARRAY_LEN(views); way++) {
			worker = (struct worker){.stat = &stat, .variant = variants[way % 2]};
			worker.tap = dealt.linux_mask ? &tap : NULL;
			dealt.view = &views[way / 2];
			judged = dealt;
			memcpy(before, stat.verdict, sizeof(before));
			datapath_check(&worker, &judged);
			expect_judged(&judged, &dealt, before);
			n_passed += judged.n == dealt.n;
		}
	}
	assert_in_range(n_passed, ROUNDS / 4, 4 * ROUNDS - ROUNDS / 4);
}

static void limits_are_those_of_each_hop(void **state)
{
	static struct fib_hop_entry all[STATS_MAX_HOPS];
	const struct datapath_variant *const variants[] = {&datapath_scalar,
		datapath_choose_variant()};
	const struct fib_view many = {.hops = all};

	for (unsigned i = 0; i < STATS_MAX_HOPS; i++)
		all[i] = (struct fib_hop_entry){.macs = {0xff, 0xff},
			.frame_max = dice(UINT16_MAX),
			.port = i,
			.kind = i >> 8};
	for (unsigned n = 1; n <= BURST_MAX; n++) {
		uint32_t *hop = malloc(n * sizeof(*hop)); // ASan checks accesses past its end

		for (unsigned i = 0; i < n; i++)
			hop[i] = i ? dice(STATS_MAX_HOPS) : STATS_MAX_HOPS - 1;
		for (unsigned k = 0; k < ARRAY_LEN(variants); k++) {
			uint32_t limits[BURST_MAX] = {0};

			variants[k]->limits(&many, hop, limits, n);
			for (unsigned i = 0; i < n; i++) {
				assert_int_equal(limits_port(limits[i]), hop[i] & 0xff);
				assert_int_equal(limits_kind(limits[i]), hop[i] >> 8 & 0xff);
				assert_int_equal(limits_frame_max(limits[i]),
					all[hop[i]].frame_max);
			}
		}
		free(hop);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hops_in_brief_are_no_shortcut),
		cmocka_unit_test(all_judge_alike),
		cmocka_unit_test(limits_are_those_of_each_hop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
