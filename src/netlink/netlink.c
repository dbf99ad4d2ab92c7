// Public functions: connects the listener with the mirror. Control thread.
#include "netlink/netlink.h"

#include "acl/acl_fast.h"
#include "base/clock.h"
#include "netlink/inside.h"
#include "netlink/mirror_inside.h"

#include <errno.h>
#include <linux/if_bridge.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { RECEIVE_BUFFER = 64 << 20, TICK_NS = 100000000, BUDGET_NS = 5000000 };

// Operations called by the mirror.
static int set_admin(void *ops, unsigned port, bool up)
{
	struct netlink *netlink = ops;

	return port_set_admin(netlink->ctx.ports, port, up, NULL);
}

static int set_mtu(void *ops, unsigned port, uint16_t mtu, struct error *error)
{
	struct netlink *netlink = ops;

	return port_set_mtu(netlink->ctx.ports, port, mtu, error);
}

static int restore_mtu(void *ops, unsigned port, uint32_t refused, uint16_t mtu)
{
	return tap_restore_mtu(((struct netlink *)ops)->ctx.taps, port, refused, mtu);
}

static int set_mac(void *ops, unsigned port, const struct wire_mac *mac)
{
	struct netlink *netlink = ops;

	return port_set_mac(netlink->ctx.ports, port, mac, NULL);
}

static int set_promiscuous(void *ops, unsigned port, bool promiscuous)
{
	struct netlink *netlink = ops;

	return port_set_promiscuous(netlink->ctx.ports, port, promiscuous, NULL);
}

static void set_bridged(void *ops, unsigned port, bool is_bridged)
{
	port_set_bridged(((struct netlink *)ops)->ctx.ports, port, is_bridged);
}

static uint8_t bridge_filters(void *ops)
{
	return sysctl_bridge_filters(((struct netlink *)ops)->ctx.taps);
}

static bool sends_redirects(void *ops, const char *interface, uint8_t family)
{
	return sysctl_sends_redirects(((struct netlink *)ops)->ctx.taps, interface, family);
}

static bool disables_ipv6(void *ops, const char *interface)
{
	return sysctl_disables_ipv6(((struct netlink *)ops)->ctx.taps, interface);
}

static unsigned mtu6(void *ops, const char *interface)
{
	return sysctl_mtu6(((struct netlink *)ops)->ctx.taps, interface);
}

static bool hides_lost_routes(void *ops)
{
	return sysctl_hides_lost_routes(((struct netlink *)ops)->ctx.taps);
}

static uint8_t tcx(void *ops, int ifindex)
{
	return tcx_sides(((struct netlink *)ops)->ctx.taps, ifindex);
}

static bool has_old_tables(void *ops, uint8_t family)
{
	return sysctl_has_old_tables(((struct netlink *)ops)->ctx.taps, family);
}

static int hash_policy(void *ops, uint8_t family)
{
	return sysctl_hash_policy(((struct netlink *)ops)->ctx.taps, family);
}

static void dump_again(void *ops)
{
	listen_dump_again(((struct netlink *)ops)->listen);
}

static void lost(void *ops, enum event_kind kind)
{
	struct netlink *netlink = ops;

	if (netlink->listen) // else the first dump is still to come
		listen_lost(netlink->listen, kind);
}

static bool dump_filters(void *ops, int ifindex, uint8_t side)
{
	return listen_dump_filters(((struct netlink *)ops)->listen, ifindex, side);
}

static void macs_seen(void *ops, const struct mirror_seen seen[], unsigned n)
{
	macs_refresh(ops, seen, n);
}

static bool mpls(void *ops, struct mirror_mpls *out)
{
	return sysctl_mpls(((struct netlink *)ops)->ctx.taps, out);
}

static bool guard(void *ops, const struct guard_port port[], unsigned n)
{
	return guard_set(((struct netlink *)ops)->guard, port, n);
}

static void tell_statement(void *ops, char *out, size_t bytes)
{
	guard_statement(((struct netlink *)ops)->guard, out, bytes);
}

static bool is_judged(void *ops, unsigned port)
{
	const struct acl_live *acls = ((struct netlink *)ops)->ctx.acls;
	const struct acl_view *view = acls ? acl_live_view(acls) : NULL;

	return view && (acl_view_list(view, ACL_IN, port) || acl_view_list(view, ACL_OUT, port));
}

static void storm(void *ops, unsigned port, uint32_t pps[MAC_STORMS])
{
	const struct netlink_ctx *ctx = &((struct netlink *)ops)->ctx;

	if (ctx->storm)
		ctx->storm(ctx->arg, port, pps);
}

static bool guard_follows(void *ops)
{
	return tap_namespace_is_own(((struct netlink *)ops)->ctx.taps);
}

static int ask_link(void *ops, int ifindex, void (*take)(void *arg, const struct event *event),
	void *arg)
{
	const struct {
		struct nlmsghdr head;
		struct ifinfomsg link;
	} message = {{.nlmsg_len = sizeof(message),
			     .nlmsg_type = RTM_GETLINK,
			     .nlmsg_flags = NLM_F_REQUEST},
		{.ifi_index = ifindex}};
	const struct listen_request request = {&message, sizeof(message), take, arg};

	return listen_ask(((struct netlink *)ops)->listen, &request);
}

static int dump_groups(void *ops, void (*take)(void *arg, const struct event *event), void *arg)
{
	const struct {
		struct nlmsghdr head;
		struct br_port_msg port;
	} message = {{.nlmsg_len = sizeof(message),
			     .nlmsg_type = RTM_GETMDB,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		{.family = AF_BRIDGE}};
	const struct listen_request request = {&message, sizeof(message), take, arg};

	return listen_ask(((struct netlink *)ops)->listen, &request);
}

static int udp_ports(void *ops, struct mirror_udp_port out[], unsigned most)
{
	return tunnel_facts_ports(&((struct netlink *)ops)->facts, out, most);
}

static uint32_t path_mtu(void *ops, const struct wire_addr *addr, int ifindex)
{
	return tunnel_facts_mtu(&((struct netlink *)ops)->facts, addr, ifindex);
}

// Callbacks of the listener.
static void handle_event(void *arg, const struct event *event)
{
	struct netlink *netlink = arg;

	if (event->kind != EVENT_NEIGHBOUR && event->kind != EVENT_FDB &&
		event->kind != EVENT_REMOTE && event->kind != EVENT_GROUPS)
		netlink->n_changes++;
	mirror_event(netlink->mirror, event);
}

static void handle_dump_begin(void *arg)
{
	mirror_dump_begins(((struct netlink *)arg)->mirror);
}

static void handle_dump_lack(void *arg, enum event_kind kind)
{
	mirror_dump_lacks(((struct netlink *)arg)->mirror, kind);
}

static void handle_dump_end(void *arg, uint32_t partial)
{
	mirror_dump_ends(((struct netlink *)arg)->mirror, partial);
}

static void handle_filters_end(void *arg, bool whole)
{
	mirror_filters_dumped(((struct netlink *)arg)->mirror, whole);
}

static struct mirror_port prepare_port(const struct netlink *netlink, unsigned port)
{
	struct port_info info;

	port_info(netlink->ctx.ports, port, &info);
	sysctl_prepare_tap(netlink->ctx.taps, info.name);
	return (struct mirror_port){.mac = info.mac, .mtu = info.mtu, .up = true};
}

static int open_mirror(struct netlink *netlink, struct error *error)
{
	struct mirror_settings settings = {.fib = netlink->ctx.fib,
		.macs = netlink->ctx.macs,
		.n_ports = netlink->ctx.n_ports,
		.is_vrf_used = netlink->ctx.is_vrf_used,
		.iface_kept = netlink->ctx.iface_kept,
		.iface_named = netlink->ctx.iface_named,
		.filters = netlink->ctx.filters,
		.shape = netlink->ctx.shape,
		.shape_iface = netlink->ctx.shape_iface,
		.arg = netlink->ctx.arg,
		.ops = {set_admin, set_mtu, restore_mtu, set_mac, set_promiscuous, set_bridged,
			bridge_filters, sends_redirects, disables_ipv6, mtu6, tcx,
			hides_lost_routes, has_old_tables, hash_policy, dump_again, lost,
			dump_filters, classes_ask, macs_seen, mpls, guard, tell_statement,
			is_judged, storm, guard_follows, ask_link, dump_groups, udp_ports, path_mtu,
			netlink}};

	for (unsigned i = 0; i < netlink->ctx.n_ports; i++) {
		settings.tap[i] = tap_ifindex(netlink->ctx.taps, i);
		settings.port[i] = prepare_port(netlink, i);
	}
	return mirror_open(&netlink->mirror, &settings, error);
}

struct opening {
	struct netlink *netlink;
	struct error *error;
};

static int open_listen(void *arg)
{
	struct opening *opening = arg;
	struct listen_ops ops = {handle_event, handle_dump_begin, handle_dump_lack, handle_dump_end,
		handle_filters_end, opening->netlink};

	int err = tunnel_facts_open(&opening->netlink->facts);

	if (err)
		return error_set(opening->error, err, "cannot query Linux over netlink: %s",
			strerror(-err));
	return listen_open(&opening->netlink->listen, &ops, RECEIVE_BUFFER, opening->error);
}

// Becomes readable when there are messages, and ten times a second.
static int open_clock(struct netlink *netlink, struct error *error)
{
	struct itimerspec tick = {.it_interval.tv_nsec = TICK_NS, .it_value.tv_nsec = TICK_NS};
	struct epoll_event wake = {.events = EPOLLIN};

	netlink->epoll = epoll_create1(EPOLL_CLOEXEC);
	netlink->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (netlink->epoll < 0 || netlink->timer < 0 ||
		timerfd_settime(netlink->timer, 0, &tick, NULL) ||
		epoll_ctl(netlink->epoll, EPOLL_CTL_ADD, netlink->timer, &wake) ||
		epoll_ctl(netlink->epoll, EPOLL_CTL_ADD, listen_fd(netlink->listen), &wake))
		return error_set(error, -errno, "cannot wait for netlink messages: %s",
			strerror(errno));
	return 0;
}

static int open_all(struct netlink *netlink, struct error *error)
{
	struct opening opening = {netlink, error};
	int err;

	sysctl_prepare(netlink->ctx.taps);
	netlink->guard = guard_open(netlink->ctx.taps);
	if (!netlink->guard)
		return error_set(error, -ENOMEM, "not enough memory for the mirror");
	err = open_mirror(netlink, error);
	if (!err)
		err = tap_run_in_netns(netlink->ctx.taps, open_listen, &opening, error);
	if (!err)
		err = open_clock(netlink, error);
	if (!err)
		err = neigh_refresh_open(&netlink->refresh, netlink, error);
	if (!err)
		err = audit_open(&netlink->audit, netlink, error);
	return err;
}

int netlink_check(struct error *error)
{
	return listen_check(error);
}

int netlink_open(struct netlink **out, const struct netlink_ctx *ctx, struct error *error)
{
	struct netlink *netlink = calloc(1, sizeof(*netlink));
	int err;

	*out = NULL;
	if (!netlink)
		return error_set(error, -ENOMEM, "not enough memory for the mirror");
	netlink->ctx = *ctx;
	netlink->epoll = netlink->timer = -1;
	netlink->facts = (struct tunnel_facts){.generic = -1, .route = -1};
	err = open_all(netlink, error);
	if (err)
		netlink_close(netlink);
	else
		*out = netlink;
	return err;
}

void netlink_close(struct netlink *netlink)
{
	if (netlink->audit)
		audit_close(netlink->audit);
	if (netlink->refresh)
		neigh_refresh_close(netlink->refresh);
	if (netlink->timer >= 0)
		close(netlink->timer);
	if (netlink->epoll >= 0)
		close(netlink->epoll);
	if (netlink->listen)
		listen_close(netlink->listen);
	if (netlink->mirror)
		mirror_close(netlink->mirror);
	guard_close(netlink->guard);
	tunnel_facts_close(&netlink->facts);
	free(netlink);
}

void netlink_port_added(struct netlink *netlink, unsigned port)
{
	struct mirror_port added = prepare_port(netlink, port);

	netlink->ctx.n_ports = MAX_OF(netlink->ctx.n_ports, port + 1);
	mirror_port_added(netlink->mirror, port, tap_ifindex(netlink->ctx.taps, port), &added);
}

void netlink_port_removed(struct netlink *netlink, unsigned port)
{
	mirror_port_removed(netlink->mirror, port);
}

int netlink_fd(const struct netlink *netlink)
{
	return netlink->epoll;
}

// A TAP interface may have been deleted and recreated with a different index.
static void look_at_taps(struct netlink *netlink)
{
	for (unsigned i = 0; i < netlink->ctx.n_ports; i++) {
		int ifindex = tap_ifindex(netlink->ctx.taps, i);

		if (ifindex == netlink->mirror->settings.tap[i])
			continue;
		mirror_tap_changed(netlink->mirror, i, ifindex);
		listen_dump_again(netlink->listen);
	}
}

// State without notifications is read in the namespace, which is entered once for all of it.
static int poll_mirror(void *arg)
{
	struct netlink *netlink = arg;

	mirror_poll(netlink->mirror);
	return 0;
}

bool netlink_poll(struct netlink *netlink)
{
	uint64_t ticks;
	bool more = listen_poll(netlink->listen, BUDGET_NS);

	if (!more)
		mirror_apply_filters(netlink->mirror, clock_now_ns());
	netlink->is_flushing = mirror_flush(netlink->mirror);
	more |= netlink->is_flushing;
	more |= mirror_dump_filters(netlink->mirror);
	if (read(netlink->timer, &ticks, sizeof(ticks)) == sizeof(ticks)) {
		look_at_taps(netlink);
		if (tap_run_in_netns(netlink->ctx.taps, poll_mirror, netlink, NULL) != 0)
			poll_mirror(netlink); // enters the namespace itself where it can
		neigh_refresh_poll(netlink->refresh);
		// Until all is known again, a host may be elsewhere than workers have it.
		if (!listen_is_dumping(netlink->listen))
			mirror_refresh_macs(netlink->mirror, clock_now_ns());
		audit_poll(netlink->audit);
	}
	return more;
}

static enum netlink_state state_of(const struct netlink *netlink,
	const struct listen_info *received, bool is_synced)
{
	if (listen_is_dumping(netlink->listen))
		return NETLINK_DUMPING;
	if (received->is_incomplete)
		return NETLINK_INCOMPLETE;
	return is_synced ? NETLINK_FOLLOWING : NETLINK_DUMPING;
}

void netlink_info(const struct netlink *netlink, struct netlink_info *out)
{
	struct listen_info received;

	*out = (struct netlink_info){0};
	mirror_info(netlink->mirror, out);
	audit_info(netlink->audit, out);
	listen_info(netlink->listen, &received);
	out->state = state_of(netlink, &received, out->is_synced);
	out->messages = received.messages;
	out->ignored += received.ignored;
	out->malformed = received.malformed;
	out->overruns = received.overruns;
	out->dumps = received.dumps;
	out->dumps_restarted = received.dumps_restarted;
	out->dumps_partial = received.dumps_partial;
	out->last_dump_ns = received.last_dump_ns;
	out->receive_buffer = received.receive_buffer;
	out->managed = neigh_refresh_n_managed(netlink->refresh);
}

unsigned netlink_bursts(const struct netlink *netlink, struct netlink_burst out[NETLINK_BURSTS])
{
	return listen_bursts(netlink->listen, out);
}

void netlink_learn(struct netlink *netlink, const struct mac_info *info)
{
	mirror_learn(netlink->mirror, info);
}

bool netlink_guarded(struct netlink *netlink, uint64_t *n)
{
	return guard_count(netlink->guard, n);
}

// Records that the callback has stopped the iteration.
struct telling {
	bool (*cb)(void *arg, const struct netlink_unsupported *one);
	void *arg;
	bool is_over;
};

static bool tell_on(void *arg, const struct netlink_unsupported *one)
{
	struct telling *telling = arg;

	telling->is_over = !telling->cb(telling->arg, one);
	return !telling->is_over;
}

void netlink_unsupported(struct netlink *netlink,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	struct telling telling = {cb, arg, false};

	mirror_unsupported(netlink->mirror, tell_on, &telling);
	if (!telling.is_over)
		sysctl_unsupported(netlink->ctx.taps, cb, arg);
}
