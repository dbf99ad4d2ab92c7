// Sums counters over workers. Control thread.
#include "stats/stats.h"

#include "base/bits.h"

#include <string.h>

// Packets that have left a worker: sent, or with a verdict.
static void add_left(struct stats_account *account, const struct stats_worker *worker)
{
	for (unsigned v = 0; v < N_VERDICTS; v++) {
		uint64_t n = stats_read_first(&worker->verdict[v]);

		account->verdict[v] += n;
		account->dropped += v == VERDICT_FORWARD ? 0 : n;
	}
	for (unsigned p = 0; p < STATS_MAX_PORTS; p++)
		account->sent += stats_read_first(&worker->port[p].tx_packets);
}

static void add_come(struct stats_account *account, const struct stats_worker *worker)
{
	for (unsigned p = 0; p < STATS_MAX_PORTS; p++) {
		account->received += stats_read(&worker->port[p].rx_packets);
		account->injected += stats_read(&worker->port[p].injected_packets);
		account->copied += stats_read(&worker->port[p].copied_packets);
	}
}

static uint64_t n_moved(struct stats_worker *const workers[], unsigned n)
{
	uint64_t moved = 0;

	for (unsigned i = 0; i < n; i++)
		moved += stats_read_first(&workers[i]->moved_packets);
	return moved;
}

// Packets that have moved from one worker to another meanwhile may be those of both.
static uint64_t n_held(struct stats_worker *const workers[], unsigned n)
{
	const uint64_t before = n_moved(workers, n);
	uint64_t held = 0;

	for (unsigned i = 0; i < n; i++)
		held += stats_read_first(&workers[i]->held_packets);
	return held - MIN_OF(held, n_moved(workers, n) - before);
}

void stats_add_workers(struct stats_account *account, struct stats_worker *const workers[],
	unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		add_left(account, workers[i]);
	account->held += n_held(workers, n); // may have been sent since, but is not counted twice
	for (unsigned i = 0; i < n; i++)
		add_come(account, workers[i]);
}

void stats_add_tap(struct stats_account *account, const struct stats_tap *tap)
{
	for (unsigned c = 0; c < N_CLASSES; c++) {
		uint64_t over = stats_read_first(&tap->class[c].over_limit);
		uint64_t refused = stats_read_first(&tap->class[c].refused);

		account->punted += stats_read_first(&tap->class[c].punted);
		account->verdict[VERDICT_PUNT_OVER_LIMIT] += over;
		account->verdict[VERDICT_TAP_REFUSED] += refused;
		account->dropped += over + refused;
	}
}

#define SUM_FIELD(name, text) sum->name += stats_read(&workers[i]->port[port].name);
void stats_sum_port(struct stats_port *sum, struct stats_worker *const workers[], unsigned n,
	unsigned port)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned i = 0; i < n; i++) {
		SCHEMA_PORT_COUNTERS(SUM_FIELD)
	}
}
