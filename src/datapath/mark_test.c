// DSCP of packets whose flow marks them.
#include "datapath/flows.h"

#include "wire/checksum.h"
#include "wire/headers.h"

enum { N_DSCP = 64, ANY_CHECKSUM = 500, CLASS_AT = WIRE_ETHER_BYTES };

static const char *const dsts[] = {"10.1.2.3", "2001:db8:1::3"};

static struct flow_action marking(uint8_t dscp)
{
	struct flow_action action = flows_by_route();

	action.dscp = dscp;
	return action;
}

// The traffic class of an untagged frame is split over two bytes in IPv6.
static void set_class(struct bytes *frame, uint8_t class)
{
	uint8_t *at = frame->at + CLASS_AT;

	if (at[0] >> 4 == 4) {
		at[1] = class;
		frame_mend(frame);
	} else {
		at[0] = (at[0] & 0xf0) | class >> 4;
		at[1] = (at[1] & 0x0f) | (uint8_t)(class << 4);
	}
}

// Each mark on each value of the byte, in IPv4 and in IPv6.
static void only_the_dscp_changes(void **state)
{
	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned dscp = v % 5; dscp < N_DSCP; dscp += 5)
			for (unsigned f = 0; f < ARRAY_LEN(dsts); f++) {
				const struct flow_tuple tuple = flows_tuple(dsts[f]);
				struct bytes left[256];

				flows_reset(v);
				flows_set(&tuple, marking(dscp));
				for (unsigned class = 0; class < 256; class ++) {
					struct bytes frame = frame_to(0, dsts[f]);

					set_class(&frame, class);
					fake_receive(0, &frame);
					set_class(&frame, dscp << 2 | (class & 3));
					left[class] = frame_forwarded(&frame, PLAIN_OUT);
				}
				fake_run();
				assert_int_equal(fake.device[1].n_sent, 256);
				for (unsigned class = 0; class < 256; class ++)
					expect_bytes(fake.device[1].sent[class], &left[class]);
			}
}

// Whatever the checksum was, also 0 (RFC 1624, 3 and 5).
static void checksums_stay_right(void **state)
{
	const struct flow_tuple tuple = flows_tuple("10.1.2.3");

	flows_reset(1);
	flows_set(&tuple, marking(46));
	for (unsigned id = 0; id < ANY_CHECKSUM; id++) {
		struct bytes frame = frame_to(0, "10.1.2.3");
		struct wire_ip4 *ip = (void *)(frame.at + WIRE_ETHER_BYTES);

		ip->id_be = htobe16(id * 131);
		frame_mend(&frame);
		if (id == 0) // so that the checksum is 0
			ip->id_be = ip->checksum_be;
		frame_mend(&frame);
		fake_receive(0, &frame);
	}
	fake_run();
	assert_int_equal(fake.device[1].n_sent, ANY_CHECKSUM);
	for (unsigned i = 0; i < ANY_CHECKSUM; i++) {
		const struct wire_ip4 *ip = rte_pktmbuf_mtod_offset(fake.device[1].sent[i],
			const void *, WIRE_ETHER_BYTES);

		assert_int_equal(ip->dscp_ecn, 46 << 2);
		assert_int_equal(ip->checksum_be, wire_ip4_checksum_be(ip));
	}
}

// Linux marks nothing: it gets packets as they were received.
static void punted_packets_are_not_marked(void **state)
{
	enum { TTL_AT = 22 };
	struct bytes frame = frame_to(0, "10.1.2.3");
	const struct flow_tuple tuple = flows_tuple("10.1.2.3");

	frame.at[TTL_AT] = 1;
	frame_mend(&frame);
	for (unsigned v = 0; v < FLOWS_CASES; v++) {
		flows_reset(v);
		flows_set(&tuple, marking(10));
		fake_receive(0, &frame);
		fake_run();
		assert_int_equal(flows_stopped(VERDICT_TTL_EXPIRED), 1);
		expect_bytes(fake_punted(CLASS_TTL), &frame);
	}
}

// With tags in, tags out, and among packets that are not marked.
static void packets_with_tags_are_marked(void **state)
{
	const struct flow_tuple tuple = flows_tuple("10.20.2.3");

	for (unsigned v = 0; v < FLOWS_CASES; v++) {
		struct bytes left[BURST_MAX];

		flows_reset(v);
		flows_set(&tuple, marking(63));
		for (unsigned i = 0; i < BURST_MAX; i++) {
			struct bytes plain = frame_to(0, i % 3 ? "10.20.2.3" : "10.20.2.4");
			struct bytes frame = plain;

			frame_tag_for(&frame, i % 2 ? QINQ_IN : TAGGED_IN);
			fake_receive(0, &frame);
			if (i % 3)
				set_class(&plain, 63 << 2);
			left[i] = frame_forwarded(&plain, TAGGED_OUT);
		}
		fake_run();
		assert_int_equal(fake.device[1].n_sent, BURST_MAX);
		for (unsigned i = 0; i < BURST_MAX; i++)
			expect_bytes(fake.device[1].sent[i], &left[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_dscp_changes),
		cmocka_unit_test(checksums_stay_right),
		cmocka_unit_test(punted_packets_are_not_marked),
		cmocka_unit_test(packets_with_tags_are_marked),
	};

	return cmocka_run_group_tests(tests, flows_open, flows_close);
}
