// Random changes of routes, next-hop objects, interfaces and addresses. A simple model of the
// kernel applies and reports them; some events are lost and recovered by a dump, as is what there
// was no memory for. Workers must forward as the model does.
#include "netlink/fake_ifaces.h"

#include "base/fail_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
	DEVS = 4,
	MOST_ROUTES = 256,
	OBJECTS = 5,
	GROUP = 10,
	ROUNDS = 60,
	SHORT_ROUNDS = 90,
	STEPS = 40
};

struct hop {
	int dev, gateway; // dev 0: none
	bool is_dead;
};

// In kernel order within prefix and metric.
struct route {
	int prefix, metric, nhid; // nhid 0: own hops
	struct hop hop[4];
	int n_hops;
};

static const struct {
	const char *prefix, *ask;
	int family, shorter; // the next shorter prefix that covers it, -1: none
} places[] = {
	{"20.0.0.0/8", "20.2.0.1", 4, -1},
	{"20.1.0.0/16", "20.1.2.1", 4, 0},
	{"20.1.1.0/24", "20.1.1.1", 4, 1},
	{"21.0.0.0/8", "21.0.0.1", 4, -1},
	{"2001:db8::/32", "2001:db8:2::1", 6, -1},
	{"2001:db8:1::/48", "2001:db8:1::1", 6, 4},
};
enum { PLACES = sizeof(places) / sizeof(places[0]), PLACES4 = 4 };

static struct model {
	struct route route[MOST_ROUTES];
	int n;
	struct hop object[OBJECTS]; // 1 to 4; dev 0: does not exist
	int member[OBJECTS];        // object ids in the group
	int n_members;
	bool is_up[DEVS + 1];
	bool is_deaf; // events are currently lost
	unsigned seed;
} model;

static int draw(int n)
{
	return rand_r(&model.seed) / 7 % n;
}

static void print_hop(char *text, int family, const struct hop *hop)
{
	if (family == 4)
		sprintf(text, "via 10.%d.0.%d dev %d", hop->dev, hop->gateway, hop->dev);
	else
		sprintf(text, "via fe80::%d dev %d", hop->gateway, hop->dev);
}

static void say(const char *before, const struct route *route, const char *after)
{
	char words[500], one[60];
	int n = sprintf(words, "%s%s", before, places[route->prefix].prefix);

	for (int i = 0; i < route->n_hops; i++) {
		print_hop(one, places[route->prefix].family, &route->hop[i]);
		n += sprintf(words + n, " nexthop %s%s", one, route->hop[i].is_dead ? " dead" : "");
	}
	if (route->nhid)
		n += sprintf(words + n, " nhid %d", route->nhid);
	sprintf(words + n, " metric %d%s", route->metric, after);
	if (!model.is_deaf)
		fake_say(words);
}

static void say_object(int id, bool is_gone)
{
	char words[100], hop[60];

	print_hop(hop, 4, &model.object[id]);
	sprintf(words, is_gone ? "deleted id %d" : "id %d %s", id, hop);
	if (!model.is_deaf)
		fake_say(words);
}

static void say_group(void)
{
	char words[100];
	int n = sprintf(words, "id %d group ", GROUP);

	for (int i = 0; i < model.n_members; i++)
		n += sprintf(words + n, "%s%d", i ? "/" : "", model.member[i]);
	if (!model.is_deaf && model.n_members)
		fake_say(words);
}

static void remove_at(int at)
{
	memmove(&model.route[at], &model.route[at + 1], (--model.n - at) * sizeof(model.route[0]));
}

static void insert_at(int at, const struct route *route)
{
	memmove(&model.route[at + 1], &model.route[at], (model.n++ - at) * sizeof(*route));
	model.route[at] = *route;
}

static bool is_peer(int at, const struct route *route)
{
	return at < model.n && model.route[at].prefix == route->prefix &&
	       model.route[at].metric == route->metric;
}

static bool same_hops(const struct route *a, const struct route *b)
{
	bool is_same = a->n_hops == b->n_hops && a->nhid == b->nhid;

	for (int i = 0; is_same && i < a->n_hops; i++)
		is_same = a->hop[i].dev == b->hop[i].dev && a->hop[i].gateway == b->hop[i].gateway;
	return is_same;
}

static bool draw_route(struct route *route, int prefix, int most_hops)
{
	*route = (struct route){.prefix = prefix, .metric = 10 + draw(2)};
	if (places[prefix].family == 4 && draw(3) == 0) {
		route->nhid = draw(3) ? 1 + draw(OBJECTS - 1) : GROUP;
		return route->nhid == GROUP ? model.n_members : model.object[route->nhid].dev != 0;
	}
	route->n_hops = 1 + draw(most_hops);
	for (int i = 0; i < route->n_hops; i++) {
		route->hop[i] = (struct hop){1 + draw(DEVS), 2 + i, false};
		if (!model.is_up[route->hop[i].dev])
			return false;
	}
	return true;
}

// Peers are contiguous; returns the index of the first one, or where it would be inserted.
static int find_peers(const struct route *route)
{
	int at = 0;

	while (at < model.n && !is_peer(at, route))
		at++;
	return at;
}

// fib_find_info(): IPv4 routes of one metric with equal hops share them, including dead ones
static void share_hops(struct route *route)
{
	for (int i = 0; i < model.n; i++)
		if (places[model.route[i].prefix].family == 4 &&
			model.route[i].metric == route->metric && same_hops(&model.route[i], route))
			memcpy(route->hop, model.route[i].hop, sizeof(route->hop));
}

// fib_table_insert()
static void change4(int prefix)
{
	struct route route;
	int mode = draw(4);

	if (!draw_route(&route, prefix, 3))
		return;
	share_hops(&route);
	int first = find_peers(&route), end = first;
	bool exists = is_peer(first, &route);
	for (; is_peer(end, &route); end++)
		if (same_hops(&model.route[end], &route))
			return; // EEXIST
	if (!exists || mode == 0)
		insert_at(first, &route);
	else if (mode == 1)
		insert_at(end, &route);
	else if (mode == 2)
		model.route[first] = route;
	else
		return; // NLM_F_EXCL
	say("", &route, mode == 1 && exists ? " append" : mode == 2 && exists ? " replace" : "");
}

// fib6_add_rt2node(): next hops with the same metric form one route
static void change6(int prefix)
{
	struct route request, *route;

	if (!draw_route(&request, prefix, 2))
		return;
	int at = find_peers(&request);
	route = &model.route[at];
	if (!is_peer(at, &request)) {
		insert_at(at, &request);
		say("", &request, "");
	} else if (draw(2)) {
		*route = request;
		say("", &request, " replace");
	} else if (request.n_hops == 1 && route->n_hops < 4) {
		request.hop[0].gateway = 20 + draw(200);
		route->hop[route->n_hops++] = request.hop[0];
		say("", route, " append");
	}
}

static void delete_one(void)
{
	if (!model.n)
		return;
	int at = draw(model.n);
	struct route *route = &model.route[at], gone = *route;
	if (places[route->prefix].family == 6 && route->n_hops > 1) {
		int i = draw(route->n_hops);
		gone.n_hops = 1;
		gone.hop[0] = route->hop[i];
		route->hop[i] = route->hop[--route->n_hops];
	} else {
		remove_at(at);
	}
	say("deleted ", &gone, "");
}

static void drop_by_nhid(int id)
{
	for (int i = model.n - 1; i >= 0; i--)
		if (model.route[i].nhid == id)
			remove_at(i);
}

// remove_nexthop(): removed from groups; routes are removed without a notification
static void lose_object(int id)
{
	model.object[id].dev = 0;
	drop_by_nhid(id);
	for (int i = model.n_members - 1; i >= 0; i--)
		if (model.member[i] == id) {
			model.member[i] = model.member[--model.n_members];
			if (!model.n_members)
				drop_by_nhid(GROUP);
		}
}

static void change_object(void)
{
	int id = 1 + draw(OBJECTS - 1), dev = 1 + draw(DEVS);

	if (draw(4) == 0 && model.object[id].dev) {
		say_object(id, true);
		lose_object(id);
		say_group();
	} else if (model.is_up[dev]) {
		model.object[id] = (struct hop){dev, 30 + draw(200), false};
		say_object(id, false);
	}
}

static void change_group(void)
{
	model.n_members = 0;
	for (int id = 1; id < OBJECTS; id++)
		if (model.object[id].dev && draw(2))
			model.member[model.n_members++] = id;
	if (model.n_members)
		say_group();
	else
		drop_by_nhid(GROUP);
	if (!model.n_members && !model.is_deaf)
		fake_say("deleted id 10");
}

// fib_sync_down_dev(), fib6_ifdown()
static void kill_hops(int dev, bool ipv6_too)
{
	for (int i = model.n - 1; i >= 0; i--) {
		struct route *route = &model.route[i];
		int n_dead = 0;
		if (route->nhid || (places[route->prefix].family == 6 && !ipv6_too))
			continue;
		for (int k = 0; k < route->n_hops; k++)
			n_dead += route->hop[k].is_dead |= route->hop[k].dev == dev;
		if (n_dead < route->n_hops)
			continue;
		struct route gone = *route;
		remove_at(i);
		if (places[gone.prefix].family == 6)
			say("deleted ", &gone, "");
	}
}

static void revive_hops(int dev)
{
	for (int i = 0; i < model.n; i++)
		for (int k = 0; k < model.route[i].n_hops; k++)
			model.route[i].hop[k].is_dead &= model.route[i].hop[k].dev != dev;
}

static void change_iface(void)
{
	int dev = 1 + draw(DEVS);

	model.is_up[dev] = !model.is_up[dev];
	if (!model.is_deaf)
		fake_set_up(dev, model.is_up[dev]);
	if (model.is_up[dev]) {
		revive_hops(dev);
		return;
	}
	for (int id = 1; id < OBJECTS; id++)
		if (model.object[id].dev == dev)
			lose_object(id);
	kill_hops(dev, true);
}

// The last IPv4 address is removed, and comes back later or at once.
static void change_address(void)
{
	int dev = 1 + draw(DEVS);

	if (!model.is_up[dev])
		return;
	if (draw(2)) {
		kill_hops(dev, false);
		if (!model.is_deaf)
			routes_ip4_gone(fake.routes, dev);
		return;
	}
	revive_hops(dev);
	if (!model.is_deaf)
		routes_address_came(fake.routes, dev);
}

static void change(void)
{
	int pick = draw(100);

	if (pick < 50)
		draw(2) ? change4(draw(PLACES4)) : change6(PLACES4 + draw(PLACES - PLACES4));
	else if (pick < 70)
		delete_one();
	else if (pick < 82)
		change_object();
	else if (pick < 88)
		change_group();
	else if (pick < 94)
		change_iface();
	else
		change_address();
}

static void dump(void)
{
	model.is_deaf = false;
	fake.lost = 0;
	routes_dump_begins(fake.routes);
	for (int dev = 1; dev <= DEVS; dev++)
		if (fake.iface[dev].is_up != model.is_up[dev])
			fake_set_up(dev, model.is_up[dev]);
	for (int id = 1; id < OBJECTS; id++)
		if (model.object[id].dev)
			say_object(id, false);
	say_group();
	for (int i = 0; i < model.n; i++)
		say("dump ", &model.route[i], "");
	routes_dump_ends(fake.routes, fake.lost);
}

static int by_bytes(const void *a, const void *b)
{
	const struct hop *x = a, *y = b;

	return x->gateway != y->gateway ? x->gateway - y->gateway : x->dev - y->dev;
}

static int by_dev(const void *a, const void *b)
{
	const struct hop *x = a, *y = b;

	return x->dev != y->dev ? x->dev - y->dev : x->gateway - y->gateway;
}

static int alive_hops(const struct route *route, struct hop *out)
{
	int n = 0;

	if (route->nhid && route->nhid < GROUP)
		out[n++] = model.object[route->nhid];
	for (int i = 0; route->nhid == GROUP && i < model.n_members; i++)
		out[n++] = model.object[model.member[i]];
	for (int i = 0; i < route->n_hops; i++)
		if (!route->hop[i].is_dead)
			out[n++] = route->hop[i];
	qsort(out, n, sizeof(*out), places[route->prefix].family == 4 ? by_dev : by_bytes);
	return n;
}

static const struct route *best_of(int prefix)
{
	for (int metric = 10; metric < 12; metric++)
		for (int i = 0; i < model.n; i++) {
			const struct route *route = &model.route[i];
			struct hop alive[8];
			if (route->prefix == prefix && route->metric == metric &&
				alive_hops(route, alive))
				return route;
		}
	return NULL;
}

static void expect(int place, char *text)
{
	const struct route *route = NULL;
	struct hop alive[8];
	char one[60];

	for (int at = place; at >= 0 && !route; at = places[at].shorter)
		route = best_of(at);
	int n = route ? alive_hops(route, alive) : 0;
	strcpy(text, "nothing");
	for (int i = 0; i < n; i++) {
		print_hop(one, places[place].family, &alive[i]);
		if (n == 1)
			strcpy(text, one);
		else
			text += sprintf(text, "%s%s weight 1", i ? ", " : "", one + 4);
	}
}

static void compare(unsigned seed, int step)
{
	char wanted[600], where[700];

	for (int i = 0; i < PLACES; i++) {
		expect(i, wanted);
		const char *answer = fake_ask(places[i].ask);
		if (strcmp(answer, wanted)) {
			snprintf(where, sizeof(where), "seed %u, step %d, %s: the kernel %s", seed,
				step, places[i].ask, wanted);
			fail_msg("%s, workers %s", where, answer);
		}
	}
}

static void open_all(unsigned seed)
{
	fake_open();
	memset(&model, 0, sizeof(model));
	model.seed = seed * 7919;
	memset(model.is_up, 1, sizeof(model.is_up));
}

static void workers_answer_as_the_kernel_does_whatever_changes(void **state)
{
	for (unsigned seed = 1; seed <= ROUNDS; seed++) {
		open_all(seed);
		for (int step = 0; step < STEPS; step++) {
			model.is_deaf = draw(5) == 0;
			for (int i = draw(6); i >= 0 && model.n < MOST_ROUTES - 8; i--)
				change();
			if (model.is_deaf || draw(10) == 0)
				dump();
			compare(seed, step);
		}
		fake_close();
	}
}

// Changes while allocations fail. Whatever was lost, the mirror has said so, and a dump cures it; a
// dump that loses something itself removes nothing of that kind.
static void change_without_memory(void)
{
	for (int i = draw(6); i >= 0 && model.n < MOST_ROUTES - 8; i--)
		change();
	fake_flush();
	if (fake.lost && draw(2))
		dump();
	fake_flush();
}

static void what_is_lost_without_memory_comes_with_a_dump(void **state)
{
	uint64_t n_failed = 0, n_losses = 0;

	for (unsigned seed = 1; seed <= SHORT_ROUNDS; seed++) {
		open_all(seed);
		for (int step = 0; step < STEPS; step++) {
			fail_alloc_often(1 + seed % 5, model.seed);
			change_without_memory();
			n_failed += fail_alloc_n_failed();
			fail_alloc_at(0);
			n_losses += fake.lost != 0;
			if (fake.lost)
				dump();
			assert_int_equal(fake.lost, 0);
			compare(seed, step);
		}
		fake_close();
	}
	assert_true(n_failed > 1000 && n_losses > 1000);
}

// The allocations of a run of changes, each failing in turn.
static void each_allocation_may_fail_once(void **state)
{
	for (uint64_t n = 1, has_failed = 1; has_failed; n++) {
		open_all(1);
		fail_alloc_at(n);
		for (int step = 0; step < STEPS; step++) {
			change();
			fake_flush();
		}
		has_failed = fail_alloc_n_failed();
		fail_alloc_at(0);
		if (fake.lost)
			dump();
		compare((unsigned)n, STEPS);
		fake_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_answer_as_the_kernel_does_whatever_changes),
		cmocka_unit_test(what_is_lost_without_memory_comes_with_a_dump),
		cmocka_unit_test(each_allocation_may_fail_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
