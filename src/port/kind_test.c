// What the text of a device reveals.
#include "port/kind.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct row {
	const char *device;
	enum kind_bus bus;
	const char *name, *netdev, *socket;
	uint16_t n_rx, n_rx_most;
	enum kind_tx tx;
	bool has_link;
};

static const struct row rows[] = {
	{"", KIND_UNKNOWN, "", "", "", 0, 0, 0, false},
	{"eth0", KIND_UNKNOWN, "eth0", "", "", 0, 0, 0, true},
	{"0000:03:00.1", KIND_PCI, "0000:03:00.1", "", "", 0, 0, 0, true},
	{"3B:00.0,rep=1", KIND_PCI, "0000:3b:00.0", "", "", 0, 0, 0, true},
	{"0000:03:00.9", KIND_UNKNOWN, "0000:03:00.9", "", "", 0, 0, 0, true},
	{"0000:03:00.1x", KIND_UNKNOWN, "0000:03:00.1x", "", "", 0, 0, 0, true},
	{"auxiliary:mlx5_core.sf.2", KIND_ALLOWED, "auxiliary:mlx5_core.sf.2", "", "", 0, 0, 0,
		true},
	{"net_null0,size=64", KIND_VIRTUAL, "net_null0", "", "", 1, 0, KIND_TX_PER_WORKER, false},
	{"net_ring0", KIND_VIRTUAL, "net_ring0", "", "", 1, 1, KIND_TX_PER_WORKER, false},
	{"net_pcap0,rx_pcap=a,rx_pcap=b,tx_pcap=c", KIND_VIRTUAL, "net_pcap0", "", "", 2, 2,
		KIND_TX_PER_WORKER, false},
	{"net_pcap0,iface=v0", KIND_VIRTUAL, "net_pcap0", "", "", 1, 1, KIND_TX_PER_WORKER, false},
	{"net_memif0,socket=/run/m.sock", KIND_VIRTUAL, "net_memif0", "", "", 1, 0, KIND_TX_LIKE_RX,
		true},
	{"net_memif0,socket=/run/m.sock,socket-abstract=no", KIND_VIRTUAL, "net_memif0", "",
		"/run/m.sock", 1, 0, KIND_TX_LIKE_RX, true},
	{"net_vhost0,iface=/run/v.sock,queues=4", KIND_VIRTUAL, "net_vhost0", "", "/run/v.sock", 4,
		4, KIND_TX_LIKE_RX, true},
	{"net_virtio_user0,path=/run/v.sock,queues=2", KIND_VIRTUAL, "net_virtio_user0", "",
		"/run/v.sock", 2, 2, KIND_TX_LIKE_RX, true},
	{"net_af_packet0,iface=veth0,qpairs=2", KIND_VIRTUAL, "net_af_packet0", "veth0", "", 2, 2,
		KIND_TX_LIKE_RX, false},
	{"net_af_xdp0,iface=veth0,queue_count=3", KIND_VIRTUAL, "net_af_xdp0", "veth0", "", 3, 3,
		KIND_TX_LIKE_RX, false},
	{"net_af_xdp0,iface=veth0,queue_count=0", KIND_VIRTUAL, "net_af_xdp0", "veth0", "", 1, 1,
		KIND_TX_LIKE_RX, false},
	{"net_tap0,iface=t0", KIND_VIRTUAL, "net_tap0", "", "", 1, 0, KIND_TX_LIKE_RX, true},
	{"net_of_a_plugin0", KIND_VIRTUAL, "net_of_a_plugin0", "", "", 1, 0, KIND_TX_LIKE_RX,
		false},
};

static void reads_each_kind_of_device(void **state)
{
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		struct kind kind;

		kind_read(row->device, &kind);
		if (kind.bus != row->bus)
			fail_msg("%s: bus %d", row->device, kind.bus);
		assert_string_equal(kind.name, row->name);
		assert_string_equal(kind.netdev, row->netdev);
		assert_string_equal(kind.socket, row->socket);
		assert_int_equal(kind.n_rx, row->n_rx);
		assert_int_equal(kind.n_rx_most, row->n_rx_most);
		assert_int_equal(kind.tx, row->tx);
		if (kind.has_link != row->has_link)
			fail_msg("%s: has_link %d", row->device, kind.has_link);
	}
}

static void knows_whose_refusal_means_a_full_ring_and_how_much_it_holds(void **state)
{
	static const struct {
		const char *device;
		bool has_backpressure;
		uint32_t ring_slots;
		bool is_zero_copy;
	} wires[] = {
		{"net_memif0,role=client,rsize=14,zero-copy=yes", true, 16384, true},
		{"net_memif0,rsize=14,zero-copy=yes,role=slave", true, 16384, true},
		{"net_memif0,role=server,rsize=14,zero-copy=yes", true, 16384, false},
		{"net_memif0,rsize=14,zero-copy=yes", true, 16384, false},
		{"net_memif0,rsize=14,zero-copy=no", true, 16384, false},
		{"net_memif0", true, 1024, false},
		{"net_memif0,rsize=40", true, 16384, false},
		{"net_ring0", true, 0, false},
		{"net_vhost0,iface=/run/v.sock", true, 0, false},
		{"net_virtio_user0,path=/run/v.sock", true, 0, false},
		{"net_null0", true, 0, false},
		{"net_af_packet0,iface=veth0", false, 512, false},
		{"net_af_packet0,iface=veth0,framecnt=4096", false, 4096, false},
		{"net_af_xdp0,iface=veth0", false, 0, false},
		{"0000:03:00.1", false, 0, false},
	};

	for (unsigned i = 0; i < ARRAY_LEN(wires); i++) {
		struct kind kind;

		kind_read(wires[i].device, &kind);
		if (kind.has_backpressure != wires[i].has_backpressure ||
			kind.ring_slots != wires[i].ring_slots ||
			kind.is_zero_copy != wires[i].is_zero_copy)
			fail_msg("%s: %d, %u", wires[i].device, kind.has_backpressure,
				kind.ring_slots);
	}
}

static void guests_leave_frames_open_where_the_device_is_told_so(void **state)
{
	static const struct {
		const char *device;
		bool has_offloads;
	} devices[] = {
		{"net_vhost0,iface=/run/v.sock", false},
		{"net_vhost0,iface=/run/v.sock,tso=0", false},
		{"net_vhost0,iface=/run/v.sock,client=1,tso=1", true},
		{"net_vhost0,iface=/run/v.sock,tso=1,legacy-ol-flags=1", false},
		{"net_virtio_user0,path=/run/v.sock,tso=1", false},
	};

	for (unsigned i = 0; i < ARRAY_LEN(devices); i++) {
		struct kind kind;

		kind_read(devices[i].device, &kind);
		assert_int_equal(kind.has_offloads, devices[i].has_offloads);
	}
}

static void takes_whole_keys_only(void **state)
{
	char value[16];

	assert_true(kind_argument("net_x,size=64,no=1", "size", value, sizeof(value)));
	assert_string_equal(value, "64");
	assert_false(kind_argument("net_x,bigsize=64", "size", value, sizeof(value)));
	assert_false(kind_argument("net_x,sizes=64", "size", value, sizeof(value)));
	assert_false(kind_argument("size=64", "size", value, sizeof(value)));
}

static void survives_a_name_that_is_too_long(void **state)
{
	char device[256];
	struct kind kind;

	memset(device, 'n', sizeof(device) - 1);
	device[255] = 0;
	kind_read(device, &kind);
	assert_int_equal(kind.bus, KIND_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_each_kind_of_device),
		cmocka_unit_test(knows_whose_refusal_means_a_full_ring_and_how_much_it_holds),
		cmocka_unit_test(guests_leave_frames_open_where_the_device_is_told_so),
		cmocka_unit_test(takes_whole_keys_only),
		cmocka_unit_test(survives_a_name_that_is_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
