// Reads messages and delivers events; two states, DUMPING and FOLLOWING. Control thread.
//
// Notifications and dumps use different sockets, so that notifications can be read during a slow
// dump. The kernel generates the next part of a dump when we read the previous one. Each step
// therefore first reads notifications into a buffer, then processes one part of the dump, then the
// notifications: a part is never processed after notifications that are newer than it, so a deleted
// object is not added again.
#include "netlink/listen_inside.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/nexthop.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/xfrm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint16_t groups_route[] = {RTNLGRP_LINK, RTNLGRP_NEIGH, RTNLGRP_TC,
	RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV4_MROUTE, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV4_RULE,
	RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV6_MROUTE, RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV6_RULE,
	RTNLGRP_IPV4_NETCONF, RTNLGRP_IPV6_NETCONF, RTNLGRP_NEXTHOP, RTNLGRP_BRVLAN, RTNLGRP_MDB,
	RTNLGRP_MPLS_ROUTE, RTNLGRP_MPLS_NETCONF};
static const uint16_t groups_netfilter[] = {NFNLGRP_NFTABLES};
static const uint16_t groups_xfrm[] = {XFRMNLGRP_POLICY};

const struct listen_protocol listen_protocols[N_PROTOS] = {
	[PROTO_ROUTE] = {NETLINK_ROUTE, decode_route, groups_route,
		sizeof(groups_route) / sizeof(groups_route[0])},
	[PROTO_NETFILTER] = {NETLINK_NETFILTER, decode_netfilter, groups_netfilter, 1},
	[PROTO_XFRM] = {NETLINK_XFRM, decode_xfrm, groups_xfrm, 1},
};

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int open_voice(struct listen *listen, unsigned protocol, uint32_t room)
{
	struct epoll_event wake = {.events = EPOLLIN};
	int fd = socket_open(listen_protocols[protocol].protocol, listen->namespace), err;

	// A feature that the kernel lacks cannot act on packets; one that it refuses to report can.
	if (fd < 0)
		return protocol != PROTO_ROUTE && fd == -EPROTONOSUPPORT ? 0 : fd;
	listen->news[protocol] = fd;
	room = socket_make_space(fd, room);
	if (protocol == PROTO_ROUTE)
		listen->info.receive_buffer = room;
	err = socket_join(fd, listen_protocols[protocol].groups,
		listen_protocols[protocol].n_groups);
	if (err)
		return err;
	listen->dump[protocol] =
		socket_open(listen_protocols[protocol].protocol, listen->namespace);
	if (listen->dump[protocol] < 0)
		return listen->dump[protocol];
	return epoll_ctl(listen->epoll, EPOLL_CTL_ADD, fd, &wake) ? -errno : 0;
}

static int open_sockets(struct listen *listen, uint32_t room)
{
	int err = 0;

	listen->namespace = netlink_namespace();
	if (listen->namespace < 0)
		return listen->namespace;
	listen->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (listen->epoll < 0)
		return -errno;
	for (unsigned i = 0; i < N_PROTOS && !err; i++)
		err = open_voice(listen, i, room);
	if (err)
		return err;
	listen->ask = ask_open(listen->namespace);
	listen->tell = socket_open(NETLINK_ROUTE, listen->namespace);
	return listen->ask < 0 ? listen->ask : MIN_OF(listen->tell, 0);
}

static void take_nothing(void *arg, const struct event *event)
{
}

struct listen_request listen_all_nexthops(void (*take)(void *arg, const struct event *event),
	void *arg)
{
	static const struct {
		struct nlmsghdr head;
		struct nhmsg nexthop;
	} message = {.head = {.nlmsg_len = sizeof(message),
			     .nlmsg_type = RTM_GETNEXTHOP,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};

	return (struct listen_request){&message, sizeof(message), take, arg};
}

int listen_check(struct error *error)
{
	const struct listen_request request = listen_all_nexthops(take_nothing, NULL);
	int namespace = netlink_namespace();
	int fd = namespace < 0 ? namespace : ask_open(namespace), err = fd;

	shut(&namespace);
	if (fd < 0)
		return error_set(error, err, "cannot query Linux over netlink: %s", strerror(-err));
	err = ask(fd, 1, &request);
	close(fd);
	if (err)
		return error_set(error, err,
			"this kernel has no next-hop objects (%s): \"linux:\" requires Linux 5.3 "
			"or newer",
			strerror(-err));
	return 0;
}

int listen_open(struct listen **out, const struct listen_ops *ops, uint32_t receive_buffer,
	struct error *error)
{
	struct listen *listen = calloc(1, sizeof(*listen));
	int err = -ENOMEM;

	*out = NULL;
	if (!listen)
		return error_set(error, err, "not enough memory for netlink");
	listen->ops = *ops;
	listen->namespace = listen->epoll = listen->ask = listen->tell = -1;
	for (unsigned i = 0; i < N_PROTOS; i++)
		listen->news[i] = listen->dump[i] = -1;
	listen->held.bytes = malloc((size_t)NETLINK_SLOTS * NETLINK_SLOT_BYTES);
	listen->piece = malloc(LISTEN_PIECE_BYTES);
	if (listen->held.bytes && listen->piece)
		err = open_sockets(listen, receive_buffer);
	if (err) {
		error_set(error, err, "cannot subscribe to netlink notifications: %s",
			strerror(-err));
		listen_close(listen);
		return err;
	}
	if (listen->info.receive_buffer < receive_buffer)
		log_warn("the netlink receive buffer has %u KiB instead of %u: raise "
			 "net.core.rmem_max, or bursts of changes will overflow it and cause dumps",
			listen->info.receive_buffer >> 10, receive_buffer >> 10);
	listen_dump_again(listen);
	*out = listen;
	return 0;
}

void listen_close(struct listen *listen)
{
	for (unsigned i = 0; i < N_PROTOS; i++) {
		shut(&listen->news[i]);
		shut(&listen->dump[i]);
	}
	shut(&listen->ask);
	shut(&listen->tell);
	shut(&listen->epoll);
	shut(&listen->namespace);
	free(listen->held.bytes);
	free(listen->piece);
	free(listen);
}

int listen_fd(const struct listen *listen)
{
	return listen->epoll;
}

void listen_dump_again(struct listen *listen)
{
	listen->wants_dump = true;
}

void listen_lost(struct listen *listen, enum event_kind kind)
{
	listen->partial |= 1u << kind;
	if (!listen_is_dumping(listen) && !listen->retry_ns)
		listen->retry_ns = dump_next_retry_ns(listen);
	if (!listen->is_short)
		log_warn("not enough memory for Linux's state: part of it is missing, known "
			 "entries stay, and all tables are dumped again at growing intervals, up "
			 "to 64 s, until they are complete; free some memory");
	listen->is_short = true;
}

bool listen_dump_filters(struct listen *listen, int ifindex, uint8_t side)
{
	if (listen->stage != STAGE_FOLLOWING || listen->wants_dump)
		return false;
	listen->filters_ifindex = ifindex;
	listen->filters_parent =
		TC_H_MAKE(TC_H_CLSACT, side == EVENT_INGRESS ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS);
	listen->section = n_sections;
	listen->pass = 0;
	listen->stage = STAGE_ASK;
	return true;
}

bool listen_is_dumping(const struct listen *listen)
{
	return (listen->stage != STAGE_FOLLOWING && !listen_dumps_filters(listen)) ||
	       !(listen->info.dumps + listen->info.dumps_partial);
}

void listen_info(const struct listen *listen, struct listen_info *out)
{
	*out = listen->info;
	out->is_incomplete = listen->partial;
}

unsigned listen_bursts(const struct listen *listen, struct netlink_burst *out)
{
	return bursts_read(&listen->bursts, out);
}

// Messages were lost. The kernel adds no new ones as long as the socket's buffer is not empty, so
// drain it first.
static void begin_gap(struct listen *listen)
{
	uint64_t now = clock_now_ns();

	if (listen->stage == STAGE_ASK || listen->stage == STAGE_ANSWER)
		listen->info.dumps_restarted++;
	dump_stop(listen);
	if (listen_dumps_filters(listen))
		listen->ops.filters_end(listen->ops.arg, false);
	listen->stage = STAGE_GAP;
	listen->info.overruns++;
	if (!listen->warned_ns || now - listen->warned_ns > 10000000000) {
		log_warn("netlink notifications were lost: dumping all tables again");
		listen->warned_ns = now;
	}
}

static bool section_has(const struct section *section, const struct event *event)
{
	// Tables of VXLAN devices are dumped with those of bridges.
	if (event->kind == EVENT_REMOTE)
		return section->kind == EVENT_FDB;
	if (event->kind != section->kind)
		return false;
	return event->kind != EVENT_ROUTE ||
	       (event->route.prefix.addr.family == 4) == (section->family == AF_INET);
}

// Handles one event from a notification.
static void take_news(struct listen *listen, const struct event *event)
{
	if (event->kind == EVENT_ERROR) {
		if (event->error == -ENOBUFS)
			begin_gap(listen);
		return;
	}
	if (event->kind == EVENT_DONE)
		return;
	if (event->is_delete && section_has(&sections[listen->section], event))
		listen->is_disturbed = true;
	listen->ops.event(listen->ops.arg, event);
}

// Handles a malformed message from the kernel: something changed that we could not decode.
static void take_nonsense(struct listen *listen)
{
	listen->info.malformed++;
	listen_dump_again(listen);
}

static void take_messages(struct listen *listen, unsigned protocol, struct socket_rest rest)
{
	const struct nlmsghdr *message;
	struct event event;

	while ((message = socket_next(&rest))) {
		listen->info.messages++;
		switch (listen_protocols[protocol].decode(message, message->nlmsg_len, &event)) {
		case DECODE_EVENT:
			event.is_dump = false;
			take_news(listen, &event);
			break;
		case DECODE_IGNORED:
			listen->info.ignored++;
			break;
		case DECODE_MALFORMED:
			take_nonsense(listen);
			break;
		}
	}
	if (rest.n)
		take_nonsense(listen);
}

static void take_held(struct listen *listen)
{
	for (unsigned i = 0; i < listen->held.n && listen->stage != STAGE_GAP; i++) {
		const struct socket_slot *slot = &listen->held.slot[i];
		struct socket_rest messages = {socket_slot(&listen->held, i), slot->bytes};

		if (slot->is_foreign)
			listen->info.malformed++; // sent by another process, not by the kernel
		else if (slot->is_cut)
			take_nonsense(listen);
		else
			take_messages(listen, slot->protocol, messages);
	}
}

// Reads notifications from all sockets into the buffer; returns the number of datagrams.
static unsigned hold_news(struct listen *listen)
{
	listen->held.n = 0;
	// Route notifications last: they may fill all of the buffer.
	for (unsigned i = N_PROTOS; i-- > 0;)
		if (listen->news[i] >= 0 &&
			socket_buffer_open(listen->news[i], i, &listen->held) == -ENOBUFS)
			begin_gap(listen);
	return listen->held.n;
}

// One step; returns true if there was something to do.
static bool step(struct listen *listen)
{
	uint64_t overruns = listen->info.overruns;
	unsigned n = hold_news(listen);

	if (listen->stage == STAGE_GAP) {
		// The call that reports an overrun returns no data: that does not mean the socket
		// is empty.
		if (!n && overruns == listen->info.overruns)
			dump_begin(listen);
		return true;
	}
	if (listen->stage == STAGE_ANSWER)
		dump_take_piece(listen);
	take_held(listen);
	if (listen->stage == STAGE_ASK)
		dump_ask(listen);
	if (listen->stage != STAGE_FOLLOWING)
		return true;
	if (dump_is_due(listen)) {
		dump_begin(listen);
		return true;
	}
	return n > 0;
}

bool listen_poll(struct listen *listen, uint64_t budget_ns)
{
	uint64_t begin = clock_now_ns(), until = begin + budget_ns, before = listen->info.messages;
	bool more;

	do
		more = step(listen);
	while (more && clock_now_ns() < until);
	bursts_note(&listen->bursts, begin, clock_now_ns(), listen->info.messages - before);
	return more;
}

int listen_ask(struct listen *listen, const struct listen_request *request)
{
	return ask(listen->ask, ++listen->asked, request);
}

void listen_tell(struct listen *listen, const void *messages, uint32_t bytes)
{
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	uint8_t answer[1];

	while (recv(listen->tell, answer, sizeof(answer), MSG_DONTWAIT) > 0)
		;
	sendto(listen->tell, messages, bytes, MSG_DONTWAIT, (const struct sockaddr *)&kernel,
		sizeof(kernel));
}
