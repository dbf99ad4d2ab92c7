// Dumps, section by section. An incomplete section is requested again; if that fails, the remaining
// sections continue, nothing of its kind is swept, and a full dump is repeated later. Control
// thread.
#include "netlink/listen_inside.h"

#include "base/clock.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <linux/xfrm.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// The sections of a dump. Pure.

#define NFT(message) (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_##message)

// Everything that may prevent workers from forwarding comes before the routes, and the largest
// table comes last. The routes of table local, which the kernel dumps after those of main, come
// first: until workers have them, packets for us are not told apart from others.
const struct section sections[] = {
	{"interfaces", PROTO_ROUTE, AF_UNSPEC, RTM_GETLINK, sizeof(struct ifinfomsg), EVENT_LINK,
		0},
	{"ports of bridges", PROTO_ROUTE, AF_BRIDGE, RTM_GETLINK, sizeof(struct ifinfomsg),
		EVENT_BRIDGE_PORT, SECTION_MAY_LACK},
	{"VLANs of bridges", PROTO_ROUTE, AF_BRIDGE, RTM_GETVLAN, sizeof(struct br_vlan_msg),
		EVENT_VLANS, SECTION_MAY_LACK},
	{"addresses", PROTO_ROUTE, AF_UNSPEC, RTM_GETADDR, sizeof(struct ifaddrmsg), EVENT_ADDRESS,
		0},
	{"IPv4 settings", PROTO_ROUTE, AF_INET, RTM_GETNETCONF, sizeof(struct netconfmsg),
		EVENT_NETCONF, 0},
	{"IPv6 settings", PROTO_ROUTE, AF_INET6, RTM_GETNETCONF, sizeof(struct netconfmsg),
		EVENT_NETCONF, SECTION_MAY_LACK},
	{"MPLS settings", PROTO_ROUTE, AF_MPLS, RTM_GETNETCONF, sizeof(struct netconfmsg),
		EVENT_NETCONF, SECTION_MAY_LACK | SECTION_MPLS},
	{"IPv4 rules", PROTO_ROUTE, AF_INET, RTM_GETRULE, sizeof(struct fib_rule_hdr), EVENT_RULE,
		SECTION_MAY_LACK},
	{"IPv6 rules", PROTO_ROUTE, AF_INET6, RTM_GETRULE, sizeof(struct fib_rule_hdr), EVENT_RULE,
		SECTION_MAY_LACK},
	{"qdiscs", PROTO_ROUTE, AF_UNSPEC, RTM_GETQDISC, sizeof(struct tcmsg), EVENT_QDISC,
		SECTION_MAY_LACK},
	{"nftables chains", PROTO_NETFILTER, AF_UNSPEC, NFT(GETCHAIN), sizeof(struct nfgenmsg),
		EVENT_CHAIN, SECTION_MAY_LACK},
	{"nftables flowtables", PROTO_NETFILTER, AF_UNSPEC, NFT(GETFLOWTABLE),
		sizeof(struct nfgenmsg), EVENT_CHAIN, SECTION_MAY_LACK},
	{"xfrm policies", PROTO_XFRM, AF_UNSPEC, XFRM_MSG_GETPOLICY,
		sizeof(struct xfrm_userpolicy_id), EVENT_POLICY, SECTION_MAY_LACK},
	{"default xfrm policy", PROTO_XFRM, AF_UNSPEC, XFRM_MSG_GETDEFAULT,
		sizeof(struct xfrm_userpolicy_default), EVENT_POLICY_DEFAULT,
		SECTION_MAY_LACK | SECTION_ONE},
	{"neighbours", PROTO_ROUTE, AF_UNSPEC, RTM_GETNEIGH, sizeof(struct ndmsg), EVENT_NEIGHBOUR,
		SECTION_FRAGILE},
	{"bridges' MAC addresses", PROTO_ROUTE, AF_BRIDGE, RTM_GETNEIGH, sizeof(struct ndmsg),
		EVENT_FDB, SECTION_FRAGILE | SECTION_MAY_LACK},
	{"bridges' groups", PROTO_ROUTE, AF_BRIDGE, RTM_GETMDB, sizeof(struct br_port_msg),
		EVENT_GROUPS, SECTION_FRAGILE | SECTION_MAY_LACK},
	{"next hops", PROTO_ROUTE, AF_UNSPEC, RTM_GETNEXTHOP, sizeof(struct nhmsg), EVENT_NEXTHOP,
		0},
	{"MPLS labels", PROTO_ROUTE, AF_MPLS, RTM_GETROUTE, sizeof(struct rtmsg), EVENT_LABEL,
		SECTION_FRAGILE | SECTION_MAY_LACK | SECTION_MPLS},
	{"IPv4 multicast routes", PROTO_ROUTE, RTNL_FAMILY_IPMR, RTM_GETROUTE, sizeof(struct rtmsg),
		EVENT_MROUTE, SECTION_MAY_LACK},
	{"IPv6 multicast routes", PROTO_ROUTE, RTNL_FAMILY_IP6MR, RTM_GETROUTE,
		sizeof(struct rtmsg), EVENT_MROUTE, SECTION_MAY_LACK},
	{"IPv4 local routes", PROTO_ROUTE, AF_INET, RTM_GETROUTE, sizeof(struct rtmsg), EVENT_ROUTE,
		SECTION_MAY_LACK | SECTION_LOCAL},
	{"IPv6 local routes", PROTO_ROUTE, AF_INET6, RTM_GETROUTE, sizeof(struct rtmsg),
		EVENT_ROUTE, SECTION_MAY_LACK | SECTION_LOCAL},
	{"IPv6 routes", PROTO_ROUTE, AF_INET6, RTM_GETROUTE, sizeof(struct rtmsg), EVENT_ROUTE,
		SECTION_FRAGILE | SECTION_MAY_LACK},
	{"IPv4 routes", PROTO_ROUTE, AF_INET, RTM_GETROUTE, sizeof(struct rtmsg), EVENT_ROUTE, 0},
	{"tc filters", PROTO_ROUTE, AF_UNSPEC, RTM_GETTFILTER, sizeof(struct tcmsg), EVENT_FILTER,
		SECTION_FRAGILE | SECTION_MAY_LACK},
};
static_assert(sizeof(sections) / sizeof(sections[0]) <= 32, "a bit each");
const unsigned n_sections = sizeof(sections) / sizeof(sections[0]) - 1;

// Interface statistics are large and not used here.
static size_t add_iface_filter(uint8_t *out)
{
	struct nlattr attr = {NLA_HDRLEN + sizeof(uint32_t), IFLA_EXT_MASK};
	uint32_t mask = RTEXT_FILTER_SKIP_STATS;

	memcpy(out, &attr, sizeof(attr));
	memcpy(out + NLA_HDRLEN, &mask, sizeof(mask));
	return attr.nla_len;
}

size_t section_request(const struct section *section, uint32_t sequence,
	uint8_t out[SECTION_REQUEST_BYTES])
{
	struct nlmsghdr head = {.nlmsg_type = section->type,
		.nlmsg_flags =
			NLM_F_REQUEST | (section->flags & SECTION_ONE ? NLM_F_ACK : NLM_F_DUMP),
		.nlmsg_seq = sequence};

	memset(out, 0, SECTION_REQUEST_BYTES);
	head.nlmsg_len = NLMSG_HDRLEN + NLMSG_ALIGN(section->header);
	// All these headers start with the family, except that of xfrm, which has none.
	if (section->protocol != PROTO_XFRM)
		out[NLMSG_HDRLEN] = section->family;
	if (section->flags & SECTION_LOCAL)
		out[NLMSG_HDRLEN + offsetof(struct rtmsg, rtm_table)] = RT_TABLE_LOCAL;
	if (section->kind == EVENT_LINK)
		head.nlmsg_len += add_iface_filter(out + head.nlmsg_len);
	memcpy(out, &head, sizeof(head));
	return head.nlmsg_len;
}

// Running through the sections.

// A fragile section is dumped up to this many times while it is disturbed; the union of all passes
// is used.
enum { FRAGILE_PASSES = 3, MOST_PASSES = 8 };
enum { SECOND_NS = 1000000000, LONGEST_RETRY_S = 64 };

bool dump_is_due(const struct listen *listen)
{
	uint64_t since_ns = clock_now_ns() - listen->dump_end_ns;

	// Dumps take at most half of the time: a request triggered by every dump must not take all
	// of it.
	if (since_ns < listen->info.last_dump_ns)
		return false;
	return listen->wants_dump || (listen->retry_ns && since_ns >= listen->retry_ns);
}

void dump_begin(struct listen *listen)
{
	listen->wants_dump = false;
	listen->stage = STAGE_ASK;
	listen->section = listen->pass = 0;
	listen->partial = 0;
	listen->dump_since_ns = clock_now_ns();
	listen->ops.dump_begins(listen->ops.arg);
}

// A socket with a running dump accepts no other request, so a new one replaces it.
void dump_stop(struct listen *listen)
{
	unsigned protocol;
	int fd;

	if (listen->stage != STAGE_ANSWER)
		return; // there may be no such section
	protocol = sections[listen->section].protocol;
	fd = socket_open(listen_protocols[protocol].protocol, listen->namespace);
	if (fd < 0) {
		log_error("cannot open a netlink socket: %s", strerror(-fd));
		return;
	}
	close(listen->dump[protocol]);
	listen->dump[protocol] = fd;
}

// Exponential backoff, so that a dump that never succeeds costs almost nothing.
uint64_t dump_next_retry_ns(const struct listen *listen)
{
	uint64_t longer = listen->retry_ns ? listen->retry_ns * 2 : SECOND_NS;
	uint64_t longest = LONGEST_RETRY_S * (uint64_t)SECOND_NS;

	return longer < longest ? longer : longest;
}

static void tell_complete(struct listen *listen)
{
	if (listen->is_short && !listen->partial)
		log_info("there is memory for Linux's state again: all of it is known");
	listen->is_short &= listen->partial != 0;
}

static void end_dump(struct listen *listen)
{
	listen->stage = STAGE_FOLLOWING;
	listen->dump_end_ns = clock_now_ns();
	listen->info.last_dump_ns = listen->dump_end_ns - listen->dump_since_ns;
	if (listen->partial)
		listen->info.dumps_partial++;
	else
		listen->info.dumps++;
	tell_complete(listen);
	listen->retry_ns = listen->partial ? dump_next_retry_ns(listen) : 0;
	listen->ops.dump_ends(listen->ops.arg, listen->partial);
}

static void end_filters(struct listen *listen, bool whole)
{
	listen->stage = STAGE_FOLLOWING;
	listen->ops.filters_end(listen->ops.arg, whole);
}

static void next_section(struct listen *listen)
{
	if (listen->section == n_sections) {
		end_filters(listen, !listen->is_disturbed); // if it is, a later dump will tell
		return;
	}
	listen->pass = 0;
	listen->stage = STAGE_ASK;
	if (++listen->section == n_sections)
		end_dump(listen);
}

// The dump continues with what is available, so that workers get their routes. Logged once, until
// the section is complete again.
static void give_up_section(struct listen *listen, const char *reason)
{
	const struct section *section = &sections[listen->section];

	if (!(listen->failing & 1u << listen->section))
		log_warn("cannot dump Linux's %s completely (%s): known entries stay, and the dump "
			 "is repeated until it is complete",
			section->name, reason);
	listen->failing |= 1u << listen->section;
	if (listen->section == n_sections) {
		end_filters(listen, false);
		return;
	}
	listen->partial |= 1u << section->kind;
	listen->ops.dump_lacks(listen->ops.arg, section->kind);
	next_section(listen);
}

static void repeat_section(struct listen *listen, const char *reason)
{
	listen->stage = STAGE_ASK;
	listen->info.dumps_restarted++;
	if (++listen->pass == MOST_PASSES)
		give_up_section(listen, reason);
}

static void add_side(const struct listen *listen, uint8_t *request)
{
	memcpy(request + NLMSG_HDRLEN + offsetof(struct tcmsg, tcm_ifindex),
		&listen->filters_ifindex, sizeof(listen->filters_ifindex));
	memcpy(request + NLMSG_HDRLEN + offsetof(struct tcmsg, tcm_parent), &listen->filters_parent,
		sizeof(listen->filters_parent));
}

// Each namespace has these settings when the kernel has MPLS.
static bool is_there(const struct section *section)
{
	return !(section->flags & SECTION_MPLS) ||
	       !access("/proc/sys/net/mpls/platform_labels", F_OK);
}

void dump_ask(struct listen *listen)
{
	const struct section *section = &sections[listen->section];
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	uint8_t request[SECTION_REQUEST_BYTES];
	size_t n = section_request(section, ++listen->sequence, request);
	int fd = listen->dump[section->protocol];

	if (section->kind == EVENT_FILTER)
		add_side(listen, request);
	listen->is_disturbed = listen->is_interrupted = listen->is_unsound = false;
	listen->stage = STAGE_ANSWER;
	if (fd < 0 || !is_there(section))
		next_section(listen);
	else if (sendto(fd, request, n, 0, (struct sockaddr *)&kernel, sizeof(kernel)) !=
		 (ssize_t)n)
		give_up_section(listen, strerror(errno));
}

// Errors of kernels that do not support a section: there are no objects of its kind. Those of
// filters may be about one interface.
static bool is_lack(const struct section *section, int error)
{
	if (section->kind == EVENT_FILTER)
		return error == -EOPNOTSUPP;
	return section->flags & SECTION_MAY_LACK &&
	       (error == -EOPNOTSUPP || error == -EAFNOSUPPORT || error == -EPROTONOSUPPORT ||
		       error == -EINVAL || error == -ENOENT);
}

// The kernel has returned a complete section, or an error.
static void end_section(struct listen *listen, int error)
{
	const struct section *section = &sections[listen->section];

	if (listen->is_interrupted || error == -EINTR || error == -EAGAIN) {
		repeat_section(listen, "changed during the dump");
		return;
	}
	if (error && !is_lack(section, error)) {
		give_up_section(listen, strerror(-error));
		return;
	}
	if (listen->is_unsound) {
		give_up_section(listen, "malformed message");
		return;
	}
	listen->failing &= ~(1u << listen->section);
	listen->stage = STAGE_ASK;
	listen->pass++;
	if (!(section->flags & SECTION_FRAGILE) || !listen->is_disturbed ||
		listen->pass >= FRAGILE_PASSES)
		next_section(listen);
}

static void take_answer(struct listen *listen, const struct nlmsghdr *message)
{
	unsigned protocol = sections[listen->section].protocol;
	struct event event;
	enum decode_result result =
		listen_protocols[protocol].decode(message, message->nlmsg_len, &event);

	listen->info.messages++;
	if (message->nlmsg_seq != listen->sequence) {
		listen->info.ignored++;
		return;
	}
	// The kernel sets the flag in a single message, which may be one that we ignore.
	if (message->nlmsg_flags & NLM_F_DUMP_INTR)
		listen->is_interrupted = true;
	if (result == DECODE_IGNORED) {
		listen->info.ignored++;
		return;
	}
	if (result == DECODE_MALFORMED) {
		listen->info.malformed++;
		listen->is_unsound = true; // an object of its kind is missing
		return;
	}
	if (event.kind == EVENT_DONE || event.kind == EVENT_ERROR) {
		end_section(listen, event.error);
		return;
	}
	event.is_dump = true;
	listen->ops.event(listen->ops.arg, &event);
}

// The lost part may have contained the end of the dump, so do not wait for it.
static void take_torn_piece(struct listen *listen)
{
	listen->info.malformed++;
	dump_stop(listen);
	repeat_section(listen, "truncated message");
}

void dump_take_piece(struct listen *listen)
{
	int fd = listen->dump[sections[listen->section].protocol];
	int n = socket_read(fd, listen->piece, LISTEN_PIECE_BYTES);
	struct socket_rest rest = {listen->piece, n > 0 ? n : 0};
	const struct nlmsghdr *message;

	// A dump does not repeat lost messages; after an error there may be no further messages.
	if (n == -EBADMSG) {
		listen->is_interrupted = true;
		listen->info.malformed++;
		return;
	}
	if (n < 0) {
		dump_stop(listen);
		repeat_section(listen, strerror(-n));
		return;
	}
	while (listen->stage == STAGE_ANSWER && (message = socket_next(&rest)))
		take_answer(listen, message);
	if (listen->stage == STAGE_ANSWER && rest.n)
		take_torn_piece(listen);
}
