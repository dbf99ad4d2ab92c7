// Devices that vanish and return: net_af_packet on a veth pair that is deleted and made again, in a
// network namespace of its own, as root; beside it a net_null.
#include "port/port.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <rte_ethdev.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { VETH_PORT, NULL_PORT };

static struct port_table_settings settings = {
	.n_ports = 2,
	.ports = {{.name = "veth", .device = "net_af_packet0,iface=v0"},
		{.name = "null", .device = "net_null0"}},
	.n_workers = 1,
	.huge = PORT_HUGE_NEVER,
};
static struct port_table *ports;
static struct port_info info; // of VETH_PORT, after poll()

// Grace periods that end when the test says so.
static unsigned n_graces;
static bool has_passed;

static uint64_t start_grace(void *arg)
{
	return ++n_graces;
}

static bool grace_has_passed(void *arg, uint64_t token)
{
	assert_int_equal(token, n_graces);
	return has_passed;
}

// No device here asks for a reset, so the test calls what the module has registered for that, and
// gives the device another MAC address.
static struct {
	rte_eth_dev_cb_fn call;
	void *arg;
	uint16_t device;
	unsigned n_resets;
	bool has_mac;
	struct rte_ether_addr mac;
} asker;

int rte_eth_dev_callback_register(uint16_t id, enum rte_eth_event_type event,
	rte_eth_dev_cb_fn call, void *arg)
{
	int (*const next)(uint16_t, enum rte_eth_event_type, rte_eth_dev_cb_fn, void *) =
		(__typeof__(&rte_eth_dev_callback_register))dlsym(RTLD_NEXT,
			"rte_eth_dev_callback_register");
	char name[RTE_ETH_NAME_MAX_LEN] = "";

	rte_eth_dev_get_name_by_port(id, name);
	if (event == RTE_ETH_EVENT_INTR_RESET && !strcmp(name, "net_af_packet0")) {
		asker.call = call;
		asker.arg = arg;
		asker.device = id;
	}
	return next(id, event, call, arg);
}

int rte_eth_dev_reset(uint16_t id)
{
	asker.n_resets++;
	return -ENOTSUP;
}

int rte_eth_macaddr_get(uint16_t id, struct rte_ether_addr *mac)
{
	int (*const next)(uint16_t, struct rte_ether_addr *) =
		(__typeof__(&rte_eth_macaddr_get))dlsym(RTLD_NEXT, "rte_eth_macaddr_get");
	int err = next(id, mac);

	if (asker.has_mac && id == asker.device)
		*mac = asker.mac;
	return err;
}

static void ask_for_reset(void)
{
	asker.call(asker.device, RTE_ETH_EVENT_INTR_RESET, asker.arg, NULL);
}

static void run(const char *command)
{
	assert_int_equal(system(command), 0);
}

static void make_veth(void)
{
	run("ip link add v0 type veth peer name v1 && ip link set v1 up && ip link set v0 up");
}

static void poll_ports(void)
{
	port_poll(ports);
	port_info(ports, VETH_PORT, &info);
}

static const struct port_state *state_of(unsigned port)
{
	return &port_states(ports)[port];
}

static const struct port_queue *queue_of(unsigned port)
{
	const struct port_worker *worker = port_worker(ports, 0);

	for (unsigned q = 0; q < worker->n_queues; q++)
		if (worker->queues[q].port == port)
			return &worker->queues[q];
	fail_msg("port %u has no queue", port);
	return NULL;
}

static void delete_veth(void)
{
	run("ip link del v0");
	poll_ports();
	assert_false(info.device_present);
}

// A link comes up within milliseconds, after `ip` has returned.
static void wait_for_link(void)
{
	do
		poll_ports();
	while (!info.link_up && usleep(1000) == 0);
}

static int open_ports(void **state)
{
	struct error error = {""};
	cpu_set_t allowed;

	log_start("hotplug_test");
	if (unshare(CLONE_NEWNET) != 0)
		return -1;
	make_veth();
	sched_getaffinity(0, sizeof(allowed), &allowed);
	while (!CPU_ISSET(settings.workers[0].core, &allowed))
		settings.workers[0].core++;
	if (port_open(&ports, &settings, &error) || port_start(ports, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return -1;
	}
	port_set_grace(ports, &(struct port_grace){start_grace, grace_has_passed, NULL});
	return 0;
}

static int close_ports(void **state)
{
	port_close(ports);
	return 0;
}

static int begin(void **state)
{
	has_passed = true;
	wait_for_link();
	return 0;
}

static void closes_a_device_that_vanished_after_a_grace_period(void **state)
{
	uint16_t device = queue_of(VETH_PORT)->device;
	unsigned n = n_graces;

	has_passed = false;
	delete_veth();
	assert_int_equal(n_graces, n + 1);
	assert_true(port_is_closed(queue_of(VETH_PORT)));
	assert_false(port_is_up(state_of(VETH_PORT)));
	assert_false(port_has_carrier(ports, VETH_PORT));
	poll_ports();
	assert_true(rte_eth_dev_is_valid_port(device));
	has_passed = true;
	poll_ports();
	assert_false(rte_eth_dev_is_valid_port(device));
	assert_true(port_is_closed(queue_of(VETH_PORT)));
	assert_int_equal(n_graces, n + 1);
	make_veth();
}

static void leaves_other_ports_alone(void **state)
{
	delete_veth();
	assert_false(port_is_closed(queue_of(NULL_PORT)));
	assert_true(port_is_up(state_of(NULL_PORT)));
	make_veth();
}

static void counts_and_reports_it(void **state)
{
	unsigned n = info.n_losses;
	struct error error;

	assert_int_equal(port_check_devices(ports, &error), 0);
	delete_veth();
	assert_int_equal(info.n_losses, n + 1);
	assert_int_equal(port_check_devices(ports, &error), -ENODEV);
	assert_string_equal(error.text,
		"ports[0] (veth): its device net_af_packet0 is gone (removed or reset); bring it "
		"back and start again");
	make_veth();
	wait_for_link();
	assert_true(info.device_present);
	assert_int_equal(port_check_devices(ports, &error), 0);
	assert_false(port_is_closed(queue_of(VETH_PORT)));
}

static void notices_a_device_that_was_made_again_in_the_meantime(void **state)
{
	unsigned n = info.n_losses;

	run("ip link del v0");
	make_veth();
	wait_for_link();
	assert_int_equal(info.n_losses, n + 1);
}

static void keeps_a_device_that_gets_another_name(void **state)
{
	unsigned n = info.n_losses;

	run("ip link set v0 down && ip link set v0 name v2 && ip link set v2 up");
	wait_for_link();
	run("ip link set v2 down && ip link set v2 name v0 && ip link set v0 up");
	wait_for_link();
	assert_int_equal(info.n_losses, n);
}

static void sets_the_new_device_as_the_port_was_set(void **state)
{
	static const struct wire_mac mac = {{2, 7, 7, 7, 7, 7}};
	struct error error;

	assert_int_equal(port_set_mac(ports, VETH_PORT, &mac, &error), 0);
	delete_veth();
	assert_int_equal(port_set_mtu(ports, VETH_PORT, 1400, &error), 0);
	assert_true(port_set_mtu(ports, VETH_PORT, 9000, &error) < 0);
	assert_int_equal(port_set_promiscuous(ports, VETH_PORT, true, &error), 0);
	make_veth();
	wait_for_link();
	assert_true(wire_mac_equal(&info.mac, &mac));
	assert_memory_equal(state_of(VETH_PORT)->mac, mac.bytes, sizeof(mac.bytes));
	assert_int_equal(info.mtu, 1400);
	run("ip link show v0 | grep -q 02:07:07:07:07:07");
	run("ip link show v0 | grep -q PROMISC");
	assert_int_equal(port_set_promiscuous(ports, VETH_PORT, false, &error), 0);
	assert_int_equal(port_set_mtu(ports, VETH_PORT, 1500, &error), 0);
}

static void stays_down_if_it_was_set_down_while_the_device_was_gone(void **state)
{
	struct error error;

	delete_veth();
	assert_int_equal(port_set_admin(ports, VETH_PORT, false, &error), 0);
	make_veth();
	while (!port_has_carrier(ports, VETH_PORT))
		poll_ports();
	assert_false(port_is_up(state_of(VETH_PORT)));
	assert_int_equal(port_set_admin(ports, VETH_PORT, true, &error), 0);
	assert_true(port_is_up(state_of(VETH_PORT)));
}

// Must be before a test that sets the address.
static void a_reset_brings_the_devices_own_mac_address(void **state)
{
	static const struct wire_mac mac = {{2, 9, 9, 9, 9, 9}};
	unsigned n = info.n_losses, device = queue_of(VETH_PORT)->device;

	asker.has_mac = true;
	memcpy(asker.mac.addr_bytes, mac.bytes, sizeof(mac.bytes));
	has_passed = false;
	ask_for_reset();
	poll_ports();
	assert_true(port_is_closed(queue_of(VETH_PORT)));
	assert_false(port_is_up(state_of(VETH_PORT)));
	assert_int_equal(asker.n_resets, 0);
	assert_true(info.device_present);
	has_passed = true;
	wait_for_link();
	assert_false(port_is_closed(queue_of(VETH_PORT)));
	assert_int_equal(queue_of(VETH_PORT)->device, device);
	assert_int_equal(asker.n_resets, 1);
	assert_int_equal(info.n_resets, 1);
	assert_int_equal(info.n_own_macs, 1);
	assert_int_equal(info.n_losses, n);
	assert_true(wire_mac_equal(&info.mac, &mac));
	assert_memory_equal(state_of(VETH_PORT)->mac, mac.bytes, sizeof(mac.bytes));
	asker.has_mac = false;
}

static void a_reset_leaves_the_mac_address_that_was_set(void **state)
{
	static const struct wire_mac mac = {{2, 7, 7, 7, 7, 8}};
	struct error error;
	unsigned n = info.n_own_macs;

	assert_int_equal(port_set_mac(ports, VETH_PORT, &mac, &error), 0);
	assert_int_equal(port_set_mtu(ports, VETH_PORT, 1300, &error), 0);
	ask_for_reset();
	poll_ports();
	wait_for_link();
	assert_true(wire_mac_equal(&info.mac, &mac));
	assert_int_equal(info.n_own_macs, n);
	assert_int_equal(info.mtu, 1300);
	assert_int_equal(port_set_mtu(ports, VETH_PORT, 1500, &error), 0);
}

static void loses_no_buffers_and_no_files(void **state)
{
	char command[64];
	struct port_memory before, after;

	port_memory(ports, &before);
	snprintf(command, sizeof(command), "exit $(ls /proc/%d/fd | wc -l)", getpid());
	int n_files = system(command);

	for (unsigned i = 0; i < 4; i++) {
		delete_veth();
		make_veth();
		wait_for_link();
		ask_for_reset();
		poll_ports();
		wait_for_link();
	}
	port_memory(ports, &after);
	assert_int_equal(after.n_mbufs_free, before.n_mbufs_free);
	assert_int_equal(system(command), n_files);
}

// Otherwise a device that returns receives frames of other interfaces.
static void receives_nothing_before_its_sockets_are_bound(void **state)
{
	struct sockaddr_ll address = {.sll_protocol = 1};
	socklen_t n = sizeof(address);
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

	assert_true(fd >= 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
	assert_int_equal(address.sll_protocol, 0);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(closes_a_device_that_vanished_after_a_grace_period),
		TEST(leaves_other_ports_alone),
		TEST(counts_and_reports_it),
		TEST(notices_a_device_that_was_made_again_in_the_meantime),
		TEST(keeps_a_device_that_gets_another_name),
		TEST(a_reset_brings_the_devices_own_mac_address),
		TEST(a_reset_leaves_the_mac_address_that_was_set),
		TEST(sets_the_new_device_as_the_port_was_set),
		TEST(stays_down_if_it_was_set_down_while_the_device_was_gone),
		TEST(loses_no_buffers_and_no_files),
		TEST(receives_nothing_before_its_sockets_are_bound),
	};

	return cmocka_run_group_tests(tests, open_ports, close_ports);
}
