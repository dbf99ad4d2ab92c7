// Which transmit queue a worker uses while the peer of a vhost-user port receives from some only.
#include "port/vhost.h"

#include "base/bits.h"

#include <rte_mbuf.h>
#include <rte_net.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	unsigned worker, n;
	uint64_t live;
	uint16_t queue;
} rows[] = {
	{0, 1, 1, 0}, {3, 1, 1, 0}, {2, 4, 15, 2}, {5, 4, 15, 1}, // all: its own
	{1, 4, 1, 0}, {3, 4, 3, 1}, {2, 4, 3, 0}, {2, 4, 10, 1},  // some: by modulo
	{0, 4, 8, 3}, {7, 4, 8, 3}, {63, 64, 1ull << 62, 62}, {63, 64, UINT64_MAX, 63},
	{2, 4, 0, 2}, // none: nothing is sent anyway
};

static void workers_send_on_queues_that_the_peer_receives_from(void **state)
{
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(vhost_choose_queue(rows[i].worker, rows[i].n, rows[i].live),
			rows[i].queue);
}

static void a_device_waits_for_its_peer(void **state)
{
	const struct vhost_device made = {.path = "/run/a.sock", .serves = true, .n_queues = 2};
	struct vhost *vhost = vhost_make(&made);
	struct port_vhost read;

	assert_non_null(vhost);
	vhost_poll(vhost, "a");
	vhost_read(vhost, &read);
	assert_string_equal(read.socket, "/run/a.sock");
	assert_int_equal(read.state, PORT_VHOST_WAITING);
	assert_true(read.is_server);
	assert_int_equal(read.n_queues, 2);
	assert_null(read.remark);
	assert_false(vhost_is_live(vhost));
	vhost_free(vhost);
	vhost_free(NULL);
}

// Bytes of a frame, of which those behind `n` are elsewhere, in a buffer that has `room` left.
static uint32_t type_of(const uint8_t *frame, uint16_t n, uint16_t room,
	struct rte_net_hdr_lens *lengths)
{
	struct rte_mbuf m = {.buf_addr = (void *)(uintptr_t)frame,
		.buf_len = n + room,
		.nb_segs = 1,
		.data_len = n,
		.pkt_len = n};

	memset(lengths, 0, sizeof(*lengths));
	return rte_net_get_ptype(&m, lengths, RTE_PTYPE_ALL_MASK) & RTE_PTYPE_L4_MASK;
}

// GRE in IPv4, TCP in IPv4: the library finishes the checksum of the first, unless it might write
// beyond the buffer.
static void full_buffers_are_left_to_us(void **state)
{
	uint8_t frame[64] = {[12] = 8, [14] = 0x45, [17] = 50, [23] = 47, [46] = 0x50};
	struct rte_net_hdr_lens lengths;

	assert_int_equal(type_of(frame, sizeof(frame), 1, &lengths), 0);
	assert_int_equal(type_of(frame, sizeof(frame), 0, &lengths), RTE_PTYPE_L4_SCTP);
	assert_int_equal(lengths.l3_len, UINT16_MAX);
	frame[23] = 6;
	assert_int_equal(type_of(frame, sizeof(frame), 1, &lengths), RTE_PTYPE_L4_TCP);
	assert_int_equal(lengths.l3_len, 20);
	assert_int_equal(type_of(frame, sizeof(frame), 0, &lengths), RTE_PTYPE_L4_TCP);
	assert_int_equal(lengths.l3_len, UINT16_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_send_on_queues_that_the_peer_receives_from),
		cmocka_unit_test(full_buffers_are_left_to_us),
		cmocka_unit_test(a_device_waits_for_its_peer),
	};

	return cmocka_run_group_tests_name("vhost", tests, NULL, NULL);
}
