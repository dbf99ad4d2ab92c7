// Concurrent use of the counters: workers write, the control thread reads, nobody waits.
#include "stats/stats.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_WORKERS = 2, N_PACKETS = 300000, PORT_IN = 0, PORT_OUT = 254 };

// Every third packet is dropped.
static void *count_packets(void *arg)
{
	struct stats_worker *worker = arg;

	for (unsigned i = 0; i < N_PACKETS; i++) {
		stats_add(&worker->port[PORT_IN].rx_packets, 1);
		if (i % 3 == 0) {
			stats_add(&worker->verdict[VERDICT_TTL_EXPIRED], 1);
			continue;
		}
		stats_add(&worker->verdict[VERDICT_FORWARD], 1);
		stats_add(&worker->port[PORT_OUT].tx_packets, 1);
	}
	return NULL;
}

static void each_reading_lies_between_the_one_before_and_the_end(void **state)
{
	struct stats_worker *workers[N_WORKERS];
	struct stats_account account, before = {0};
	pthread_t writers[N_WORKERS];

	for (unsigned i = 0; i < N_WORKERS; i++) {
		workers[i] = aligned_alloc(CACHE_LINE_BYTES, sizeof(struct stats_worker));
		assert_non_null(workers[i]);
		memset(workers[i], 0, sizeof(struct stats_worker));
		assert_int_equal(pthread_create(&writers[i], NULL, count_packets, workers[i]), 0);
	}
	do {
		account = (struct stats_account){0};
		stats_add_workers(&account, workers, N_WORKERS);
		assert_true(account.received >= account.sent + account.dropped);
		assert_true(account.received >= before.received && account.sent >= before.sent);
		assert_true(account.dropped >= before.dropped);
		before = account;
	} while (account.received < N_WORKERS * N_PACKETS);
	for (unsigned i = 0; i < N_WORKERS; i++)
		pthread_join(writers[i], NULL);
	account = (struct stats_account){0};
	stats_add_workers(&account, workers, N_WORKERS);
	assert_int_equal(account.received, N_WORKERS * N_PACKETS);
	assert_int_equal(account.dropped, N_WORKERS * N_PACKETS / 3);
	assert_int_equal(account.received, account.sent + account.dropped);
	for (unsigned i = 0; i < N_WORKERS; i++)
		free(workers[i]);
}

static void each_verdict_has_a_word_a_step_and_a_meaning(void **state)
{
	for (unsigned v = 0; v < N_VERDICTS; v++) {
		assert_true(verdict_name(v)[0] && verdict_text(v)[0] && verdict_step(v)[0]);
		for (unsigned other = 0; other < v; other++)
			assert_string_not_equal(verdict_name(v), verdict_name(other));
	}
	assert_null(verdict_name(N_VERDICTS));
	assert_string_equal(verdict_name(VERDICT_TTL_EXPIRED), "ttl_expired");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_reading_lies_between_the_one_before_and_the_end),
		cmocka_unit_test(each_verdict_has_a_word_a_step_and_a_meaning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
