// A real kernel in a namespace of this process: dumps, news, what is lost and what is foreign.
#include "sync/listen.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/rtnetlink.h>
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

struct heard {
	unsigned begins, ends;
	bool known[N_ROUTES], doubted[N_ROUTES]; // blackhole routes 10.0.x.y/32
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
	struct heard *heard = arg;
	int number = number_of(event);

	if (number < 0)
		return;
	heard->known[number] = !event->is_delete;
	heard->doubted[number] = false;
}

static void begin(void *arg)
{
	struct heard *heard = arg;

	heard->begins++;
	memcpy(heard->doubted, heard->known, sizeof(heard->known));
}

static void end(void *arg)
{
	struct heard *heard = arg;

	heard->ends++;
	for (unsigned i = 0; i < N_ROUTES; i++)
		heard->known[i] &= !heard->doubted[i];
}

static void run(const char *command)
{
	assert_int_equal(system(command), 0);
}

static struct listen *listen_with(struct heard *heard, uint32_t room)
{
	struct listen_ears ears = {take, begin, end, heard};
	struct complaint why = {""};
	struct listen *listen;

	*heard = (struct heard){0};
	if (listen_open(&listen, &ears, room, &why))
		fail_msg("%s", why.text);
	return listen;
}

static void settle(struct listen *listen)
{
	uint64_t until = clock_now_ns() + 10000000000;

	while (listen_tend(listen, 1000000) || listen_is_dumping(listen))
		assert_true(clock_now_ns() < until);
}

static unsigned count(const struct heard *heard)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N_ROUTES; i++)
		n += heard->known[i];
	return n;
}

// Adds or deletes 10.0.x.y/32 with numbers from `from` up to `to`.
static void change_routes(const char *verb, unsigned from, unsigned to)
{
	FILE *batch = popen("ip -force -batch -", "w");

	assert_non_null(batch);
	for (unsigned i = from; i < to; i++)
		fprintf(batch, "route %s blackhole 10.0.%u.%u/32\n", verb, i >> 8, i & 255);
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
	struct heard heard;
	struct listen *listen;

	change_routes("add", 0, 100);
	listen = listen_with(&heard, 1 << 20);
	settle(listen);
	assert_int_equal(heard.ends, 1);
	assert_int_equal(count(&heard), 100);
	change_routes("add", 100, 150);
	change_routes("del", 0, 10);
	settle(listen);
	assert_int_equal(count(&heard), 140);
	assert_int_equal(heard.ends, 1);
	listen_close(listen);
}

static void a_loss_leads_to_a_dump_that_finds_all(void **state)
{
	struct heard heard;
	struct listen *listen = listen_with(&heard, 16 << 10);
	struct listen_info info;

	settle(listen);
	change_routes("add", 0, 2000);
	change_routes("del", 0, 500);
	settle(listen);
	listen_info(listen, &info);
	assert_true(info.overruns > 0);
	assert_true(heard.ends > 1);
	assert_int_equal(count(&heard), 1500);
	listen_close(listen);
}

// Routes go while the dump is told piece by piece: none may come back.
static void what_is_deleted_during_a_dump_stays_deleted(void **state)
{
	struct heard heard;
	struct listen *listen;

	change_routes("add", 0, N_ROUTES);
	listen = listen_with(&heard, 16 << 20);
	for (unsigned i = 0; i < N_ROUTES; i += 256) {
		listen_tend(listen, 1);
		change_routes("del", N_ROUTES - i - 128, N_ROUTES - i);
		listen_tend(listen, 1);
		change_routes("del", i, i + 64);
	}
	settle(listen);
	for (unsigned i = 0; i < N_ROUTES; i++) {
		bool gone = i % 256 < 64 || i % 256 >= 128;

		assert_int_equal(heard.known[i], !gone);
	}
	listen_close(listen);
}

// Another process sends us what looks like a message of the kernel.
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
	struct heard heard;
	struct listen *listen = listen_with(&heard, 1 << 20);
	struct listen_info info;

	settle(listen);
	assert_int_equal(sendto(liar, &lie, sizeof(lie), 0, (void *)&to, sizeof(to)), sizeof(lie));
	settle(listen);
	listen_info(listen, &info);
	assert_int_equal(info.malformed, 1);
	assert_int_equal(count(&heard), 0);
	assert_int_equal(heard.ends, 1);
	listen_close(listen);
	close(liar);
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
	struct heard heard;
	struct listen *listen = listen_with(&heard, 1 << 20);

	run("ip link set lo up");
	assert_int_equal(listen_ask(listen, &request), 0);
	assert_int_equal(type, RTN_LOCAL);
	question.dst[0] = 11;
	assert_int_equal(listen_ask(listen, &request), -ENETUNREACH);
	listen_close(listen);
}

// Somebody wants to know of a route (`dl3 show route`) while the tables are being read.
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
	struct heard heard;
	struct listen *listen;
	unsigned n_asked = 0;

	change_routes("add", 0, N_ROUTES);
	listen = listen_with(&heard, 16 << 20);
	alarm(20); // a dump that waits for an answer which never comes holds up all else
	for (; listen_is_dumping(listen); n_asked++) {
		listen_tend(listen, 1);
		listen_ask(listen, &request);
	}
	alarm(0);
	assert_true(n_asked > 1);
	assert_int_equal(heard.ends, 1);
	assert_int_equal(count(&heard), N_ROUTES);
	listen_close(listen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(hears_what_is_there_and_what_comes, without_routes),
		cmocka_unit_test_teardown(a_loss_leads_to_a_dump_that_finds_all, without_routes),
		cmocka_unit_test_teardown(what_is_deleted_during_a_dump_stays_deleted,
			without_routes),
		cmocka_unit_test_teardown(what_others_say_is_counted_and_ignored, without_routes),
		cmocka_unit_test_teardown(asks_and_gets_the_kernels_word, without_routes),
		cmocka_unit_test_teardown(a_question_in_the_middle_of_a_dump_does_not_end_it,
			without_routes),
	};

	return cmocka_run_group_tests(tests, in_own_namespace, NULL);
}
