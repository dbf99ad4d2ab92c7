// A million subscribers: memory, time, that each address leads to its own; and workers that look up
// and police while subscribers come, go and change. Tests only.
#include "qos/qos.h"
#include "rcu/rcu.h"
#include "rcu/rcu_fast.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
	HZ = 64000000,
	N_WORKERS = 2,
	N_BATCH = 4096,
	N_STABLE = 512,
	N_CHURNED = 4096,
	ROUNDS = 40
};
enum { BURST = 20000, BYTES = 100 };

static const char *no_name(void *ctx, unsigned iface)
{
	(void)ctx;
	(void)iface;
	return NULL;
}

static struct qos *open_one(struct rcu *rcu)
{
	const struct qos_settings settings = {.rcu = rcu,
		.n_workers = N_WORKERS,
		.hz = HZ,
		.n_ifaces = 1,
		.iface_name = no_name};
	struct error error;
	struct qos *qos;

	if (qos_open(&qos, &settings, &error))
		fail_msg("%s", error.text);
	return qos;
}

static void stage(struct qos *qos, const char *text)
{
	struct error error;

	if (qos_stage(qos, text, false, &error))
		fail_msg("%s", error.text);
}

static void commit(struct qos *qos)
{
	struct error error;

	if (qos_prepare(qos, &error))
		fail_msg("%s", error.text);
	qos_commit(qos, 0);
}

static void stage_profile(struct qos *qos)
{
	qos_begin(qos);
	stage(qos, "profile p rate 8kbit/s burst 20000B counts ip");
	commit(qos);
}

// 10.x.y.z, and a /64 and a /56 behind it.
static uint64_t key4(uint32_t i)
{
	return (uint64_t)(10u << 24 | i) << 32;
}

static void stage_number(struct qos *qos, uint32_t i)
{
	char text[256];

	snprintf(text, sizeof(text),
		"add s%u number %u up p down p address 10.%u.%u.%u address 2001:db8:%x:%x::/64 "
		"address 2a00:%x:%x:%x::/56",
		i, i + 1, i >> 16, i >> 8 & 255, i & 255, i >> 16, i & 65535, i >> 16, i >> 8 & 255,
		(i & 255) << 8);
	stage(qos, text);
}

static void expect_found(const struct qos *qos, uint32_t i)
{
	const struct qos_view *view = &qos_live(qos)->view;
	const uint64_t keys[] = {key4(i), 0x20010db8ull << 32 | i,
		0x2a00ull << 48 | (uint64_t)(i >> 16) << 32 | (uint64_t)(i >> 8 & 255) << 16 |
			(i & 255) << 8 | 77};

	for (unsigned k = 0; k < 3; k++) {
		uint32_t which = QOS_NONE;

		assert_int_equal(qos_find(view, k ? QOS_IP6 : QOS_IP4, &keys[k], 1, &which), 1);
		assert_int_equal(which, i);
	}
}

static void a_million_subscribers_are_found(void **state)
{
	const uint64_t began_ns = clock_now_ns();
	struct qos *qos = open_one(NULL);
	struct qos_usage usage;

	(void)state;
	stage_profile(qos);
	for (uint32_t first = 0; first < QOS_MAX; first += N_BATCH) {
		qos_begin(qos);
		for (uint32_t i = first; i < first + N_BATCH; i++)
			stage_number(qos, i);
		commit(qos);
	}
	qos_usage(qos, &usage);
	assert_int_equal(usage.n_subscribers, QOS_MAX);
	assert_int_equal(usage.n_addresses, 3u * QOS_MAX);
	print_message("%u subscribers with 3 addresses: %.1f s, %.0f bytes each\n", QOS_MAX,
		(clock_now_ns() - began_ns) / 1e9, (double)usage.n_bytes / QOS_MAX);
	for (uint32_t i = 0; i < QOS_MAX; i += 1 + i % 61)
		expect_found(qos, i);
	struct error error;

	qos_begin(qos);
	assert_int_equal(qos_stage(qos, "add more", false, &error), -ENOSPC);
	qos_abort(qos);
	assert_string_equal(error.text, "there are 1048576 subscribers already; remove some");
	const uint64_t exported_ns = clock_now_ns();
	FILE *null = fopen("/dev/null", "w");

	assert_true(qos_export(qos, null));
	fclose(null);
	print_message("export: %.1f s\n", (clock_now_ns() - exported_ns) / 1e9);
	qos_close(qos);
}

// A worker that polices packets of the first N_STABLE subscribers, who never change, and of others,
// who come and go.
struct worker {
	struct qos *qos;
	const struct rcu_readers *readers;
	unsigned id;
	bool *stop;                        // atomic
	uint64_t passed[N_STABLE], rounds; // rounds: atomic
	bool is_wrong;
};

static void one_round(struct worker *w, unsigned *seed)
{
	const struct qos_live *live = qos_live(w->qos);
	const struct qos_basis basis = {live, w->id, QOS_UP, false, 0};
	struct qos_packets packets = {.mask = UINT64_MAX};
	uint64_t keys[64];
	uint32_t who[64];
	struct qos_verdicts out;

	for (unsigned i = 0; i < 64; i++) {
		who[i] = rand_r(seed) % (i & 1 ? N_STABLE : N_CHURNED);
		keys[i] = key4(who[i]);
		packets.ip_bytes[i] = BYTES;
		packets.frames[i] = 1;
		packets.dscp[i] = 0;
	}
	packets.mask = qos_find(&live->view, QOS_IP4, keys, UINT64_MAX, packets.subscriber);
	for (unsigned i = 0; i < 64; i++) {
		const bool is_found = packets.mask >> i & 1;

		w->is_wrong |= is_found ? packets.subscriber[i] != who[i] : who[i] < N_STABLE;
	}
	qos_police(&basis, &packets, &out);
	for (unsigned i = 0; i < 64; i++)
		if (who[i] < N_STABLE && !(out.dropped >> i & 1))
			w->passed[who[i]] += BYTES;
}

static void *work(void *w_)
{
	struct worker *w = w_;
	unsigned seed = w->id;

	rcu_reader_online(w->readers, w->id);
	while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
		one_round(w, &seed);
		rcu_reader_report(w->readers, w->id);
		__atomic_fetch_add(&w->rounds, 1, __ATOMIC_RELEASE);
	}
	rcu_reader_offline(w->readers, w->id);
	return NULL;
}

// Half of the others go and come, and the stable ones get profiles in turns.
static void churn(struct qos *qos, unsigned round)
{
	static const char *const profiles[] = {"p", "q", "r"};
	char text[256];

	qos_begin(qos);
	for (uint32_t i = N_STABLE; i < N_CHURNED; i++) {
		if (i % 2 != round / 2 % 2)
			continue;
		if (round & 1) {
			stage_number(qos, i);
		} else {
			snprintf(text, sizeof(text), "remove s%u", i);
			stage(qos, text);
		}
	}
	for (uint32_t i = 0; i < N_STABLE; i++) {
		snprintf(text, sizeof(text), "set s%u up %s", i, profiles[round % 3]);
		stage(qos, text);
	}
	commit(qos);
}

static void wait_for_rounds(const struct worker *w)
{
	const uint64_t then = __atomic_load_n(&w->rounds, __ATOMIC_ACQUIRE);

	while (__atomic_load_n(&w->rounds, __ATOMIC_ACQUIRE) < then + 20)
		;
}

static void fill(struct qos *qos)
{
	stage_profile(qos);
	qos_begin(qos);
	stage(qos, "profile q rate 16kbit/s burst 20000B counts ip");
	stage(qos, "profile r rate 8kbit/s burst 20000B excess_burst 20000B counts ip");
	for (uint32_t i = 0; i < N_CHURNED; i++)
		stage_number(qos, i);
	commit(qos);
}

// Time stands still: each has one burst, whatever changes and on how many workers.
static void workers_find_and_police_while_all_changes(void **state)
{
	struct error error;
	struct rcu *rcu = rcu_create(N_WORKERS, &error);
	struct qos *qos = open_one(rcu);
	struct worker worker[N_WORKERS];
	pthread_t thread[N_WORKERS];
	bool stop = false;

	(void)state;
	fill(qos);
	for (unsigned i = 0; i < N_WORKERS; i++) {
		worker[i] = (struct worker){.qos = qos,
			.readers = rcu_readers(rcu),
			.id = i,
			.stop = &stop};
		assert_int_equal(pthread_create(&thread[i], NULL, work, &worker[i]), 0);
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		churn(qos, round);
		for (unsigned i = 0; i < N_WORKERS; i++)
			wait_for_rounds(&worker[i]);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < N_WORKERS; i++)
		pthread_join(thread[i], NULL);
	for (uint32_t i = 0; i < N_STABLE; i++) {
		struct qos_info info;
		uint32_t number = i + 1;
		const uint64_t passed = worker[0].passed[i] + worker[1].passed[i];

		assert_true(qos_next(qos, &number, &info));
		assert_true(passed <= BURST);
		assert_int_equal(info.count[QOS_UP].bytes[POLICE_GREEN] +
					 info.count[QOS_UP].bytes[POLICE_YELLOW],
			passed);
	}
	assert_false(worker[0].is_wrong || worker[1].is_wrong);
	qos_close(qos);
	rcu_destroy(rcu);
}

// The rate of changes is told, not asserted.
static void changes_are_fast(void **state)
{
	enum { N = 100000, EACH = 1000 };
	struct qos *qos = open_one(NULL);
	struct qos_usage usage;
	char text[64];

	(void)state;
	stage_profile(qos);
	const uint64_t began_ns = clock_now_ns();

	for (uint32_t first = 0; first < N; first += EACH) {
		qos_begin(qos);
		for (uint32_t i = first; i < first + EACH; i++)
			stage_number(qos, i);
		commit(qos);
	}
	const uint64_t added_ns = clock_now_ns();

	for (uint32_t i = 0; i < N; i++) {
		qos_begin(qos);
		snprintf(text, sizeof(text), "set s%u up none", i);
		stage(qos, text);
		commit(qos);
	}
	const uint64_t changed_ns = clock_now_ns();

	for (uint32_t first = 0; first < N; first += EACH) {
		qos_begin(qos);
		for (uint32_t i = first; i < first + EACH; i++) {
			snprintf(text, sizeof(text), "remove s%u", i);
			stage(qos, text);
		}
		commit(qos);
	}
	qos_usage(qos, &usage);
	assert_int_equal(usage.n_subscribers, 0);
	assert_int_equal(usage.n_addresses, 0);
	assert_false(qos_is_on(&qos_live(qos)->view));
	print_message("%u: added in %.2f s, changed one by one in %.2f s, removed in %.2f s\n", N,
		(added_ns - began_ns) / 1e9, (changed_ns - added_ns) / 1e9,
		(clock_now_ns() - changed_ns) / 1e9);
	qos_close(qos);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_find_and_police_while_all_changes),
		cmocka_unit_test(changes_are_fast),
		cmocka_unit_test(a_million_subscribers_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
