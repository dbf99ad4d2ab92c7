// TAP interfaces that come and go with their ports while the tap thread runs.
#include "tap/fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { PORT = 2, OTHER_PORT = 4, N_FRAMES = 20 };

static void add_port(unsigned port, const char *name, const char *device)
{
	struct port_settings added = {.mtu = 1400};
	struct error error = {""};

	snprintf(added.name, sizeof(added.name), "%s", name);
	snprintf(added.device, sizeof(added.device), "%s", device);
	if (port_add(ports, port, &added, &error))
		fail_msg("%s", error.text);
}

static void add(unsigned port, const char *name, const char *device)
{
	struct error error = {""};

	add_port(port, name, device);
	if (tap_add(taps, port, &error))
		fail_msg("%s", error.text);
	port_begin(ports, port);
}

static void remove_port(unsigned port)
{
	port_remove(ports, port);
	tap_remove(taps, port);
}

static bool exists(const char *name)
{
	return run("ip -n %s link show dev %s >/dev/null 2>&1", namespace_name, name) == 0;
}

static void a_tap_comes_and_goes_with_its_port(void **state)
{
	struct netdev found;
	struct port_info info;
	struct tap_info tap;

	settings.keep = true;
	open_module();
	for (unsigned i = 0; i < 3; i++) {
		add(PORT, "tw2", "net_null2");
		port_info(ports, PORT, &info);
		tap_info(taps, PORT, &tap);
		assert_int_equal(netdev_read(&taps->sockets, "tw2", &found), 0);
		assert_true(found.is_up && wire_mac_equal(&found.mac, &info.mac));
		assert_int_equal(found.mtu, 1400);
		assert_int_equal(tap.ifindex, found.index);
		assert_true(tap.held);
		tap_poll(taps);
		assert_int_equal(netdev_read(&taps->sockets, "tw2", &found), 0);
		assert_true(found.has_carrier);
		remove_port(PORT);
		assert_false(exists("tw2"));
		assert_int_equal(tap_ifindex(taps, PORT), 0);
		tap_poll(taps);
		assert_true(exists("tw0"));
	}
	settings.keep = false;
}

static void frames_pass_by_the_tap_of_an_added_port(void **state)
{
	open_module();
	add(OTHER_PORT, "tw4", "net_null4");
	add(PORT, "tw2", "net_null2");
	tap_poll(taps);
	int fd = listen_to_tap(PORT);

	assert_true(punt(PORT, VERDICT_LOCAL, 55));
	assert_int_equal(receive_mark(fd), 55);
	close(fd);
	remove_port(PORT);
	remove_port(OTHER_PORT);
	assert_false(exists("tw4"));
}

// What was punted before is delivered; what comes later is named.
static void what_a_port_has_punted_is_delivered_before_its_tap_goes(void **state)
{
	open_module();
	add(PORT, "tw2", "net_null2");
	for (unsigned i = 0; i < N_FRAMES; i++)
		assert_true(punt(PORT, VERDICT_LOCAL, i));
	remove_port(PORT);
	assert_int_equal(sum_tap(VERDICT_FORWARD), N_FRAMES);
	assert_int_equal(stats_read(&tap_stats(taps)->punted_by_port[PORT]), N_FRAMES);
	assert_int_equal(sum_tap(VERDICT_TAP_REFUSED), 0);
}

static void a_name_in_use_in_linux_is_refused_and_nothing_changes(void **state)
{
	struct error error = {""};

	open_module();
	assert_int_equal(run("ip -n %s link add tw2 type veth peer name other", namespace_name), 0);
	add_port(PORT, "tw2", "net_null2");
	assert_int_equal(tap_add(taps, PORT, &error), -EEXIST);
	assert_non_null(strstr(error.text, "another interface has the name of its TAP interface"));
	assert_int_equal(tap_ifindex(taps, PORT), 0);
	port_remove(ports, PORT);
	assert_int_equal(run("ip -n %s link del tw2", namespace_name), 0);
	add(PORT, "tw2", "net_null2");
	remove_port(PORT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--hold") == 0)
		return tap_hold_main(argv[2]);
	const struct CMUnitTest tests[] = {
		TEST(a_tap_comes_and_goes_with_its_port),
		TEST(frames_pass_by_the_tap_of_an_added_port),
		TEST(what_a_port_has_punted_is_delivered_before_its_tap_goes),
		TEST(a_name_in_use_in_linux_is_refused_and_nothing_changes),
	};

	return cmocka_run_group_tests(tests, open_ports, close_ports);
}
