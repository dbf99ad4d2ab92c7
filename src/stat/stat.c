// Sums counters over lanes. Control thread.
#include "stat/stat.h"

#include <string.h>

void stat_sum(struct stat_account *account, struct stat_lane *const lanes[], unsigned n)
{
	memset(account, 0, sizeof(*account));
	for (unsigned i = 0; i < n; i++) {
		for (unsigned v = 0; v < N_VERDICTS; v++)
			account->verdict[v] += stat_read(&lanes[i]->verdict[v]);
		for (unsigned p = 0; p < STAT_MAX_PORTS; p++) {
			account->received += stat_read(&lanes[i]->port[p].rx_packets);
			account->injected += stat_read(&lanes[i]->port[p].injected_packets);
			account->sent += stat_read(&lanes[i]->port[p].tx_packets);
		}
	}
	for (unsigned v = VERDICT_FORWARD + 1; v < N_VERDICTS; v++)
		account->dropped += account->verdict[v];
}

void stat_add_tap(struct stat_account *account, const struct stat_tap *tap)
{
	for (unsigned c = 0; c < N_CLASSES; c++) {
		uint64_t over = stat_read(&tap->class[c].over_limit);
		uint64_t refused = stat_read(&tap->class[c].refused);

		account->punted += stat_read(&tap->class[c].punted);
		account->verdict[VERDICT_PUNT_OVER_LIMIT] += over;
		account->verdict[VERDICT_TWIN_REFUSED] += refused;
		account->dropped += over + refused;
	}
}

#define SUM_FIELD(name, text) sum->name += stat_read(&lanes[i]->port[port].name);
void stat_sum_port(struct stat_port *sum, struct stat_lane *const lanes[], unsigned n,
	unsigned port)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned i = 0; i < n; i++) {
		SCHEMA_PORT_COUNTERS(SUM_FIELD)
	}
}
