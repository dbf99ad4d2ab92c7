// The kernel resolves the neighbours of held hops, of which it sees no packet. A veth whose other
// end, in a namespace of its own, answers; the mirror gets events of neighbours only. Tests only.
#include "netlink/fake_linux.h"

#include "base/clock.h"
#include "netlink/inside.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef NTF_EXT_MANAGED
#define NTF_EXT_MANAGED 1
#endif

static struct netlink netlink;
static pid_t host; // has the other end
static bool is_old_kernel;
static unsigned n_uses, n_probes; // requests that have it resolve a neighbour, or probe one

// Kernels before 5.16 ignore the attribute with the flag.
static void forget_new_flags(struct nlmsghdr *message)
{
	struct ndmsg *neighbour = NLMSG_DATA(message);
	int left = message->nlmsg_len - NLMSG_LENGTH(sizeof(*neighbour));
	struct rtattr *attr = (void *)(neighbour + 1);

	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
		if (attr->rta_type == NDA_FLAGS_EXT)
			attr->rta_type = NDA_UNSPEC;
}

int __real_listen_ask(struct listen *listen, const struct listen_request *request);
int __wrap_listen_ask(struct listen *listen, const struct listen_request *request);
int __wrap_listen_ask(struct listen *listen, const struct listen_request *request)
{
	struct listen_request changed = *request;
	union {
		struct nlmsghdr head;
		uint8_t bytes[256];
	} copy;

	assert_in_range(request->bytes, sizeof(copy.head), sizeof(copy));
	memcpy(&copy, request->message, request->bytes);
	changed.message = &copy;
	if (copy.head.nlmsg_type == RTM_NEWNEIGH) {
		const struct ndmsg *neighbour = NLMSG_DATA(&copy.head);
		n_uses += (neighbour->ndm_flags & NTF_USE) != 0;
		n_probes += neighbour->ndm_state == NUD_PROBE;
		if (is_old_kernel)
			forget_new_flags(&copy.head);
	}
	return __real_listen_ask(listen, &changed);
}

static void take(void *arg, const struct event *event)
{
	if (event->kind == EVENT_NEIGHBOUR && event->neighbour.ifindex == FAKE_TAP)
		mirror_event(fake.mirror, event);
}

static void begin(void *arg)
{
}

static void lack(void *arg, enum event_kind kind)
{
}

static void end(void *arg, uint32_t partial)
{
}

static void end_filters(void *arg, bool whole)
{
}

__attribute__((format(printf, 1, 2))) static void run(const char *format, ...)
{
	char command[256];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	assert_int_equal(system(command), 0);
}

// A process in a namespace of its own.
static pid_t start_host(void)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	const pid_t pid = fork();
	if (!pid) {
		close(ready[0]);
		if (unshare(CLONE_NEWNET) || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static int setup(void **state)
{
	static const struct listen_ops ops = {take, begin, lack, end, end_filters, NULL};

	if (unshare(CLONE_NEWNET))
		return -1;
	is_old_kernel = false;
	n_uses = n_probes = 0;
	host = start_host();
	run("ip link add p0 index %d type veth peer name h0 netns %d", FAKE_TAP, host);
	run("ip addr add 10.0.0.1/24 dev p0 && ip link set p0 up");
	run("nsenter -t %d -n ip addr add 10.0.0.2/24 dev h0", host);
	run("nsenter -t %d -n ip link set h0 up", host);
	fake_setup(state);
	netlink = (struct netlink){.ctx.fib = fake.fib, .mirror = fake.mirror};
	assert_int_equal(listen_open(&netlink.listen, &ops, 1 << 20, NULL), 0);
	assert_int_equal(neigh_refresh_open(&netlink.refresh, &netlink, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	neigh_refresh_close(netlink.refresh);
	listen_close(netlink.listen);
	kill(host, SIGKILL);
	waitpid(host, NULL, 0);
	return fake_teardown(state);
}

static const struct fib_hop *gateway(void)
{
	static struct fib_hop hop;

	hop = (struct fib_hop){.kind = FIB_VIA, .iface = 0, .via = fake_addr("10.0.0.2")};
	return &hop;
}

// What the kernel has reported.
static struct neighbour reported(void)
{
	struct neighbour neighbour = {.state = 0};

	neighbours_find(fake.mirror->neighbours, FAKE_TAP, &gateway()->via, &neighbour);
	return neighbour;
}

static void wait_until(bool (*holds)(void))
{
	const uint64_t start_ns = clock_now_ns();

	while (!holds()) {
		struct pollfd news = {.fd = listen_fd(netlink.listen), .events = POLLIN};

		poll(&news, 1, 1);
		listen_poll(netlink.listen, 1000000);
		fake_flush(&fake);
		neigh_refresh_poll(netlink.refresh);
		assert_true(clock_now_ns() - start_ns < 60000000000);
	}
}

static bool is_forwarding(void)
{
	struct fib_usage usage;
	struct fib_hop_info info;

	fib_usage(fake.fib, &usage);
	for (uint32_t id = 1; id <= usage.max_hop_id; id++)
		if (fib_hop_info(fake.fib, id, &info) && info.is_held)
			return info.verdict == VERDICT_FORWARD;
	return false;
}

static bool is_managed(void)
{
	return reported().ext_flags & NTF_EXT_MANAGED;
}

static bool is_not_managed(void)
{
	return !is_managed();
}

static bool is_reachable_after_a_probe(void)
{
	return n_probes && reported().state == NUD_REACHABLE;
}

static uint32_t hold_gateway(void)
{
	uint32_t held;

	assert_int_equal(fib_hold(fake.fib, gateway(), &held, NULL), 0);
	assert_false(is_forwarding());
	return held;
}

static void linux_resolves_and_keeps_the_neighbour_of_a_held_hop(void **state)
{
	const uint32_t held = hold_gateway();

	wait_until(is_forwarding);
	wait_until(is_managed);
	fib_release(fake.fib, held);
	wait_until(is_not_managed);
	assert_int_equal(n_uses, 0);
}

static void kernels_that_cannot_keep_it_resolve_it_nevertheless(void **state)
{
	is_old_kernel = true;
	const uint32_t held = hold_gateway();

	wait_until(is_forwarding);
	assert_false(is_managed());
	assert_int_not_equal(n_uses, 0);
	n_probes = 0;
	run("ip neigh change 10.0.0.2 dev p0 nud stale");
	wait_until(is_reachable_after_a_probe);
	fib_release(fake.fib, held);
}

static uint32_t vtep;

static bool reaches_vtep(void)
{
	struct fib_answer answer;

	rib_lookup(fake.fib, 0, &gateway()->via, &answer);
	return answer.verdict == VERDICT_FORWARD;
}

static void hold_vtep(void)
{
	struct fib_change change = {.op = FIB_ADD,
		.route.hop = {.kind = FIB_CONNECTED, .iface = 0}};

	assert_int_equal(wire_prefix_parse("10.0.0.0/24", &change.route.prefix), 0);
	assert_int_equal(fib_change(fake.fib, &change, 1, NULL, NULL), 0);
	assert_int_equal(fib_vtep_hold(fake.fib, 0, &gateway()->via, &vtep, NULL), 0);
	assert_false(reaches_vtep());
}

static void linux_resolves_and_keeps_a_remote_end_on_the_link(void **state)
{
	hold_vtep();
	wait_until(reaches_vtep);
	wait_until(is_managed);
	fib_vtep_release(fake.fib, vtep);
	wait_until(is_not_managed);
	assert_int_equal(n_uses, 0);
}

static void kernels_that_cannot_keep_a_remote_end_resolve_it(void **state)
{
	is_old_kernel = true;
	hold_vtep();
	wait_until(reaches_vtep);
	assert_int_not_equal(n_uses, 0);
	fib_vtep_release(fake.fib, vtep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			linux_resolves_and_keeps_the_neighbour_of_a_held_hop, setup, teardown),
		cmocka_unit_test_setup_teardown(kernels_that_cannot_keep_it_resolve_it_nevertheless,
			setup, teardown),
		cmocka_unit_test_setup_teardown(linux_resolves_and_keeps_a_remote_end_on_the_link,
			setup, teardown),
		cmocka_unit_test_setup_teardown(kernels_that_cannot_keep_a_remote_end_resolve_it,
			setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
