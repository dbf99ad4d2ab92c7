// TAP interfaces as network interfaces: created, adopted, kept, refused, deleted and recreated. The
// test program acts as its own holder.
#include "tap/fixture.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAUSE_US = 10000 };

static void makes_taps_with_the_ports_names_addresses_and_mtus(void **state)
{
	struct port_info info;

	open_module();
	for (unsigned p = 0; p < 2; p++) {
		struct netdev tap = read_tap(p);

		port_info(ports, p, &info);
		assert_true(tap.is_tap && tap.has_queues && tap.is_up);
		assert_int_equal(tap.n_attached, 1);
		assert_int_equal(tap.mtu, info.mtu);
		assert_true(wire_mac_equal(&tap.mac, &info.mac));
		assert_int_equal(tap_ifindex(taps, p), tap.index);
	}
	assert_true(tap_namespace_is_own(taps));
	assert_int_equal(run("ip netns list | grep -qw %s", namespace_name), 0);
}

static void leaves_nothing_behind_where_nothing_is_kept(void **state)
{
	open_module();
	close_module();
	assert_int_not_equal(access(settings.hold_socket, F_OK), 0);
	assert_int_not_equal(run("ip netns list | grep -qw %s", namespace_name), 0);
	assert_int_equal(count_free(), n_mbufs_free);
}

static void leaves_a_namespace_that_others_use(void **state)
{
	open_module();
	assert_int_equal(run("ip -n %s link add other type veth peer name other2", namespace_name),
		0);
	close_module();
	assert_int_equal(run("ip -n %s link show other >/dev/null", namespace_name), 0);
	assert_int_not_equal(run("ip -n %s link show tw0 2>/dev/null", namespace_name), 0);
}

static void follows_the_ports_carrier(void **state)
{
	open_module();
	assert_false(read_tap(0).has_carrier);
	port_poll(ports);
	assert_true(port_has_carrier(ports, 0));
	tap_poll(taps);
	assert_true(read_tap(0).has_carrier);
}

static void names_a_deleted_tap_and_makes_it_again(void **state)
{
	struct error error = {""};
	struct tap_info info;

	open_module();
	assert_int_equal(run("ip -n %s link del tw0", namespace_name), 0);
	tap_poll(taps);
	assert_int_equal(tap_ifindex(taps, 0), 0);
	assert_true(punt(0, VERDICT_LOCAL, 0));
	assert_true(punt(1, VERDICT_LOCAL, 0));
	settle();
	assert_int_equal(sum_tap(VERDICT_TAP_REFUSED), 1);
	assert_int_equal(sum_tap(VERDICT_FORWARD), 1);

	if (tap_restore(taps, &error))
		fail_msg("%s", error.text);
	tap_info(taps, 0, &info);
	assert_int_equal(info.ifindex, read_tap(0).index);
	int fd = listen_to_tap(0);
	assert_true(punt(0, VERDICT_LOCAL, 77));
	assert_int_equal(receive_mark(fd), 77);
	close(fd);
}

static void makes_again_what_it_can(void **state)
{
	struct error error = {""};

	open_module();
	assert_int_equal(run("ip -n %s link del tw0", namespace_name), 0);
	assert_int_equal(run("ip -n %s link del tw1", namespace_name), 0);
	tap_poll(taps);
	assert_int_equal(run("ip -n %s link add tw0 type veth peer name other", namespace_name), 0);
	assert_int_equal(tap_restore(taps, &error), -EEXIST);
	assert_non_null(strstr(error.text, "tw0"));
	assert_int_equal(tap_ifindex(taps, 0), 0);
	assert_int_equal(tap_ifindex(taps, 1), read_tap(1).index);
	assert_int_equal(run("ip -n %s link del tw0", namespace_name), 0);
	assert_int_equal(tap_restore(taps, &error), 0);
	assert_int_equal(tap_ifindex(taps, 0), read_tap(0).index);
}

static void goes_on_with_a_renamed_tap(void **state)
{
	struct tap_info info;

	open_module();
	run("ip -n %s link set tw0 down", namespace_name);
	assert_int_equal(run("ip -n %s link set tw0 name uplink", namespace_name), 0);
	run("ip -n %s link set uplink up", namespace_name);
	tap_poll(taps);
	tap_info(taps, 0, &info);
	assert_string_equal(info.name, "uplink");
	assert_int_not_equal(info.ifindex, 0);
	assert_true(punt(0, VERDICT_LOCAL, 0));
	settle();
	assert_int_equal(sum_tap(VERDICT_FORWARD), 1);
}

static void expect_no_holder(void)
{
	const uint64_t start_ns = clock_now_ns();

	while (access(settings.hold_socket, F_OK) == 0) {
		assert_true(clock_now_ns() - start_ns < wait_ns);
		usleep(PAUSE_US);
	}
}

static void keeps_taps_with_carrier_and_adopts_them(void **state)
{
	settings.keep = true;
	open_module();
	bring_carrier();
	int index = tap_ifindex(taps, 0);

	assert_int_equal(run("ip -n %s addr add 10.99.0.1/24 dev tw0 && "
			     "ip -n %s route add 10.98.0.0/16 via 10.99.0.2 && "
			     "ip -n %s link set tw0 mtu 1400",
				 namespace_name, namespace_name, namespace_name),
		0);
	close_module();
	assert_int_equal(run("ip -n %s link show tw0 | grep -q LOWER_UP", namespace_name), 0);
	assert_int_equal(run("ip -n %s route get 10.98.0.1 | grep -q tw0", namespace_name), 0);

	open_module();
	assert_int_equal(tap_ifindex(taps, 0), index);
	assert_int_equal(read_tap(0).mtu, 1400);
	assert_true(read_tap(0).has_carrier);
	struct tap_info info;
	tap_info(taps, 0, &info);
	assert_true(info.adopted && info.held && info.carrier && info.keep);

	// The same TAP interfaces, with keep off.
	close_module();
	settings.keep = false;
	open_module();
	assert_int_equal(tap_ifindex(taps, 0), index);
	close_module();
	assert_int_not_equal(run("ip netns list | grep -qw %s", namespace_name), 0);
	expect_no_holder();
}

static bool holder_listens(void)
{
	int fd = hold_connect(settings.hold_socket);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static pid_t find_holder(void)
{
	struct ucred who = {0};
	socklen_t size = sizeof(who);
	int fd = hold_connect(settings.hold_socket);

	assert_true(fd >= 0);
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size);
	close(fd);
	return who.pid;
}

// Its files are closed a moment after the signal, and not in one go.
static void kill_holder(void)
{
	const uint64_t start_ns = clock_now_ns();

	assert_int_equal(kill(find_holder(), SIGKILL), 0);
	while (!hold_has_ended(taps->holder) || holder_listens()) {
		assert_true(clock_now_ns() - start_ns < wait_ns);
		usleep(PAUSE_US);
	}
}

static void starts_the_holder_again_when_it_was_killed(void **state)
{
	settings.keep = true;
	open_module();
	pid_t holder = find_holder();

	kill_holder();
	taps->looked_ns = 0;
	tap_poll(taps);
	assert_int_not_equal(find_holder(), holder);
	bring_carrier();
	close_module();
	assert_int_equal(run("ip -n %s link show tw1 | grep -q LOWER_UP", namespace_name), 0);
	open_module();
}

// The holder cannot be started for a while, and a TAP interface is deleted meanwhile.
static void starts_the_holder_outside_of_the_namespace_at_a_reload(void **state)
{
	struct error error = {""};

	settings.keep = true;
	open_module();
	int n_files = run("exit $(ls /proc/%d/fd | wc -l)", getpid());
	kill_holder();
	assert_int_equal(run("rm %s && mkdir %s", settings.hold_socket, settings.hold_socket), 0);
	taps->looked_ns = 0;
	tap_poll(taps);
	assert_true(taps->said_unheld);
	assert_int_equal(run("ip -n %s link del tw0", namespace_name), 0);
	tap_poll(taps);
	assert_int_equal(run("rmdir %s", settings.hold_socket), 0);
	if (tap_restore(taps, &error))
		fail_msg("%s", error.text);
	assert_int_equal(run("test $(readlink /proc/%d/ns/net) = $(readlink /proc/%d/ns/net)",
				 find_holder(), getpid()),
		0);
	assert_int_equal(run("exit $(ls /proc/%d/fd | wc -l)", getpid()), n_files);
}

static void lets_the_holder_have_nothing_else_of_ours(void **state)
{
	settings.keep = true;
	open_module();
	pid_t holder = find_holder();

	// Three of stdio, its socket, our connection, two TAP interfaces. Another connection, used
	// to query its process id, may not be closed yet.
	const uint64_t start_ns = clock_now_ns();
	while (run("test $(ls /proc/%d/fd | wc -l) = 7", holder)) {
		assert_true(clock_now_ns() - start_ns < wait_ns);
		usleep(PAUSE_US);
	}
	assert_int_equal(run("test $(ls -l /proc/%d/fd | grep -c /dev/net/tun) = 2", holder), 0);
	assert_int_equal(run("test $(ls -l /proc/%d/fd | grep -c /dev/null) = 3", holder), 0);
	assert_int_equal(run("ls -l %s | grep -q ^srw-------", settings.hold_socket), 0);
}

static void ends_the_holder_with_the_last_tap(void **state)
{
	settings.keep = true;
	open_module();
	close_module();
	assert_int_equal(access(settings.hold_socket, F_OK), 0);
	run("ip -n %s link del tw0", namespace_name);
	usleep(1200000);
	assert_int_equal(access(settings.hold_socket, F_OK), 0);
	run("ip -n %s link del tw1", namespace_name);
	expect_no_holder();
}

static void ends_the_holder_with_the_namespace(void **state)
{
	settings.keep = true;
	open_module();
	close_module();
	assert_int_equal(run("ip netns del %s", namespace_name), 0);
	expect_no_holder();
}

static void expect_refusal_at_open(const char *words)
{
	struct error error = {""};
	uint32_t n_free = count_free();
	struct tap_table *none;

	assert_true(tap_open(&none, &settings, ports, &error) < 0);
	if (!strstr(error.text, words))
		fail_msg("'%s'", error.text);
	assert_int_equal(count_free(), n_free);
}

static void expect_refusal(const char *words)
{
	struct error error = {""};

	assert_true(tap_check(&settings, &port_settings, &error) < 0);
	if (!strstr(error.text, words))
		fail_msg("'%s'", error.text);
	expect_refusal_at_open(words);
}

static void refuses_a_name_that_another_interface_has(void **state)
{
	static const struct {
		const char *command, *words;
	} rows[] = {
		{"link add tw1 type veth peer name other",
			"another interface has the name of its TAP interface"},
		{"tuntap add tw1 mode tun multi_queue",
			"another interface has the name of its TAP interface"},
		{"tuntap add tw1 mode tap",
			"a TAP interface without multi_queue already has this name"},
	};

	strcpy(settings.namespace_name, namespace_name);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(run("ip netns add %s && ip -n %s %s", namespace_name,
					 namespace_name, rows[i].command),
			0);
		expect_refusal(rows[i].words);
		assert_int_not_equal(run("ip -n %s link show tw0 2>/dev/null", namespace_name), 0);
		assert_int_equal(run("ip -n %s link show tw1 >/dev/null", namespace_name), 0);
		run("ip netns del %s", namespace_name);
	}
}

static void refuses_a_tap_that_another_program_uses(void **state)
{
	struct error error = {""};

	open_module();
	expect_refusal_at_open("another program uses the TAP");
	assert_int_equal(tap_check(&settings, &port_settings, &error), 0);
	assert_int_equal(read_tap(0).n_attached, 1);
}

static void refuses_a_namespace_that_is_missing_or_none(void **state)
{
	strcpy(settings.namespace_name, "tap-test-none");
	expect_refusal("network namespace 'tap-test-none' does not exist; create it");
	strcpy(settings.namespace_name, "../../etc/passwd");
	expect_refusal("is not a network namespace");
}

static void refuses_a_port_whose_name_linux_does_not_take(void **state)
{
	struct error error;

	strcpy(port_settings.ports[1].name, "tw:1");
	assert_int_equal(tap_check(&settings, &port_settings, &error), -EINVAL);
	assert_non_null(strstr(error.text, "rename the port"));
	strcpy(port_settings.ports[1].name, "tw1");
}

static void says_that_the_namespace_was_deleted_and_goes_on(void **state)
{
	open_module();
	assert_int_equal(run("ip netns del %s", namespace_name), 0);
	taps->looked_ns = 0;
	tap_poll(taps);
	assert_true(taps->said_unnamed);
	assert_true(punt(0, VERDICT_LOCAL, 0));
	settle();
	assert_int_equal(sum_tap(VERDICT_FORWARD), 1);
}

int main(int argc, char **argv)
{
#define ROOM_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		ROOM_TEST(makes_taps_with_the_ports_names_addresses_and_mtus),
		ROOM_TEST(leaves_nothing_behind_where_nothing_is_kept),
		ROOM_TEST(leaves_a_namespace_that_others_use),
		ROOM_TEST(follows_the_ports_carrier),
		ROOM_TEST(names_a_deleted_tap_and_makes_it_again),
		ROOM_TEST(makes_again_what_it_can),
		ROOM_TEST(goes_on_with_a_renamed_tap),
		ROOM_TEST(keeps_taps_with_carrier_and_adopts_them),
		ROOM_TEST(starts_the_holder_again_when_it_was_killed),
		ROOM_TEST(ends_the_holder_with_the_last_tap),
		ROOM_TEST(ends_the_holder_with_the_namespace),
		ROOM_TEST(starts_the_holder_outside_of_the_namespace_at_a_reload),
		ROOM_TEST(lets_the_holder_have_nothing_else_of_ours),
		ROOM_TEST(refuses_a_name_that_another_interface_has),
		ROOM_TEST(refuses_a_tap_that_another_program_uses),
		ROOM_TEST(refuses_a_namespace_that_is_missing_or_none),
		ROOM_TEST(refuses_a_port_whose_name_linux_does_not_take),
		ROOM_TEST(says_that_the_namespace_was_deleted_and_goes_on),
	};

	if (argc == 3 && strcmp(argv[1], "--hold") == 0)
		return tap_hold_main(argv[2]);
	return cmocka_run_group_tests(tests, open_ports, close_ports);
}
