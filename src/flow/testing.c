// Keys, tables and random numbers. Tests and benchmarks only.
#include "flow/testing.h"

#include "flow/table.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state = 88172645463325252ull;

uint64_t testing_random(void)
{
	state ^= state << 13; // xorshift64*
	state ^= state >> 7;
	state ^= state << 17;
	return state * 2685821657736338717ull >> 11;
}

void testing_seed(uint64_t seed)
{
	state = seed | 1;
}

struct flow_key testing_key(uint8_t family, uint32_t number)
{
	struct flow_tuple tuple = {.src.family = family,
		.dst.family = family,
		.src_port = 1 + number % 7,
		.dst_port = 53,
		.vrf = number % 3 * 1001,
		.proto = number % 2 ? 6 : 17};
	const uint32_t spread = htonl(number * 2654435761u); // a permutation
	struct flow_key key;

	tuple.src.bytes[0] = 10;
	memcpy(tuple.dst.bytes, &spread, sizeof(spread));
	memcpy(tuple.dst.bytes + (family == 6 ? 12 : 0), &spread, sizeof(spread));
	if (family == 6)
		tuple.src.bytes[0] = 0x20;
	if (flow_key_set(&key, &tuple, NULL))
		abort();
	return key;
}

struct flow_settings testing_settings(uint32_t max4, uint32_t max6, unsigned n_workers)
{
	return (struct flow_settings){.max4 = max4,
		.max6 = max6,
		.n_workers = n_workers,
		.hz = TESTING_HZ,
		.timeout_ms = {1000, 10000, 60000, 300000}};
}

struct flow_table *testing_table(const struct flow_settings *settings)
{
	struct error error;
	struct flow_table *table = flow_create(settings, TESTING_HZ, &error);

	if (table)
		return table;
	fprintf(stderr, "%s\n", error.text);
	abort();
}

void testing_use_action(struct flow_table *table, uint32_t number)
{
	const struct flow_action action = {.effect = FLOW_DROP,
		.dscp = FLOW_KEEP_DSCP,
		.mirror = FLOW_NO_MIRROR,
		.subscriber = number};
	const uint32_t max = table->actions.max, n_unused = table->actions.n_unused;
	uint32_t got;

	table->actions.max = number - 1;
	table->actions.n_unused = 0;
	if (flow_action_use(table, &action, &got, NULL) || got != number)
		abort();
	table->actions.max = MAX_OF(max, number);
	table->actions.n_unused = n_unused;
}

void testing_use_actions(struct flow_table *table, uint32_t n)
{
	for (uint32_t number = 1; number <= n; number++)
		testing_use_action(table, number);
}

int testing_change(struct flow_table *table, const struct flow_change *change, uint64_t now)
{
	int result;

	flow_change(table, change, 1, now, &result);
	return result;
}

void testing_use_variant(struct flow_view *view, unsigned number)
{
	unsigned n;
	const struct lookups *lookups = flow_lookup_variants(&n);

	lookups += number % n;
	view->begin4 = lookups->begin4;
	view->continue4 = lookups->continue4;
	view->end4 = lookups->end4;
	view->begin6 = lookups->begin6;
	view->continue6 = lookups->continue6;
	view->end6 = lookups->end6;
}

uint32_t testing_lookup(const struct flow_table *table, const struct flow_key *key,
	uint32_t *action)
{
	struct flow_lookup lookup = {.n = 1};

	if (key->family == 4)
		flow_lookup4(flow_view(table), &key->four, &lookup);
	else
		flow_lookup6(flow_view(table), &key->six, &lookup);
	*action = lookup.action[0];
	return lookup.flow[0];
}
