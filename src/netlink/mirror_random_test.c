// A small model of Linux's interfaces makes random changes and reports them; at times events are
// lost, or there is no memory for what they report, followed by a dump. In the end, a fresh mirror
// fed with the final state must produce the same fib. Tests only.
#include "netlink/fake_linux.h"

#include "base/fail_alloc.h"

#include <linux/neighbour.h>
#include <linux/netfilter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_PORTS = 4, FIRST = 10, LAST = 63, N_HOSTS = 4, N_CHAINS = 4, N_RULES = 4 };
enum { VLANS = 20, STACKED = 28, VRFS = 40, BRIDGE = 44, MACVLANS = 50, OTHERS = 58 };

struct model_interface {
	bool exists;
	struct event_link iface;
	int forwarding, rp_filter;
	uint8_t tc; // enum event_side
	struct fake_seen host[N_HOSTS];
};

struct model {
	struct model_interface at[LAST + 1];
	bool chain[N_CHAINS], rule[N_RULES];
	int forwarding6, rp_filter;
};

static struct model model;
static unsigned seed;

static int pick(int below)
{
	seed = seed * 1103515245u + 12345u;
	return (int)(seed >> 8) % below;
}

static const char *host_of(int ifindex, int host, char text[32])
{
	snprintf(text, 32, "10.%d.0.%d", ifindex, host + 1);
	return text;
}

static const struct event_foreign *chain_of(int i)
{
	static struct event_foreign chain;

	chain = (struct event_foreign){.family = (uint8_t)(i % 2 ? 4 : 6),
		.hook = (uint8_t)(i < 2 ? NF_INET_FORWARD : NF_INET_LOCAL_IN)};
	chain.is_harmless = i >= 2;
	snprintf(chain.name, sizeof(chain.name), "chain %d", i);
	return &chain;
}

// Two each cannot be told apart.
static const struct event_rule *rule_of(int i)
{
	static struct event_rule rule;

	rule = (struct event_rule){.family = (uint8_t)(i % 2 ? 4 : 6), .has_selector = true};
	return &rule;
}

static const struct event_foreign *qdisc_of(int ifindex, uint8_t sides)
{
	static struct event_foreign qdisc;

	qdisc = (struct event_foreign){.ifindex = ifindex, .sides = sides};
	snprintf(qdisc.name, sizeof(qdisc.name), "qdisc %u", sides);
	return &qdisc;
}

// Kernel notifications.

static void tell_conf(struct fake_linux *fake, int ifindex)
{
	fake_conf(fake, ifindex, 6, 0);
	fake_conf(fake, ifindex, 4, model.at[ifindex].forwarding);
	fake_rp_filter(fake, ifindex, model.at[ifindex].rp_filter);
}

static void tell_host(struct fake_linux *fake, int ifindex, int host)
{
	const struct fake_seen *seen = &model.at[ifindex].host[host];
	char text[32];

	if (seen->state)
		fake_neighbour(fake, ifindex, host_of(ifindex, host, text), *seen);
}

static void tell_all_of(struct fake_linux *fake, int ifindex)
{
	const struct model_interface *one = &model.at[ifindex];

	if (!one->exists)
		return;
	for (int host = 0; host < N_HOSTS; host++)
		tell_host(fake, ifindex, host);
	if (one->tc)
		fake_foreign(fake, EVENT_QDISC, qdisc_of(ifindex, one->tc), false);
	fake_iface(fake, &one->iface);
	tell_conf(fake, ifindex);
}

static void tell_foreign(struct fake_linux *fake)
{
	fake_basics(fake);
	fake_conf(fake, -1, 6, model.forwarding6);
	fake_rp_filter(fake, -1, model.rp_filter);
	for (int i = 0; i < N_CHAINS; i++)
		if (model.chain[i])
			fake_foreign(fake, EVENT_CHAIN, chain_of(i), false);
	for (int i = 0; i < N_RULES; i++)
		if (model.rule[i])
			fake_rule(fake, rule_of(i), false);
}

// Administrator actions.

static struct event_link blank(int ifindex)
{
	char name[16];

	snprintf(name, sizeof(name), "x%d", ifindex);
	if (ifindex < FIRST + N_PORTS)
		return fake_tap((unsigned)(ifindex - FIRST));
	if (ifindex >= STACKED && ifindex < VRFS)
		return fake_vlan(ifindex, VLANS + ifindex % 8, (uint16_t)ifindex);
	if (ifindex >= VLANS && ifindex < STACKED)
		return fake_vlan(ifindex, FIRST + ifindex % N_PORTS, (uint16_t)ifindex);
	if (ifindex >= VRFS && ifindex < BRIDGE)
		return fake_vrf(ifindex, name, 100 + (uint32_t)ifindex % 3); // two share a table
	struct event_link iface = fake_device(ifindex, name, "wireguard");
	if (ifindex >= BRIDGE && ifindex < MACVLANS)
		snprintf(iface.kind, sizeof(iface.kind), "bridge");
	if (ifindex >= MACVLANS && ifindex < OTHERS) {
		snprintf(iface.kind, sizeof(iface.kind), ifindex % 4 ? "macvlan" : "ipvlan");
		iface.lower = ifindex % 2 ? FIRST + ifindex % N_PORTS : VLANS + ifindex % 8;
	}
	return iface;
}

static void create(struct fake_linux *fake, int ifindex)
{
	struct model_interface *one = &model.at[ifindex];
	struct event_link iface = blank(ifindex);

	if (one->exists || (iface.lower && !model.at[iface.lower].exists))
		return;
	*one = (struct model_interface){.exists = true, .iface = iface, .forwarding = 1};
	tell_conf(fake, ifindex);
	fake_iface(fake, &one->iface);
}

static void destroy(struct fake_linux *fake, int ifindex)
{
	if (!model.at[ifindex].exists)
		return;
	for (int other = FIRST; other <= LAST; other++) {
		struct model_interface *one = &model.at[other];

		if (one->exists && one->iface.lower == ifindex)
			destroy(fake, other);
		if (one->exists && one->iface.master == ifindex) {
			one->iface.master = 0;
			fake_iface(fake, &one->iface);
		}
	}
	model.at[ifindex].exists = false;
	fake_iface_gone(fake, ifindex);
}

static void change_iface(struct fake_linux *fake, int ifindex)
{
	struct event_link *iface = &model.at[ifindex].iface;
	int master = VRFS + pick(BRIDGE + 2 - VRFS);

	switch (pick(6)) {
	case 0:
		iface->flags ^= IFF_UP;
		break;
	case 1:
		iface->carrier = !iface->carrier;
		break;
	case 2:
		iface->mtu = 1000 + 500 * (uint32_t)pick(10);
		break;
	case 3:
		iface->mac = fake_mac((uint8_t)(100 + pick(100)));
		break;
	case 4:
		iface->has_xdp = !pick(4);
		break;
	default:
		if (ifindex < VRFS || ifindex >= MACVLANS)
			iface->master = model.at[master].exists && pick(3) ? master : 0;
	}
	fake_iface(fake, iface);
}

static void change_host(struct fake_linux *fake, int ifindex)
{
	static const uint16_t states[] = {NUD_REACHABLE, NUD_STALE, NUD_FAILED, NUD_PERMANENT};
	int host = pick(N_HOSTS);
	struct fake_seen *seen = &model.at[ifindex].host[host];
	char text[32];

	if (!pick(4)) {
		*seen = (struct fake_seen){0};
		fake_neighbour_gone(fake, ifindex, host_of(ifindex, host, text));
		return;
	}
	*seen = (struct fake_seen){(uint8_t)(1 + pick(200)), states[pick(4)]};
	tell_host(fake, ifindex, host);
}

static void change_tc(struct fake_linux *fake, int ifindex)
{
	struct model_interface *one = &model.at[ifindex];

	if (one->tc)
		fake_foreign(fake, EVENT_QDISC, qdisc_of(ifindex, one->tc), true);
	one->tc = (uint8_t)(pick(2) ? pick(4) : 0);
	if (one->tc)
		fake_foreign(fake, EVENT_QDISC, qdisc_of(ifindex, one->tc), false);
}

static void change_conf(struct fake_linux *fake, int ifindex)
{
	model.at[ifindex].forwarding = pick(4) > 0;
	model.at[ifindex].rp_filter = !pick(4);
	tell_conf(fake, ifindex);
}

static void change_foreign(struct fake_linux *fake)
{
	int i = pick(N_CHAINS);

	switch (pick(4)) {
	case 0:
		model.chain[i] = !model.chain[i];
		fake_foreign(fake, EVENT_CHAIN, chain_of(i), !model.chain[i]);
		break;
	case 1:
		model.rule[i] = !model.rule[i];
		fake_rule(fake, rule_of(i), !model.rule[i]);
		break;
	case 2:
		model.forwarding6 = pick(4) > 0;
		fake_conf(fake, -1, 6, model.forwarding6);
		break;
	default:
		model.rp_filter = !pick(4);
		fake_rp_filter(fake, -1, model.rp_filter);
	}
}

static void do_something(struct fake_linux *fake)
{
	int ifindex = FIRST + pick(LAST + 1 - FIRST), what = pick(100);

	if (what < 5)
		change_foreign(fake);
	else if (!model.at[ifindex].exists)
		create(fake, ifindex);
	else if (what < 12)
		destroy(fake, ifindex);
	else if (what < 50)
		change_iface(fake, ifindex);
	else if (what < 80)
		change_host(fake, ifindex);
	else if (what < 86)
		change_tc(fake, ifindex);
	else
		change_conf(fake, ifindex);
}

// In any order, with changes in between.
static void dump(struct fake_linux *fake, bool is_busy)
{
	int start = pick(LAST), foreign_at = pick(LAST);

	fake->lost = 0;
	mirror_dump_begins(fake->mirror);
	fake->in_dump = true;
	for (int i = 0; i <= LAST; i++) {
		if (i == foreign_at)
			tell_foreign(fake);
		tell_all_of(fake, (start + i * 5) % (LAST + 1));
		fake->in_dump = false;
		if (is_busy && !pick(4) && i != foreign_at)
			do_something(fake);
		if (!pick(10))
			mirror_flush(fake->mirror);
		fake->in_dump = true;
	}
	fake->in_dump = false;
	mirror_dump_ends(fake->mirror, fake->lost);
}

// Compares the results of both mirrors.

static void compare_hosts(struct fake_linux *fakes, int ifindex)
{
	struct fib_answer answer[2];
	char text[32];

	for (int host = 0; host < N_HOSTS; host++) {
		struct wire_addr addr = fake_addr(host_of(ifindex, host, text));

		for (unsigned i = 0; i < 2; i++) {
			struct fib_change change = {.op = FIB_REPLACE,
				.route = {.prefix = {addr, 16}, .hop.kind = FIB_CONNECTED}};
			const struct iface *iface = fake_fib_iface(&fakes[i], ifindex);
			struct ifaces_state seen = ifaces_state(fakes[i].mirror, ifindex);

			wire_prefix_mask(&change.route.prefix);
			if (seen.iface == IFACE_NONE)
				return;
			change.route.hop.iface = seen.iface;
			change.route.vrf = iface->vrf;
			assert_int_equal(fib_change(fakes[i].fib, &change, 1, NULL, NULL), 0);
			rib_lookup(fakes[i].fib, iface->vrf, &addr, &answer[i]);
		}
		assert_int_equal(answer[0].verdict, answer[1].verdict);
		assert_memory_equal(&answer[0].mac, &answer[1].mac, sizeof(struct wire_mac));
	}
}

static const char *vrf_name(const struct fake_linux *fake, const struct iface *iface)
{
	return iface->vrf ? ifaces_vrf_name(fake->mirror, iface->vrf) : "";
}

static void compare_ifaces(struct fake_linux *fakes, int ifindex)
{
	const struct iface *a = fake_fib_iface(&fakes[0], ifindex);
	const struct iface *b = fake_fib_iface(&fakes[1], ifindex);
	struct ifaces_state s = ifaces_state(fakes[0].mirror, ifindex);
	struct ifaces_state t = ifaces_state(fakes[1].mirror, ifindex);

	assert_int_equal(!a, !b);
	assert_int_equal(s.iface == IFACE_NONE, t.iface == IFACE_NONE);
	s.iface = t.iface = 0;
	assert_memory_equal(&s, &t, sizeof(s));
	if (!a)
		return;
	assert_string_equal(vrf_name(&fakes[0], a), vrf_name(&fakes[1], b));
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->port, b->port);
	assert_int_equal(a->mtu, b->mtu);
	assert_int_equal(a->n_macs, b->n_macs);
	assert_int_equal(a->n_tags, b->n_tags);
	assert_memory_equal(&a->mac, &b->mac, sizeof(a->mac));
	assert_memory_equal(a->macs, b->macs, a->n_macs * sizeof(a->macs[0]));
	assert_memory_equal(a->tag, b->tag, sizeof(a->tag));
}

static void compare(struct fake_linux *fake)
{
	struct fake_linux fakes[2] = {*fake};
	struct fib_usage usage[2];

	fake_open(&fakes[1], N_PORTS);
	dump(&fakes[1], false);
	for (unsigned i = 0; i < 2; i++) {
		fake_flush(&fakes[i]);
		fib_usage(fakes[i].fib, &usage[i]);
	}
	assert_int_equal(usage[0].n_neighbours, usage[1].n_neighbours);
	for (int ifindex = FIRST; ifindex <= LAST; ifindex++) {
		compare_ifaces(fakes, ifindex);
		compare_hosts(fakes, ifindex);
	}
	for (uint16_t vrf = 0, n = 0; vrf < FIB_MAX_VRFS; vrf++) {
		n += fib_vrf_is_open(fakes[0].fib, vrf) - fib_vrf_is_open(fakes[1].fib, vrf);
		assert_true(vrf < FIB_MAX_VRFS - 1 || !n);
	}
	for (unsigned port = 0; port < N_PORTS; port++)
		if (model.at[FIRST + port].exists) {
			assert_int_equal(fake->port[port].up, fakes[1].port[port].up);
			assert_int_equal(fake->port[port].mtu, fakes[1].port[port].mtu);
		} else {
			assert_true(fib_iface(fake->fib, (uint16_t)port)->flags & IFACE_DOWN);
		}
	fake_close(&fakes[1]);
}

// Memory is short while something changes, and in some of the dumps that are to cure what was lost.
static void change_without_memory(struct fake_linux *fake)
{
	fail_alloc_often(1 + (unsigned)pick(6), seed);
	for (int i = pick(10); i >= 0; i--)
		do_something(fake);
	if (fake->lost && !pick(2))
		dump(fake, true);
	mirror_flush(fake->mirror);
	fail_alloc_at(0);
}

static void play_without_memory(unsigned first_seed, unsigned *n_losses)
{
	struct fake_linux fake;

	seed = first_seed;
	model = (struct model){.forwarding6 = 1};
	fake_open(&fake, N_PORTS);
	fake_basics(&fake);
	for (unsigned step = 0; step < 40; step++) {
		change_without_memory(&fake);
		*n_losses += fake.lost != 0;
		if (fake.lost)
			dump(&fake, true);
		assert_int_equal(fake.lost, 0);
	}
	compare(&fake);
	fake_close(&fake);
}

static void play(unsigned first_seed)
{
	struct fake_linux fake;

	seed = first_seed;
	model = (struct model){.forwarding6 = 1};
	fake_open(&fake, N_PORTS);
	fake_basics(&fake);
	for (unsigned step = 0; step < 400; step++) {
		do_something(&fake);
		if (!pick(100)) {
			fake.is_deaf = true;
			for (int lost = pick(40); lost >= 0; lost--)
				do_something(&fake);
			fake.is_deaf = false;
			dump(&fake, true);
		}
		if (!pick(8))
			mirror_flush(fake.mirror);
	}
	compare(&fake);
	fake_close(&fake);
}

static void ends_where_a_fresh_mirror_would(void **state)
{
	const char *only = getenv("DL3_SEED");

	if (only)
		play((unsigned)atoi(only));
	for (unsigned i = 1; i <= 60 && !only; i++) {
		print_message("seed %u\n", i);
		play(i);
	}
}

static void what_is_lost_without_memory_comes_with_a_dump(void **state)
{
	unsigned n_losses = 0;

	for (unsigned i = 1; i <= 50; i++) {
		print_message("seed %u\n", i);
		play_without_memory(i, &n_losses);
	}
	assert_true(n_losses > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_where_a_fresh_mirror_would),
		cmocka_unit_test(what_is_lost_without_memory_comes_with_a_dump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
