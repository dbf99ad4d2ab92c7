// Uses a real kernel in a namespace of this process: dumps, notifications, lost and foreign
// messages. Replies can be modified on the way to simulate failing dumps.
#include "netlink/listen.h"

#include "base/clock.h"
#include "netlink/listen_inside.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { N_ROUTES = 4096 };

// How the dump of a family's routes ends, not that of table local alone. Routes are only returned
// in WHOLE and HALF.
enum ending {
	WHOLE,
	REFUSED,     // NLMSG_ERROR
	CUT_SHORT,   // NLMSG_DONE with an error
	HALF,        // same, after the first route
	INTERRUPTED, // NLM_F_DUMP_INTR in one message that we ignore
	EMPTY,       // success, but no routes
	GARBLED,     // the first route's attributes are malformed
	TORN,        // the last message is truncated
};
static struct {
	enum ending ending;
	uint8_t family;
	int error;
} dumps;

// A message type that is ignored.
enum { TYPE_OF_NO_CONCERN = RTM_NEWTCLASS };

int __real_socket_read(int fd, void *bytes, size_t room);
int __wrap_socket_read(int fd, void *bytes, size_t room);

static bool is_route(const struct nlmsghdr *message)
{
	const struct rtmsg *route = NLMSG_DATA(message);

	return message->nlmsg_type == RTM_NEWROUTE && message->nlmsg_flags & NLM_F_MULTI &&
	       route->rtm_family == dumps.family && route->rtm_table != RT_TABLE_LOCAL;
}

static bool is_end(const struct nlmsghdr *message)
{
	return message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR;
}

// The kernel accepts no further request before its dump has been read to the end.
static void skip_to_end(int fd, struct socket_rest rest)
{
	static uint8_t bytes[256 << 10];
	const struct nlmsghdr *message;

	for (;;) {
		while ((message = socket_next(&rest)))
			if (is_end(message))
				return;
		rest.bytes = bytes;
		rest.n = (uint32_t)__real_socket_read(fd, bytes, sizeof(bytes));
	}
}

// Replaces a message by the end of the dump.
static int put_end(struct nlmsghdr *message, uint16_t type, const uint8_t *bytes)
{
	message->nlmsg_len = NLMSG_LENGTH(sizeof(int));
	message->nlmsg_type = type;
	memcpy(NLMSG_DATA(message), &dumps.error, sizeof(int));
	return (int)((uint8_t *)message - bytes) + (int)message->nlmsg_len;
}

static void leave_out_routes(struct socket_rest rest, bool is_interrupted)
{
	const struct nlmsghdr *message;

	while ((message = socket_next(&rest)))
		if (is_route(message)) {
			((struct nlmsghdr *)message)->nlmsg_type = TYPE_OF_NO_CONCERN;
			if (is_interrupted)
				((struct nlmsghdr *)message)->nlmsg_flags |= NLM_F_DUMP_INTR;
			is_interrupted = false;
		}
}

// Makes an attribute shorter than its own header.
static void garble(struct nlmsghdr *message)
{
	((struct rtattr *)RTM_RTA(NLMSG_DATA(message)))->rta_len = 1;
}

// Makes the last message of the datagram longer than it is.
static void lengthen_last(struct socket_rest rest)
{
	const struct nlmsghdr *message, *last = NULL;

	while ((message = socket_next(&rest)))
		last = message;
	((struct nlmsghdr *)last)->nlmsg_len += NLMSG_ALIGNTO;
}

int __wrap_socket_read(int fd, void *bytes, size_t room)
{
	int n = __real_socket_read(fd, bytes, room);
	struct socket_rest rest = {bytes, n > 0 ? (uint32_t)n : 0}, all = rest;
	const struct nlmsghdr *first = socket_next(&rest), *second = (const void *)rest.bytes;

	if (!first || !is_route(first) || dumps.ending == WHOLE)
		return n;
	if (dumps.ending == GARBLED) {
		garble((struct nlmsghdr *)first);
		return n;
	}
	if (dumps.ending == TORN) {
		lengthen_last(all);
		return n;
	}
	if (dumps.ending == INTERRUPTED || dumps.ending == EMPTY) {
		leave_out_routes(all, dumps.ending == INTERRUPTED);
		return n;
	}
	skip_to_end(fd, rest);
	if (dumps.ending == HALF)
		first = second;
	return put_end((struct nlmsghdr *)first, dumps.ending == REFUSED ? NLMSG_ERROR : NLMSG_DONE,
		bytes);
}

// The error of the xfrm request; 0: the kernel's own reply.
static int refusal;

int __real_socket_open(int protocol, int namespace);
int __wrap_socket_open(int protocol, int namespace);

int __wrap_socket_open(int protocol, int namespace)
{
	return refusal && protocol == NETLINK_XFRM ? refusal
	                                           : __real_socket_open(protocol, namespace);
}

struct received {
	unsigned begins, ends;
	uint32_t partial, lacking;               // of the latest dump
	bool known[N_ROUTES], doubted[N_ROUTES]; // blackhole routes 10.0.x.y/32
	struct listen *short_of;                 // there is no memory for any route; NULL: there is
	unsigned n_filters, filters_ends;        // filters in dumps; ends of their dumps
	bool are_whole;                          // of the latest one
	unsigned n_remotes;                      // remote ends of VXLAN in dumps
};

static int number_of(const struct event *event)
{
	const uint8_t *b = event->route.prefix.addr.bytes;

	if (event->kind != EVENT_ROUTE || event->route.type != RTN_BLACKHOLE || b[0] != 10)
		return -1;
	return (b[2] << 8 | b[3]) % N_ROUTES;
}

static void take(void *arg, const struct event *event)
{
	struct received *received = arg;
	int number = number_of(event);

	received->n_filters +=
		event->kind == EVENT_FILTER && event->is_dump && event->filter.handle & 0xfff;
	received->n_remotes += event->kind == EVENT_REMOTE && event->is_dump;
	if (number < 0)
		return;
	if (received->short_of) {
		received->lacking |= 1u << EVENT_ROUTE;
		listen_lost(received->short_of, EVENT_ROUTE);
		return;
	}
	received->known[number] = !event->is_delete;
	received->doubted[number] = false;
}

static void begin(void *arg)
{
	struct received *received = arg;

	received->begins++;
	received->lacking = 0;
	memcpy(received->doubted, received->known, sizeof(received->known));
}

static void lack(void *arg, enum event_kind kind)
{
	((struct received *)arg)->lacking |= 1u << kind;
}

static void end(void *arg, uint32_t partial)
{
	struct received *received = arg;

	assert_int_equal(received->lacking, partial);
	received->ends++;
	received->partial = partial;
	for (unsigned i = 0; i < N_ROUTES && !event_kinds_have(partial, EVENT_ROUTE); i++)
		received->known[i] &= !received->doubted[i];
}

static void end_filters(void *arg, bool whole)
{
	struct received *received = arg;

	received->filters_ends++;
	received->are_whole = whole;
}

static void run(const char *command)
{
	assert_int_equal(system(command), 0);
}

static struct listen *listen_with(struct received *received, uint32_t room)
{
	struct listen_ops ops = {take, begin, lack, end, end_filters, received};
	struct error error = {""};
	struct listen *listen;

	*received = (struct received){0};
	if (listen_open(&listen, &ops, room, &error))
		fail_msg("%s", error.text);
	return listen;
}

static void settle(struct listen *listen)
{
	uint64_t until = clock_now_ns() + 60000000000;

	while (listen_poll(listen, 1000000) || listen_is_dumping(listen))
		assert_true(clock_now_ns() < until);
}

static unsigned count(const struct received *received)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N_ROUTES; i++)
		n += received->known[i];
	return n;
}

// Adds or deletes 10.0.x.y/32 for the numbers from `from` up to `to`.
static void change_routes(const char *method, unsigned from, unsigned to)
{
	FILE *batch = popen("ip -force -batch -", "w");

	assert_non_null(batch);
	for (unsigned i = from; i < to; i++)
		fprintf(batch, "route %s blackhole 10.0.%u.%u/32\n", method, i >> 8, i & 255);
	assert_int_equal(pclose(batch), 0);
}

static int in_own_namespace(void **state)
{
	return unshare(CLONE_NEWNET);
}

static int without_routes(void **state)
{
	return system("ip route flush table main");
}

static void hears_what_is_there_and_what_comes(void **state)
{
	struct received received;
	struct listen *listen;

	change_routes("add", 0, 100);
	listen = listen_with(&received, 1 << 20);
	settle(listen);
	assert_int_equal(received.ends, 1);
	assert_int_equal(count(&received), 100);
	change_routes("add", 100, 150);
	change_routes("del", 0, 10);
	settle(listen);
	assert_int_equal(count(&received), 140);
	assert_int_equal(received.ends, 1);
	listen_close(listen);
}

static void remembers_when_much_was_said_at_once(void **state)
{
	struct netlink_burst bursts[NETLINK_BURSTS];
	struct received received;
	struct listen *listen = listen_with(&received, 1 << 20);
	uint64_t before, messages = 0;
	unsigned n, n_before;

	settle(listen);
	n_before = listen_bursts(listen, bursts);
	assert_true(n_before > 0); // the dump
	usleep(10000);
	before = clock_now_ns();
	change_routes("add", 0, 300);
	settle(listen);
	n = listen_bursts(listen, bursts);
	assert_true(n > n_before);
	for (unsigned i = n_before; i < n; i++) {
		assert_true(bursts[i].end_ns > bursts[i].begin_ns);
		assert_true(bursts[i].begin_ns > before);
		assert_true(bursts[i].end_ns <= clock_now_ns());
		messages += bursts[i].messages;
	}
	assert_true(messages >= 300);
	listen_close(listen);
}

static void only_what_a_kernel_has_not_may_be_silent(void **state)
{
	struct received received;
	struct listen_ops ops = {take, begin, lack, end, end_filters, &received};
	struct error error = {""};
	struct listen *listen;

	refusal = -EPROTONOSUPPORT;
	listen = listen_with(&received, 1 << 20);
	settle(listen);
	assert_int_equal(received.ends, 1);
	listen_close(listen);
	refusal = -EACCES;
	assert_int_equal(listen_open(&listen, &ops, 1 << 20, &error), -EACCES);
	refusal = 0;
	assert_string_equal(error.text,
		"cannot subscribe to netlink notifications: Permission denied");
}

static void settle_filters(struct listen *listen, const struct received *received, unsigned ends)
{
	uint64_t until = clock_now_ns() + 60000000000;

	while (listen_poll(listen, 1000000) || received->filters_ends < ends)
		assert_true(clock_now_ns() < until);
}

// Enough for several parts of a dump.
static void filters_are_dumped_by_side(void **state)
{
	enum { N = 500 };
	struct received received;
	struct listen *listen;
	int ifindex;

	run("ip tuntap add tc0 mode tap && tc qdisc add dev tc0 clsact && for i in $(seq 500); do "
	    "echo filter add dev tc0 egress pref 1 protocol ip u32 match ip dport $i 0xffff; "
	    "done | tc -batch -");
	ifindex = (int)if_nametoindex("tc0");
	listen = listen_with(&received, 1 << 20);
	assert_false(listen_dump_filters(listen, ifindex, EVENT_EGRESS)); // all tables come first
	settle(listen);
	assert_int_equal(received.n_filters, 0);
	assert_true(listen_dump_filters(listen, ifindex, EVENT_INGRESS));
	assert_false(listen_dump_filters(listen, ifindex, EVENT_EGRESS));
	settle_filters(listen, &received, 1);
	assert_int_equal(received.n_filters, 0);
	assert_true(listen_dump_filters(listen, ifindex, EVENT_EGRESS));
	settle_filters(listen, &received, 2);
	assert_int_equal(received.n_filters, N);
	assert_true(received.are_whole);
	assert_true(listen_dump_filters(listen, 1 << 20, EVENT_INGRESS)); // there is none
	settle_filters(listen, &received, 3);
	assert_int_equal(received.n_filters, N);
	assert_int_equal(received.ends, 1);
	listen_close(listen);
	run("ip link delete tc0");
}

static void a_loss_leads_to_a_dump_that_finds_all(void **state)
{
	struct received received;
	struct listen *listen = listen_with(&received, 16 << 10);
	struct listen_info info;

	settle(listen);
	change_routes("add", 0, 2000);
	change_routes("del", 0, 500);
	settle(listen);
	listen_info(listen, &info);
	assert_true(info.overruns > 0);
	assert_true(received.ends > 1);
	assert_int_equal(count(&received), 1500);
	listen_close(listen);
}

// Routes are deleted while the dump is being read: none may reappear.
static void what_is_deleted_during_a_dump_stays_deleted(void **state)
{
	struct received received;
	struct listen *listen;

	change_routes("add", 0, N_ROUTES);
	listen = listen_with(&received, 16 << 20);
	for (unsigned i = 0; i < N_ROUTES; i += 256) {
		listen_poll(listen, 1);
		change_routes("del", N_ROUTES - i - 128, N_ROUTES - i);
		listen_poll(listen, 1);
		change_routes("del", i, i + 64);
	}
	settle(listen);
	for (unsigned i = 0; i < N_ROUTES; i++) {
		bool gone = i % 256 < 64 || i % 256 >= 128;

		assert_int_equal(received.known[i], !gone);
	}
	listen_close(listen);
}

// When one goes while a table is dumped, the kernel may skip others: they are asked for again.
static void a_table_of_vxlan_that_changes_is_dumped_again(void **state)
{
	enum { N = 4000 };
	struct received received;
	struct listen *listen;
	FILE *batch;

	run("ip link add vx0 type vxlan id 5 local 192.0.2.1 dstport 4789 nolearning");
	batch = popen("bridge -batch -", "w");
	assert_non_null(batch);
	for (unsigned i = 0; i < N; i++)
		fprintf(batch, "fdb add 02:00:00:00:%02x:%02x dev vx0 dst 192.0.2.2\n", i >> 8,
			i & 255);
	assert_int_equal(pclose(batch), 0);
	listen = listen_with(&received, 16 << 20);
	while (!received.n_remotes)
		listen_poll(listen, 1);
	assert_true(received.n_remotes < N);
	run("bridge fdb del 02:00:00:00:00:00 dev vx0");
	settle(listen);
	assert_true(received.n_remotes >= N + N / 2);
	listen_close(listen);
	run("ip link delete vx0");
}

// Another process sends a message that looks like one from the kernel.
static void what_others_say_is_counted_and_ignored(void **state)
{
	struct {
		struct nlmsghdr head;
		struct rtmsg route;
		struct rtattr attr;
		uint8_t dst[4];
	} lie = {.head = {.nlmsg_len = sizeof(lie), .nlmsg_type = RTM_NEWROUTE},
		.route = {.rtm_family = AF_INET, .rtm_dst_len = 32, .rtm_type = RTN_BLACKHOLE},
		.attr = {8, RTA_DST},
		.dst = {10, 0, 0, 7}};
	struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_ROUTE};
	int liar = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	struct received received;
	struct listen *listen = listen_with(&received, 1 << 20);
	struct listen_info info;

	settle(listen);
	assert_int_equal(sendto(liar, &lie, sizeof(lie), 0, (void *)&to, sizeof(to)), sizeof(lie));
	settle(listen);
	listen_info(listen, &info);
	assert_int_equal(info.malformed, 1);
	assert_int_equal(count(&received), 0);
	assert_int_equal(received.ends, 1);
	listen_close(listen);
	close(liar);
}

static void poll_until_dumps_ended(struct listen *listen, const struct received *received,
	unsigned n)
{
	uint64_t until = clock_now_ns() + 60000000000;

	while (received->ends < n) {
		if (!listen_poll(listen, 1000000))
			usleep(1000);
		assert_true(clock_now_ns() < until);
	}
}

static void dump(struct listen *listen, const struct received *received)
{
	listen_dump_again(listen);
	poll_until_dumps_ended(listen, received, received->ends + 1);
}

// With 100 IPv4 routes and some IPv6 routes.
static struct listen *listen_to_routes(struct received *received)
{
	struct listen *listen;

	dumps.ending = WHOLE;
	dumps.family = AF_INET;
	run("ip link set lo up");
	run("ip -6 route replace blackhole 2001:db8::/32"); // the first one of its dump
	change_routes("add", 0, 100);
	listen = listen_with(received, 1 << 20);
	settle(listen);
	assert_int_equal(count(received), 100);
	return listen;
}

static void what_a_failed_dump_does_not_name_stays(void **state)
{
	static const enum ending endings[] = {REFUSED, CUT_SHORT, HALF, INTERRUPTED};
	struct received received;
	struct listen *listen = listen_to_routes(&received);
	struct listen_info info;

	dumps.error = -ENOMEM;
	for (unsigned i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		dumps.ending = endings[i];
		dump(listen, &received);
		assert_int_equal(received.partial, 1 << EVENT_ROUTE);
		assert_int_equal(count(&received), 100);
	}
	listen_info(listen, &info);
	assert_int_equal(info.dumps_partial, 4);
	assert_int_equal(info.dumps, 1);
	assert_int_equal(info.dumps_restarted, 8); // only interrupted dumps are repeated at once
	dumps.ending = EMPTY;
	dump(listen, &received);
	assert_int_equal(received.partial, 0);
	assert_int_equal(count(&received), 0);
	listen_close(listen);
}

// The message may have been about any route, so no route is removed.
static void what_a_malformed_message_of_a_dump_told_stays(void **state)
{
	struct received received;
	struct listen *listen = listen_to_routes(&received);
	struct listen_info info;

	for (enum ending ending = GARBLED; ending <= TORN; ending++) {
		dumps.ending = ending;
		dump(listen, &received);
		assert_int_equal(received.partial, 1 << EVENT_ROUTE);
		assert_int_equal(count(&received), 100);
	}
	listen_info(listen, &info);
	assert_int_equal(info.malformed, 1 + 8); // a truncated part is requested again at once
	assert_int_equal(info.dumps_partial, 2);
	dumps.ending = WHOLE;
	dump(listen, &received);
	assert_int_equal(received.partial, 0);
	assert_int_equal(count(&received), 100);
	listen_close(listen);
}

// IPv6 routes may be missing because the kernel has none, or because it could not dump them.
static void what_a_kernel_lacks_is_told_from_what_it_cannot_tell(void **state)
{
	static const int lacks[] = {-EOPNOTSUPP, -EAFNOSUPPORT, -EINVAL};
	struct received received;
	struct listen *listen = listen_to_routes(&received);

	dumps.ending = REFUSED;
	dumps.family = AF_INET6;
	for (unsigned i = 0; i < sizeof(lacks) / sizeof(lacks[0]); i++) {
		dumps.error = lacks[i];
		dump(listen, &received);
		assert_int_equal(received.partial, 0);
	}
	dumps.error = -ENOMEM;
	dump(listen, &received);
	assert_int_equal(received.partial, 1 << EVENT_ROUTE);
	dumps.family = AF_INET; // supported by every kernel
	dumps.error = -EOPNOTSUPP;
	dump(listen, &received);
	assert_int_equal(received.partial, 1 << EVENT_ROUTE);
	listen_close(listen);
}

// Number of lines in a file that contain this text.
static unsigned lines_with(FILE *file, const char *words)
{
	char line[1024];
	unsigned n = 0;

	rewind(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, words) != NULL;
	return n;
}

static void a_failed_dump_is_repeated_ever_later_and_said_once(void **state)
{
	static const char *const words = "cannot dump Linux's IPv4 routes completely (Cannot "
					 "allocate memory): known entries stay";
	struct received received;
	struct listen *listen = listen_to_routes(&received);
	FILE *said = tmpfile();
	int stderr_fd = dup(STDERR_FILENO);
	uint64_t since;

	assert_non_null(said);
	dup2(fileno(said), STDERR_FILENO);
	dumps.ending = CUT_SHORT;
	dumps.error = -ENOMEM;
	since = clock_now_ns();
	dump(listen, &received);
	poll_until_dumps_ended(listen, &received, 4); // after one second, and two more
	since = clock_now_ns() - since;
	dumps.ending = WHOLE;
	dump(listen, &received);
	dumps.ending = CUT_SHORT;
	dump(listen, &received);
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	assert_true(since >= 3000000000);
	assert_int_equal(lines_with(said, words), 2);
	fclose(said);
	dumps.ending = WHOLE;
	poll_until_dumps_ended(listen, &received, 7);
	assert_int_equal(received.partial, 0);
	assert_int_equal(count(&received), 100);
	listen_close(listen);
}

static bool is_incomplete(const struct listen *listen)
{
	struct listen_info info;

	listen_info(listen, &info);
	return info.is_incomplete;
}

// What there was no memory for comes with the first dump that has some: after the loss, a dump that
// loses it again, and one two seconds later.
static void what_there_was_no_memory_for_comes_with_a_later_dump(void **state)
{
	struct received received;
	struct listen *listen = listen_to_routes(&received);
	FILE *said = tmpfile();
	int stderr_fd = dup(STDERR_FILENO);

	assert_non_null(said);
	assert_false(is_incomplete(listen));
	dup2(fileno(said), STDERR_FILENO);
	received.short_of = listen;
	change_routes("add", 100, 110);
	poll_until_dumps_ended(listen, &received, 2);
	received.short_of = NULL;
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	assert_int_equal(received.partial, 1 << EVENT_ROUTE);
	assert_int_equal(count(&received), 100); // nothing is swept
	assert_true(is_incomplete(listen));
	assert_false(listen_is_dumping(listen));
	uint64_t since = clock_now_ns();
	poll_until_dumps_ended(listen, &received, 3);
	assert_true(clock_now_ns() - since >= 1500000000);
	assert_false(is_incomplete(listen));
	assert_int_equal(received.partial, 0);
	assert_int_equal(count(&received), 110);
	assert_int_equal(lines_with(said, "not enough memory for Linux's state"), 1);
	fclose(said);
	listen_close(listen);
}

static void take_type(void *arg, const struct event *event)
{
	if (event->kind == EVENT_ROUTE)
		*(int *)arg = event->route.type;
}

static void asks_and_gets_the_kernels_word(void **state)
{
	struct {
		struct nlmsghdr head;
		struct rtmsg route;
		struct rtattr attr;
		uint8_t dst[4];
	} question = {.head = {.nlmsg_len = sizeof(question),
			      .nlmsg_type = RTM_GETROUTE,
			      .nlmsg_flags = NLM_F_REQUEST},
		.route = {.rtm_family = AF_INET, .rtm_dst_len = 32, .rtm_flags = RTM_F_FIB_MATCH},
		.attr = {8, RTA_DST},
		.dst = {127, 0, 0, 1}};
	int type = 0;
	struct listen_request request = {&question, sizeof(question), take_type, &type};
	struct received received;
	struct listen *listen = listen_with(&received, 1 << 20);

	run("ip link set lo up");
	assert_int_equal(listen_ask(listen, &request), 0);
	assert_int_equal(type, RTN_LOCAL);
	question.dst[0] = 11;
	assert_int_equal(listen_ask(listen, &request), -ENETUNREACH);
	listen_close(listen);
}

// A route is queried (`dl3 show route`) while the tables are being dumped.
static void a_question_in_the_middle_of_a_dump_does_not_end_it(void **state)
{
	struct {
		struct nlmsghdr head;
		struct rtmsg route;
	} question = {.head = {.nlmsg_len = sizeof(question),
			      .nlmsg_type = RTM_GETROUTE,
			      .nlmsg_flags = NLM_F_REQUEST},
		.route = {.rtm_family = AF_INET, .rtm_flags = RTM_F_FIB_MATCH}};
	int type = 0;
	struct listen_request request = {&question, sizeof(question), take_type, &type};
	struct received received;
	struct listen *listen;
	unsigned n_asked = 0;

	change_routes("add", 0, N_ROUTES);
	listen = listen_with(&received, 16 << 20);
	alarm(100); // guards against a dump that waits forever for a reply
	for (; listen_is_dumping(listen); n_asked++) {
		listen_poll(listen, 1);
		listen_ask(listen, &request);
	}
	alarm(0);
	assert_true(n_asked > 1);
	assert_int_equal(received.ends, 1);
	assert_int_equal(count(&received), N_ROUTES);
	listen_close(listen);
}

// How messages are grouped into bursts, and when bursts are discarded.

static struct bursts bursts;
static struct netlink_burst known[NETLINK_BURSTS];

static int forget(void **state)
{
	bursts = (struct bursts){0};
	return 0;
}

static void expect(unsigned i, uint64_t begin_ns, uint64_t end_ns, uint64_t messages)
{
	assert_int_equal(known[i].begin_ns, begin_ns);
	assert_int_equal(known[i].end_ns, end_ns);
	assert_int_equal(known[i].messages, messages);
}

static void silence_is_no_burst(void **state)
{
	bursts_note(&bursts, 10, 20, 0);
	assert_int_equal(bursts_read(&bursts, known), 0);
}

static void what_comes_soon_is_of_the_same_burst(void **state)
{
	uint64_t late = 100 + 2 * BURSTS_APART_NS;

	bursts_note(&bursts, 10, 20, 3);
	bursts_note(&bursts, 30, 50, 4);
	bursts_note(&bursts, 50 + BURSTS_APART_NS, 70 + BURSTS_APART_NS, 5);
	bursts_note(&bursts, late, late + 9, 1);
	assert_int_equal(bursts_read(&bursts, known), 2);
	expect(0, 10, 70 + BURSTS_APART_NS, 12);
	expect(1, late, late + 9, 1);
}

static void the_oldest_are_forgotten_first(void **state)
{
	for (uint64_t i = 0; i < NETLINK_BURSTS + 7; i++)
		bursts_note(&bursts, 2 * i * BURSTS_APART_NS, 2 * i * BURSTS_APART_NS + 1, i + 1);
	assert_int_equal(bursts_read(&bursts, known), NETLINK_BURSTS);
	assert_int_equal(known[0].messages, 8);
	assert_int_equal(known[NETLINK_BURSTS - 1].messages, NETLINK_BURSTS + 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(hears_what_is_there_and_what_comes, without_routes),
		cmocka_unit_test_teardown(remembers_when_much_was_said_at_once, without_routes),
		cmocka_unit_test_teardown(only_what_a_kernel_has_not_may_be_silent, without_routes),
		cmocka_unit_test_teardown(filters_are_dumped_by_side, without_routes),
		cmocka_unit_test_teardown(a_loss_leads_to_a_dump_that_finds_all, without_routes),
		cmocka_unit_test_teardown(what_is_deleted_during_a_dump_stays_deleted,
			without_routes),
		cmocka_unit_test_teardown(a_table_of_vxlan_that_changes_is_dumped_again,
			without_routes),
		cmocka_unit_test_teardown(what_others_say_is_counted_and_ignored, without_routes),
		cmocka_unit_test_teardown(what_a_failed_dump_does_not_name_stays, without_routes),
		cmocka_unit_test_teardown(what_a_malformed_message_of_a_dump_told_stays,
			without_routes),
		cmocka_unit_test_teardown(what_a_kernel_lacks_is_told_from_what_it_cannot_tell,
			without_routes),
		cmocka_unit_test_teardown(a_failed_dump_is_repeated_ever_later_and_said_once,
			without_routes),
		cmocka_unit_test_teardown(what_there_was_no_memory_for_comes_with_a_later_dump,
			without_routes),
		cmocka_unit_test_teardown(asks_and_gets_the_kernels_word, without_routes),
		cmocka_unit_test_teardown(a_question_in_the_middle_of_a_dump_does_not_end_it,
			without_routes),
	};
	const struct CMUnitTest tests_of_bursts[] = {
		cmocka_unit_test_setup(silence_is_no_burst, forget),
		cmocka_unit_test_setup(what_comes_soon_is_of_the_same_burst, forget),
		cmocka_unit_test_setup(the_oldest_are_forgotten_first, forget),
	};

	return cmocka_run_group_tests(tests_of_bursts, NULL, NULL) +
	       cmocka_run_group_tests(tests, in_own_namespace, NULL);
}
