// Sums counters over workers. Control thread.
#include "stats/stats.h"

#include <string.h>

void stats_sum(struct stats_account *account, struct stats_worker *const workers[], unsigned n)
{
	memset(account, 0, sizeof(*account));
	for (unsigned i = 0; i < n; i++) {
		for (unsigned v = 0; v < N_VERDICTS; v++)
			account->verdict[v] += stats_read(&workers[i]->verdict[v]);
		for (unsigned p = 0; p < STATS_MAX_PORTS; p++) {
			account->received += stats_read(&workers[i]->port[p].rx_packets);
			account->injected += stats_read(&workers[i]->port[p].injected_packets);
			account->copied += stats_read(&workers[i]->port[p].copied_packets);
			account->sent += stats_read(&workers[i]->port[p].tx_packets);
		}
	}
	for (unsigned v = VERDICT_FORWARD + 1; v < N_VERDICTS; v++)
		account->dropped += account->verdict[v];
}

void stats_add_tap(struct stats_account *account, const struct stats_tap *tap)
{
	for (unsigned c = 0; c < N_CLASSES; c++) {
		uint64_t over = stats_read(&tap->class[c].over_limit);
		uint64_t refused = stats_read(&tap->class[c].refused);

		account->punted += stats_read(&tap->class[c].punted);
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
