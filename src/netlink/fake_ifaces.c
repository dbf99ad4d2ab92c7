// Fake interfaces, conversion of text to events, and of fib results to text. Tests only.
#include "netlink/fake_ifaces.h"

#include "netlink/netlink.h"

#include <linux/rtnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fake fake;

struct ifaces_state ifaces_state(const struct mirror *mirror, int ifindex)
{
	static const struct ifaces_state unknown = {.iface = IFACE_NONE};

	return ifindex > 0 && ifindex < FAKE_IFACES ? fake.iface[ifindex] : unknown;
}

const char *ifaces_name(const struct mirror *mirror, int ifindex)
{
	static const char *const names[] = {"lo", "a", "b", "c", "d", "e", "f", "wg0"};

	return ifindex > 0 && ifindex < FAKE_IFACES ? names[ifindex] : "?";
}

uint16_t ifaces_vrf_of_table(const struct mirror *mirror, uint32_t table)
{
	if (table == FAKE_VRF_TABLE && fake.has_vrf)
		return 1;
	return table >= RT_TABLE_DEFAULT && table <= RT_TABLE_LOCAL ? 0 : IFACES_NO_VRF;
}

static void dump_again(void *ops)
{
	fake.n_dumps++;
}

static void lost(void *ops, enum event_kind kind)
{
	fake.lost |= 1u << kind;
}

void fake_open(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.fib = fib_create(NULL);
	assert_non_null(fake.fib);
	fib_follow_linux(fake.fib);
	for (int i = 1; i < FAKE_IFACES; i++) {
		struct iface iface = {.port = i - 1, .mtu = 1500, .mac = {{2, 0, 0, 0, 0, i}}};
		fake.iface[i] = (struct ifaces_state){.is_known = true,
			.is_up = true,
			.has_carrier = true,
			.iface = i == FAKE_FOREIGN ? IFACE_NONE : i - 1};
		if (i != FAKE_FOREIGN)
			assert_int_equal(fib_iface_set(fake.fib, i - 1, &iface), 0);
	}
	fake.mirror.settings = (struct mirror_settings){.fib = fake.fib,
		.n_ports = FAKE_FOREIGN - 1,
		.ops = {.dump_again = dump_again, .lost = lost}};
	assert_int_equal(routes_open(&fake.routes, &fake.mirror, NULL), 0);
}

void fake_close(void)
{
	routes_close(fake.routes);
	fib_destroy(fake.fib);
}

int fake_setup(void **state)
{
	fake_open();
	return 0;
}

int fake_teardown(void **state)
{
	fake_close();
	return 0;
}

static bool take_type(struct event *event, const char *word)
{
	for (uint8_t i = RTN_UNICAST; i <= RTN_THROW; i++)
		if (!strcmp(word, netlink_type_name(i))) {
			event->route.type = i;
			return true;
		}
	return false;
}

static bool take_mark(struct event *event, const char *word)
{
	struct event_route *route = &event->route;

	if (!strcmp(word, "deleted"))
		event->is_delete = true;
	else if (!strcmp(word, "dump"))
		event->is_dump = true;
	else if (!strcmp(word, "replace"))
		event->nl_flags |= NLM_F_REPLACE;
	else if (!strcmp(word, "append"))
		event->nl_flags |= NLM_F_APPEND;
	else if (!strcmp(word, "nexthop"))
		route->hop[route->n_hops++].weight = 1;
	else if (!strcmp(word, "dead"))
		route->hop[route->n_hops - 1].flags |= RTNH_F_DEAD;
	else if (!strcmp(word, "linkdown"))
		route->hop[route->n_hops - 1].flags |= RTNH_F_LINKDOWN;
	else if (!strcmp(word, "encap"))
		route->hop[route->n_hops - 1].has_encap = true;
	else
		return false;
	return true;
}

static struct event_hop *last_hop(struct event *event)
{
	struct event_route *route = &event->route;

	if (event->kind == EVENT_NEXTHOP)
		return &event->nexthop.hop;
	if (!route->n_hops)
		route->hop[route->n_hops++].weight = 1;
	return &route->hop[route->n_hops - 1];
}

static void take_group(struct event_nexthop *nexthop, char *text)
{
	char *rest, *one = strtok_r(text, "/", &rest);

	nexthop->is_group = true;
	for (; one; one = strtok_r(NULL, "/", &rest)) {
		const char *weight = strchr(one, ',');
		nexthop->member[nexthop->n_members].id = atoi(one);
		nexthop->member[nexthop->n_members++].weight = weight ? atoi(weight + 1) : 1;
	}
}

static void take_pair(struct event *event, const char *word, char *value)
{
	struct event_route *route = &event->route;
	struct wire_prefix from;

	if (!strcmp(word, "via")) {
		assert_int_equal(wire_addr_parse(value, &last_hop(event)->via), 0);
	} else if (!strcmp(word, "dev")) {
		last_hop(event)->ifindex = atoi(value);
	} else if (!strcmp(word, "weight")) {
		last_hop(event)->weight = atoi(value);
	} else if (!strcmp(word, "metric")) {
		route->metric = atoi(value);
	} else if (!strcmp(word, "tos")) {
		route->tos = atoi(value);
	} else if (!strcmp(word, "table")) {
		route->table = atoi(value);
	} else if (!strcmp(word, "proto")) {
		route->protocol = atoi(value);
	} else if (!strcmp(word, "scope")) {
		route->scope = atoi(value);
	} else if (!strcmp(word, "mtu")) {
		route->mtu = atoi(value);
	} else if (!strcmp(word, "advmss")) {
		route->metrics = atoi(value);
	} else if (!strcmp(word, "expires")) {
		route->expires = atoi(value);
	} else if (!strcmp(word, "nhid")) {
		route->nh_id = atoi(value);
	} else if (!strcmp(word, "src")) {
		assert_int_equal(wire_addr_parse(value, &route->prefsrc), 0);
	} else if (!strcmp(word, "from")) {
		assert_int_equal(wire_prefix_parse(value, &from), 0);
		route->src = from.addr;
		route->src_len = from.len;
	} else if (!strcmp(word, "request")) {
		event->sequence = atoi(value);
	} else if (!strcmp(word, "group")) {
		take_group(&event->nexthop, value);
	} else if (!strcmp(word, "type")) {
		event->nexthop.is_resilient = !strcmp(value, "resilient");
	} else if (!strcmp(word, "idle_timer")) {
		event->nexthop.resilient.idle_cs = atoi(value) * 100;
	} else if (!strcmp(word, "unbalanced_timer")) {
		event->nexthop.resilient.unbalanced_cs = atoi(value) * 100;
	} else {
		fail_msg("nobody says \"%s\"", word);
	}
}

static bool take_noun(struct event *event, const char *word, char **rest)
{
	if (!strcmp(word, "id")) {
		event->kind = EVENT_NEXTHOP;
		event->nexthop = (struct event_nexthop){.id = atoi(strtok_r(NULL, " ", rest))};
		return true;
	}
	if (event->kind == EVENT_NEXTHOP && !strcmp(word, "blackhole"))
		return event->nexthop.is_blackhole = true;
	if (!strchr(word, '/'))
		return false;
	assert_int_equal(wire_prefix_parse(word, &event->route.prefix), 0);
	return true;
}

void fake_event(const char *words, struct event *out)
{
	const bool is_repeat = !strncmp(words, "repeat ", strlen("repeat "));
	char text[4096], *rest, *word;

	memset(out, 0, sizeof(*out));
	out->kind = EVENT_ROUTE;
	out->route.type = RTN_UNICAST;
	out->route.table = RT_TABLE_MAIN;
	snprintf(text, sizeof(text), "%s", words + (is_repeat ? strlen("repeat ") : 0));
	for (word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (take_noun(out, word, &rest) || take_mark(out, word) || take_type(out, word))
			continue;
		char *value = strtok_r(NULL, " ", &rest);
		assert_non_null(value);
		take_pair(out, word, value);
	}
	if (!out->is_dump && !out->is_delete && !is_repeat)
		out->nl_flags |= NLM_F_CREATE;
	if (out->kind == EVENT_ROUTE && out->route.prefix.addr.family == 6 && !out->route.metric)
		out->route.metric = 1024;
}

void fake_say(const char *words)
{
	struct event event;

	fake_event(words, &event);
	if (event.kind == EVENT_NEXTHOP)
		routes_nexthop_event(fake.routes, &event);
	else
		routes_event(fake.routes, &event);
}

void fake_flush(void)
{
	unsigned n = 0;

	while (routes_flush(fake.routes))
		assert_true(n++ < 100000);
}

static void print_group(const struct fib_hop *hop, char *text)
{
	struct fib_member member[64];
	unsigned n = fib_group_members(fake.fib, hop, member, 64);
	char addr[WIRE_ADDR_TEXT];

	for (unsigned i = 0; i < n; i++)
		text += sprintf(text, "%s%s dev %u weight %u", i ? ", " : "",
			wire_addr_print(&member[i].hop.via, addr), member[i].hop.iface + 1,
			member[i].weight);
}

const char *fake_ask_vrf(uint16_t vrf, const char *text)
{
	static const char *const kinds[N_FIB_KINDS] = {"via", "dev", "peer", "group", "local",
		"blackhole", "unreachable", "prohibit", "martian", "link-local", "multicast",
		"linux"};
	static char answer_text[64 * 80];
	char via[WIRE_ADDR_TEXT];
	struct fib_answer answer;
	struct wire_addr addr;

	fake_flush();
	assert_int_equal(wire_addr_parse(text, &addr), 0);
	rib_lookup(fake.fib, vrf, &addr, &answer);
	const struct fib_hop *hop = &answer.route.hop;
	if (!answer.found)
		return "nothing";
	if (hop->kind == FIB_VIA)
		sprintf(answer_text, "via %s dev %u", wire_addr_print(&hop->via, via),
			hop->iface + 1);
	else if (hop->kind == FIB_CONNECTED)
		sprintf(answer_text, "dev %u", hop->iface + 1);
	else if (hop->kind == FIB_GROUP)
		print_group(hop, answer_text);
	else
		return kinds[hop->kind];
	return answer_text;
}

const char *fake_ask(const char *addr)
{
	return fake_ask_vrf(0, addr);
}

void fake_set_up(int ifindex, bool is_up)
{
	fake.iface[ifindex].is_up = is_up;
	routes_iface_changed(fake.routes, ifindex);
}

void fake_set_carrier(int ifindex, bool has_carrier)
{
	fake.iface[ifindex].has_carrier = has_carrier;
	routes_iface_changed(fake.routes, ifindex);
}

void fake_remove(int ifindex)
{
	fake.iface[ifindex] = (struct ifaces_state){.iface = IFACE_NONE};
	routes_iface_gone(fake.routes, ifindex);
}
