// Builds the events that decode produces from kernel messages. Tests only.
#include "netlink/fake_linux.h"

#include "netlink/ifaces_inside.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>

struct fake_linux fake;

static int set_admin(void *ops, unsigned port, bool up)
{
	struct fake_linux *fake = ops;

	fake->n_asked++;
	fake->port[port].up = up;
	return 0;
}

static int set_mtu(void *ops, unsigned port, uint16_t mtu, struct error *error)
{
	struct fake_linux *fake = ops;

	fake->n_asked++;
	if (mtu > fake->mtu_max)
		return error_set(error, -EINVAL, "mtu at most %u", fake->mtu_max);
	fake->port[port].mtu = mtu;
	return 0;
}

static int restore_mtu(void *ops, unsigned port, uint32_t refused, uint16_t mtu)
{
	struct fake_linux *fake = ops;

	if (fake->keeps_mtu)
		return -EBUSY;
	fake->restored_mtu[port] = mtu;
	fake->refused_mtu[port] = refused;
	return 0;
}

static int set_mac(void *ops, unsigned port, const struct wire_mac *mac)
{
	struct fake_linux *fake = ops;

	fake->n_asked++;
	fake->port[port].mac = *mac;
	return 0;
}

static int set_promiscuous(void *ops, unsigned port, bool promiscuous)
{
	struct fake_linux *fake = ops;

	fake->n_asked++;
	fake->port[port].promiscuous = promiscuous;
	return 0;
}

static bool sends_redirects(void *ops, const char *interface, uint8_t family)
{
	struct fake_linux *fake = ops;

	return strcmp(interface, fake->no_redirects) != 0;
}

static bool disables_ipv6(void *ops, const char *interface)
{
	struct fake_linux *fake = ops;

	return !strcmp(interface, fake->no_ipv6);
}

static unsigned mtu6(void *ops, const char *interface)
{
	struct fake_linux *fake = ops;

	return strcmp(interface, fake->has_mtu6) ? 0 : fake->mtu6;
}

static uint8_t tcx(void *ops, int ifindex)
{
	return ifindex < FAKE_TAP + 2 ? ((struct fake_linux *)ops)->tcx[ifindex] : 0;
}

static bool hides_lost_routes(void *ops)
{
	return ((struct fake_linux *)ops)->hides_lost_routes;
}

static bool has_old_tables(void *ops, uint8_t family)
{
	return ((struct fake_linux *)ops)->old_tables == family;
}

static void dump_again(void *ops)
{
	((struct fake_linux *)ops)->n_dumps_requested++;
}

struct wire_mac fake_mac(uint8_t last)
{
	return (struct wire_mac){{2, 0, 0, 0, 0, last}};
}

static void lost(void *ops, enum event_kind kind)
{
	((struct fake_linux *)ops)->lost |= 1u << kind;
}

static bool dump_filters(void *ops, int ifindex, uint8_t side)
{
	struct fake_linux *fake = ops;

	fake->dumps_filters = ifindex;
	fake->dumps_side = side;
	return true;
}

int fake_list(const struct fake_linux *fake, const char *name)
{
	for (unsigned i = 0; i < FAKE_LISTS; i++)
		if (!strcmp(fake->given[i], name))
			return (int)i;
	return -1;
}

static void take_list(struct fake_linux *fake, const struct acl_source *list)
{
	int i = fake_list(fake, list->name);

	if (i < 0)
		i = fake_list(fake, "");
	assert_true(i >= 0);
	snprintf(fake->given[i], sizeof(fake->given[i]), "%s", list->rule ? list->name : "");
	fake->given_rules[i] = list->n;
	fake->given_effects[i] = 0;
	for (size_t k = 0; k < list->n; k++)
		fake->given_effects[i] = fake->given_effects[i] << 3 | list->rule[k].effect;
}

static void expect_linuxs(const struct fake_linux *fake)
{
	const struct iface *iface = fake_fib_iface(fake, fake->linuxs);

	assert_non_null(iface);
	assert_true(iface->flags & (IFACE_LINUX | IFACE_OUT_LINUX));
}

static int filters(void *arg, const struct acl_set *change, struct error *error)
{
	struct fake_linux *fake = arg;

	if (fake->linuxs)
		expect_linuxs(fake);
	assert_int_equal(change->n_lists, change->n_uses);
	if (fake->refuses_filters)
		return error_set(error, -ENOMEM, "no memory for lists");
	for (size_t i = 0; i < change->n_lists; i++) {
		assert_string_equal(change->use[i].list,
			change->list[i].rule ? change->list[i].name : "");
		take_list(fake, &change->list[i]);
	}
	fake->n_given++;
	return 0;
}

struct mac_table *fake_macs;

void fake_open(struct fake_linux *fake, unsigned n_ports)
{
	struct mirror_settings settings = {.n_ports = n_ports};

	*fake = (struct fake_linux){.mtu_max = 9600, .macs = fake_macs};
	fake->fib = fib_create(NULL);
	assert_non_null(fake->fib);
	fib_follow_linux(fake->fib);
	for (unsigned port = 0; port < n_ports; port++) {
		fake->port[port] = (struct mirror_port){.mac = fake_mac((uint8_t)port),
			.mtu = 1500,
			.up = true};
		settings.tap[port] = FAKE_TAP + (int)port;
		settings.port[port] = fake->port[port];
	}
	settings.fib = fake->fib;
	settings.macs = fake->macs;
	settings.ops = (struct mirror_ops){.port_set_admin = set_admin,
		.port_set_mtu = set_mtu,
		.tap_restore_mtu = restore_mtu,
		.port_set_mac = set_mac,
		.port_set_promiscuous = set_promiscuous,
		.sends_redirects = sends_redirects,
		.disables_ipv6 = disables_ipv6,
		.mtu6 = mtu6,
		.tcx = tcx,
		.hides_lost_routes = hides_lost_routes,
		.has_old_tables = has_old_tables,
		.dump_again = dump_again,
		.lost = lost,
		.dump_filters = dump_filters,
		.ops = fake};
	fake_bridge_ops(&settings.ops);
	settings.filters = filters;
	settings.arg = fake;
	assert_int_equal(mirror_open(&fake->mirror, &settings, NULL), 0);
}

void fake_close(struct fake_linux *fake)
{
	mirror_close(fake->mirror);
	fib_destroy(fake->fib);
}

void fake_flush(struct fake_linux *fake)
{
	for (unsigned tries = 0; mirror_flush(fake->mirror); tries++)
		assert_true(tries < 1000);
}

static void tell(struct fake_linux *fake, struct event *event)
{
	event->is_dump = fake->in_dump;
	if (!fake->is_deaf)
		mirror_event(fake->mirror, event);
}

void fake_rule(struct fake_linux *fake, const struct event_rule *rule, bool is_delete)
{
	struct event event = {.kind = EVENT_RULE, .is_delete = is_delete, .rule = *rule};

	tell(fake, &event);
}

void fake_basics(struct fake_linux *fake)
{
	for (uint8_t family = 4; family <= 6; family += 2) {
		fake_rule(fake,
			&(struct event_rule){.family = family,
				.table = 255,
				.action = FR_ACT_TO_TBL},
			false);
		fake_rule(fake,
			&(struct event_rule){.family = family,
				.priority = 32766,
				.table = 254,
				.action = FR_ACT_TO_TBL},
			false);
		fake_rule(fake,
			&(struct event_rule){.family = family,
				.priority = 1000,
				.is_l3mdev = true,
				.action = FR_ACT_TO_TBL},
			false);
		fake_conf(fake, -1, family, 1);
	}
}

struct event_link fake_device(int ifindex, const char *name, const char *kind)
{
	struct event_link iface = {.ifindex = ifindex,
		.flags = IFF_UP | IFF_RUNNING,
		.mtu = 1500,
		.mac = fake_mac((uint8_t)ifindex),
		.carrier = true};

	snprintf(iface.name, sizeof(iface.name), "%s", name);
	snprintf(iface.kind, sizeof(iface.kind), "%s", kind);
	return iface;
}

struct event_link fake_tap(unsigned port)
{
	char name[16];

	snprintf(name, sizeof(name), "p%u", port);
	struct event_link iface = fake_device(FAKE_TAP + (int)port, name, "tun");
	iface.mac = fake_mac((uint8_t)port);
	return iface;
}

struct event_link fake_vlan(int ifindex, int lower, uint16_t vid)
{
	char name[16];

	snprintf(name, sizeof(name), "if%d.%u", lower, vid);
	struct event_link iface = fake_device(ifindex, name, "vlan");
	iface.lower = lower;
	iface.vlan_id = vid;
	iface.vlan_protocol = 0x8100;
	return iface;
}

struct event_link fake_vrf(int ifindex, const char *name, uint32_t table)
{
	struct event_link iface = fake_device(ifindex, name, "vrf");

	iface.vrf_table = table;
	return iface;
}

void fake_iface(struct fake_linux *fake, const struct event_link *iface)
{
	struct event event = {.kind = EVENT_LINK, .iface = *iface};

	tell(fake, &event);
}

void fake_conf(struct fake_linux *fake, int ifindex, uint8_t family, int forwarding)
{
	struct event event = {.kind = EVENT_NETCONF,
		.netconf = {.ifindex = ifindex,
			.family = family,
			.forwarding = forwarding,
			.rp_filter = -1,
			.ignore_linkdown = -1,
			.proxy_neigh = -1}};

	tell(fake, &event);
}

void fake_rp_filter(struct fake_linux *fake, int ifindex, int value)
{
	struct event event = {.kind = EVENT_NETCONF,
		.netconf = {.ifindex = ifindex,
			.family = 4,
			.forwarding = -1,
			.rp_filter = value,
			.ignore_linkdown = -1,
			.proxy_neigh = -1}};

	tell(fake, &event);
}

void fake_router(struct fake_linux *fake, const struct event_link *iface)
{
	fake_conf(fake, iface->ifindex, 4, 1);
	fake_conf(fake, iface->ifindex, 6, 1);
	fake_iface(fake, iface);
}

void fake_taps(struct fake_linux *fake, unsigned n_ports)
{
	for (unsigned port = 0; port < n_ports; port++) {
		struct event_link tap = fake_tap(port);

		fake_router(fake, &tap);
	}
}

int fake_setup(void **state)
{
	fake_open(&fake, 2);
	fake_basics(&fake);
	fake_taps(&fake, 2);
	fake_flush(&fake);
	return 0;
}

int fake_teardown(void **state)
{
	fake_close(&fake);
	return 0;
}

void fake_iface_gone(struct fake_linux *fake, int ifindex)
{
	struct event event = {.kind = EVENT_LINK, .is_delete = true, .iface.ifindex = ifindex};

	tell(fake, &event);
}

struct wire_addr fake_addr(const char *text)
{
	struct wire_addr addr;

	assert_int_equal(wire_addr_parse(text, &addr), 0);
	return addr;
}

void fake_address(struct fake_linux *fake, int ifindex, const char *prefix, bool is_delete)
{
	struct event event = {.kind = EVENT_ADDRESS,
		.is_delete = is_delete,
		.address.ifindex = ifindex};

	assert_int_not_equal(wire_prefix_parse(prefix, &event.address.prefix), -EINVAL);
	event.address.local = event.address.prefix.addr;
	tell(fake, &event);
}

void fake_neighbour(struct fake_linux *fake, int ifindex, const char *addr, struct fake_seen seen)
{
	struct event event = {.kind = EVENT_NEIGHBOUR};

	event.neighbour.ifindex = ifindex;
	event.neighbour.addr = fake_addr(addr);
	event.neighbour.mac = seen.mac ? fake_mac(seen.mac) : (struct wire_mac){{0}};
	event.neighbour.has_mac = seen.mac;
	event.neighbour.state = seen.state;
	tell(fake, &event);
}

void fake_neighbour_gone(struct fake_linux *fake, int ifindex, const char *addr)
{
	struct event event = {.kind = EVENT_NEIGHBOUR,
		.is_delete = true,
		.neighbour = {.ifindex = ifindex, .addr = fake_addr(addr)}};

	tell(fake, &event);
}

void fake_route(struct fake_linux *fake, const struct event_route *route, bool is_delete)
{
	struct event event = {.kind = EVENT_ROUTE,
		.is_delete = is_delete,
		.nl_flags = is_delete ? 0 : NLM_F_CREATE,
		.route = *route};

	tell(fake, &event);
}

void fake_filter(struct fake_linux *fake, const struct event_filter *filter, bool is_delete)
{
	struct event event = {.kind = EVENT_FILTER, .is_delete = is_delete, .filter = *filter};

	tell(fake, &event);
}

void fake_foreign(struct fake_linux *fake, enum event_kind kind, const struct event_foreign *thing,
	bool is_delete)
{
	struct event event = {.kind = (uint8_t)kind, .is_delete = is_delete, .foreign = *thing};

	tell(fake, &event);
}

const struct iface *fake_fib_iface(const struct fake_linux *fake, int ifindex)
{
	const struct interface *one = interfaces_find(&fake->mirror->ifaces->all, ifindex);

	return one ? fib_iface(fake->fib, one->id) : NULL;
}

struct listing {
	const char *what;
	char *where;
	unsigned n;
};

static bool look_for(void *arg, const struct netlink_unsupported *one)
{
	struct listing *listing = arg;

	assert_true(one->effect[0] && one->what[0]);
	if (strcmp(one->what, listing->what) != 0)
		return true;
	if (!listing->n++ && listing->where)
		snprintf(listing->where, 64, "%s", one->where);
	return true;
}

unsigned fake_unsupported(const struct fake_linux *fake, const char *what, char where[64])
{
	struct listing listing = {.what = what, .where = where};

	mirror_unsupported(fake->mirror, look_for, &listing);
	return listing.n;
}
