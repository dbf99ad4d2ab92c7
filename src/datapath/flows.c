// A table of flows for the fake worker.
#include "datapath/flows.h"

#include "wire/build.h"

#include <rte_cycles.h>
#include <stdio.h>

enum { FEW = 1000, MANY = 40000, OTHER = 2 };
static const uint32_t sizes[] = {FEW, MANY};

static struct flow_table *table;
static uint32_t held[FAKE_IFACES], unresolved;
static bool drops_missing;

static uint32_t hold(uint16_t iface, const char *via)
{
	struct fib_hop hop = {.kind = FIB_VIA, .iface = iface};
	uint32_t number;

	assert_int_equal(wire_addr_parse(via, &hop.via), 0);
	assert_int_equal(fib_hold(fake.fib, &hop, &number, NULL), 0);
	return number;
}

int flows_open(void **state)
{
	struct fib_hop hop = {.kind = FIB_VIA, .iface = OTHER};

	vlans_open(state);
	unresolved = hold(OTHER, "10.2.0.99");
	assert_true(fib_held_hop(fake.fib, unresolved, &hop));
	fake_route(0, "10.50.0.0/16", &hop);
	return 0;
}

static void close_table(void)
{
	if (table)
		flow_destroy(table);
	table = NULL;
}

int flows_close(void **state)
{
	close_table();
	return fake_close(state);
}

void flows_reset(unsigned number)
{
	const uint32_t max = sizes[number / FAKE_VARIANTS];
	const struct flow_settings settings = {.max4 = max,
		.max6 = max,
		.n_workers = 1,
		.hz = rte_get_tsc_hz() ? rte_get_tsc_hz() : 2000000000};

	close_table();
	table = flow_create(&settings, rte_rdtsc(), NULL);
	assert_non_null(table);
	assert_int_equal(flow_waits(flow_view(table)), max == MANY);
	fake_reset(fake_variants[number % FAKE_VARIANTS]);
	drops_missing = false;
	fake.worker.flows = flow_view(table);
	fake.worker.drops_missing = &drops_missing;
}

void flows_drop_missing(bool drops)
{
	drops_missing = drops;
}

struct flow_action flows_do(enum flow_effect effect)
{
	return (struct flow_action){.effect = effect,
		.dscp = FLOW_KEEP_DSCP,
		.mirror = FLOW_NO_MIRROR};
}

struct flow_action flows_by_route(void)
{
	return flows_do(FLOW_BY_ROUTE);
}

struct flow_action flows_to(uint16_t iface)
{
	struct flow_action action = flows_do(FLOW_TO_HOP);
	char via[32];

	snprintf(via, sizeof(via), "10.%u.0.2", iface);
	if (!held[iface])
		held[iface] = hold(iface, via);
	action.held = held[iface];
	return action;
}

struct flow_action flows_to_unresolved(void)
{
	struct flow_action action = flows_do(FLOW_TO_HOP);

	action.held = unresolved;
	return action;
}

struct flow_tuple flows_tuple(const char *dst)
{
	const struct wire_recipe recipe = wire_recipe(strchr(dst, ':') ? 6 : 4);
	struct flow_tuple tuple = {.src = recipe.src,
		.proto = recipe.protocol,
		.src_port = recipe.src_port,
		.dst_port = recipe.dst_port};

	assert_int_equal(wire_addr_parse(dst, &tuple.dst), 0);
	return tuple;
}

static struct flow_key key_of(const struct flow_tuple *tuple)
{
	struct flow_key key;

	assert_int_equal(flow_key_set(&key, tuple, NULL), 0);
	return key;
}

void flows_set(const struct flow_tuple *tuple, struct flow_action action)
{
	struct flow_change change = {.op = FLOW_REPLACE, .key = key_of(tuple)};
	int result;

	assert_int_equal(flow_action_use(table, &action, &change.action, NULL), 0);
	assert_int_equal(flow_change(table, &change, 1, rte_rdtsc(), &result), 1);
	flow_action_unuse(table, change.action);
}

void flows_delete(const struct flow_tuple *tuple)
{
	struct flow_change change = {.op = FLOW_DELETE, .key = key_of(tuple)};
	int result;

	assert_int_equal(flow_change(table, &change, 1, rte_rdtsc(), &result), 1);
}

void flows_withdraw(const struct flow_action *action)
{
	const uint32_t number = flow_action_find(table, action);

	assert_true(number > 0);
	flow_action_withdraw(table, number);
}

void flows_expect(const struct flow_tuple *tuple, uint64_t packets, uint64_t bytes)
{
	const struct flow_key key = key_of(tuple);
	struct flow_info info;

	assert_true(flow_find(table, &key, rte_rdtsc(), &info));
	assert_int_equal(info.packets, packets);
	assert_int_equal(info.bytes, bytes);
}

uint64_t flows_stopped(enum verdict verdict)
{
	return fake.stat.verdict[verdict] + fake.stat.handed[verdict];
}
