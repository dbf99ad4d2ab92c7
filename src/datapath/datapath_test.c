// Pipeline steps on mbufs made by the test, without devices: both parsers against wire_check, each
// verdict of check, rewritten bytes against a freshly computed checksum, flow distribution over
// groups.
#include "datapath/dice.h"
#include "datapath/variant.h"

#include "wire/build.h"
#include "wire/check.h"
#include "wire/checksum.h"
#include "wire/headers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 2048, ROUNDS = 20000 };

struct packet {
	struct rte_mbuf mbuf;
	uint8_t room[ROOM] LINE_ALIGNED;
};

static struct packet packets[BURST_MAX];
static struct rte_mbuf *mbufs[BURST_MAX];
static struct worker worker;
static struct stats_worker stat;
static struct port_state states[4];
static const struct port_queue queue = {.port = 0};
static struct fib_hop_entry hops[8];
static uint16_t frame_max4[8] = {0, 1514, 1514, 1514, 1514};
static struct fib_plain_hops none_plain;
static uint32_t buckets[2 * FIB_GROUP_BUCKETS];
static struct fib_sources own;
static const uint8_t layer3_hash;
static const struct fib_view view = {.hops = hops,
	.plain = &none_plain,
	.frame_max4 = frame_max4,
	.bucket = buckets,
	.sources = &own,
	.layer3_hash = &layer3_hash};
static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1};

static int set_up(void **state)
{
	memcpy(states[0].mac, our_mac, sizeof(our_mac));
	worker = (struct worker){.states = states,
		.stat = &stat,
		.poll = worker.polls,
		.poisons = true,
		.variant = &datapath_scalar};
	memset(none_plain.port, FIB_NOT_PLAIN, sizeof(none_plain.port));
	for (unsigned i = 0; i < FIB_SOURCE_WORDS; i++)
		own.word[i] = dice(UINT32_MAX) & dice(UINT32_MAX);
	return 0;
}

static void place(unsigned i, const struct wire_recipe *recipe, uint64_t marks)
{
	struct rte_mbuf *m = &packets[i].mbuf;

	*m = (struct rte_mbuf){.buf_addr = packets[i].room,
		.data_off = 128,
		.nb_segs = 1,
		.ol_flags = marks};
	assert_int_equal(wire_build(recipe, packets[i].room + 128, ROOM - 128), 0);
	m->data_len = m->pkt_len = recipe->frame_bytes;
	mbufs[i] = m;
}

static struct wire_recipe to_us(uint8_t family)
{
	struct wire_recipe recipe = wire_recipe(family);

	memcpy(recipe.dst_mac.bytes, our_mac, sizeof(our_mac));
	return recipe;
}

// A valid frame, possibly with one random bit or byte of its headers or mbuf fields changed.
static void place_random(unsigned i, unsigned n_of_4)
{
	static const uint64_t marks[] = {RTE_MBUF_F_RX_IP_CKSUM_GOOD, RTE_MBUF_F_RX_IP_CKSUM_GOOD,
		0, RTE_MBUF_F_RX_IP_CKSUM_BAD, RTE_MBUF_F_RX_IP_CKSUM_NONE};
	struct wire_recipe recipe = to_us(dice(16) < n_of_4 ? 4 : 6);

	recipe.src.bytes[recipe.src.family == 4 ? 3 : 15] = 1 + dice(255);
	recipe.frame_bytes += dice(40);
	recipe.padding_bytes =
		dice(4) ? 0
			: dice(recipe.frame_bytes - wire_recipe(recipe.src.family).frame_bytes + 1);
	place(i, &recipe, marks[dice(ARRAY_LEN(marks))]);
	uint8_t *frame = packets[i].room + 128;
	struct rte_mbuf *m = &packets[i].mbuf;
	switch (dice(40)) {
	case 0:
		frame[dice(64)] ^= 1 << dice(8);
		break;
	case 1:
		frame[dice(40)] = dice(256);
		break;
	case 2:
		m->data_len = m->pkt_len = dice(70);
		break;
	case 3:
		m->pkt_len += dice(2) ? dice(100000) : dice(2) << 16;
		break;
	}
	if (m->data_len != m->pkt_len)
		m->nb_segs = 2;
}

static const uint8_t verdict_of[N_WIRE_FAULTS] = {
	[WIRE_RUNT] = VERDICT_RUNT,
	[WIRE_MULTI_SEGMENT] = VERDICT_MULTI_SEGMENT,
	[WIRE_ARP] = VERDICT_ARP,
	[WIRE_VLAN] = VERDICT_VLAN_UNKNOWN,
	[WIRE_ETHERTYPE] = VERDICT_ETHERTYPE_UNKNOWN,
	[WIRE_IP4_VERSION] = VERDICT_IP4_VERSION,
	[WIRE_IP4_HEADER_LENGTH] = VERDICT_IP4_HEADER_LENGTH,
	[WIRE_IP4_LENGTH] = VERDICT_IP4_LENGTH,
	[WIRE_IP4_CHECKSUM] = VERDICT_IP4_CHECKSUM,
	[WIRE_IP4_OPTIONS] = VERDICT_IP4_OPTIONS,
	[WIRE_IP6_VERSION] = VERDICT_IP6_VERSION,
	[WIRE_IP6_LENGTH] = VERDICT_IP6_LENGTH,
	[WIRE_IP6_HOP_BY_HOP] = VERDICT_IP6_HOP_BY_HOP,
	[WIRE_MARTIAN_SOURCE] = VERDICT_MARTIAN_SOURCE,
	[WIRE_LINK_LOCAL_SOURCE] = VERDICT_LINK_LOCAL_SOURCE,
};

// The expected verdict of a frame, computed in the simplest way.
static enum verdict expected_verdict(const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct wire_check_rules rules = {
		.verify_ip4_checksum =
			(m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) != RTE_MBUF_F_RX_IP_CKSUM_GOOD,
	};
	enum wire_fault fault = wire_check(frame, m->data_len, m->pkt_len, &rules);

	if (fault == WIRE_RUNT || fault == WIRE_MULTI_SEGMENT || fault == WIRE_ARP)
		return verdict_of[fault];
	if (frame[0] & 1)
		return VERDICT_MAC_GROUP;
	return memcmp(frame, our_mac, 6) ? VERDICT_MAC_NOT_OURS : verdict_of[fault];
}

static void expect_addresses4(const struct burst *b, unsigned at, const uint8_t *frame)
{
	bool may_be_ours = fib_source_may_be_ours(&own, rte_be_to_cpu_32(load32(frame + 26)));

	assert_int_equal(b->dst4[at], rte_be_to_cpu_32(load32(frame + 30)));
	assert_int_equal(b->own_source_mask >> at & 1, may_be_ours);
}

// Without what follows the packet, but with padding to the minimum length.
static unsigned length_of(const uint8_t *frame, bool is_ip4, unsigned n)
{
	unsigned end =
		is_ip4 ? 14u + frame[16] * 256 + frame[17] : 54u + frame[18] * 256 + frame[19];

	return MIN_OF(n, MAX_OF(end, 60));
}

static void expect_taken(const struct burst *b, unsigned at, const struct rte_mbuf *m, bool is_ip4)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

	assert_true(at < b->n);
	assert_ptr_equal(b->mbuf[at], m);
	assert_ptr_equal(b->frame[at], frame);
	unsigned length = length_of(frame, is_ip4, m->pkt_len);
	assert_int_equal(b->length[at], MIN_OF(length, UINT16_MAX));
	assert_true(b->has & BURST_TRAILERS || length == m->pkt_len);
	assert_int_equal(b->ttl[at], frame[is_ip4 ? 22 : 21]);
	if (is_ip4)
		expect_addresses4(b, at, frame);
	else
		assert_int_equal(b->dst6[at].low, rte_be_to_cpu_64(load64(frame + 46)));
}

// Every frame is in its place, in order of arrival.
static void expect_sorted(unsigned n, const uint64_t before[N_VERDICTS])
{
	uint64_t want[N_VERDICTS];
	unsigned n4 = 0, n6 = 0;

	memcpy(want, before, sizeof(want));
	for (unsigned i = 0; i < n; i++) {
		enum verdict verdict = expected_verdict(mbufs[i]);
		bool is_ip4 = rte_pktmbuf_mtod(mbufs[i], const uint8_t *)[12] == 8;

		if (verdict != VERDICT_FORWARD)
			want[verdict]++;
		else if (is_ip4)
			expect_taken(&worker.poll->ip4, n4++, mbufs[i], true);
		else
			expect_taken(&worker.poll->ip6, n6++, mbufs[i], false);
	}
	assert_int_equal(worker.poll->ip4.n, n4);
	assert_false(n4 < BURST_MAX && worker.poll->ip4.own_source_mask >> n4);
	assert_int_equal(worker.poll->ip6.n, n6);
	assert_int_equal(worker.n_dropped, n - n4 - n6);
	assert_memory_equal(stat.verdict, want, sizeof(want));
}

static void parses_like_wire_check(const struct datapath_variant *variant)
{
	struct received r = {.from = &queue, .mbuf = mbufs, .n = 0};

	worker.variant = variant;
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t before[N_VERDICTS];

		r.n = 1 + dice(BURST_MAX);
		for (unsigned i = 0; i < r.n; i++)
			place_random(i, round % 17);
		memcpy(before, stat.verdict, sizeof(before));
		worker.n_dropped = 0;
		datapath_parse(&worker, &view, &r);
		expect_sorted(r.n, before);
	}
}

static void the_scalar_parser_says_what_wire_check_says(void **state)
{
	parses_like_wire_check(&datapath_scalar);
}

static void the_parser_of_this_cpu_says_what_wire_check_says(void **state)
{
	parses_like_wire_check(datapath_choose_variant());
}

static void pass_martians_lets_martian_sources_through(void **state)
{
	struct wire_recipe recipe = to_us(4);
	struct received r = {.from = &queue, .mbuf = mbufs, .n = 1};

	wire_addr_parse("127.0.0.1", &recipe.src);
	place(0, &recipe, 0);
	states[0].pass_martians = true;
	worker.n_dropped = 0;
	worker.variant = datapath_choose_variant();
	datapath_parse(&worker, &view, &r);
	states[0].pass_martians = false;
	assert_int_equal(worker.poll->ip4.n, 1);
}

static void nothing_is_left_of_an_earlier_burst(void **state)
{
	struct wire_recipe recipe = to_us(4);
	struct received r = {.from = &queue, .mbuf = mbufs, .n = 1};
	struct burst *b = &worker.poll->ip4;

	place(0, &recipe, 0);
	worker.variant = datapath_choose_variant();
	for (unsigned i = 0; i < BURST_MAX; i++) {
		b->mbuf[i] = mbufs[0];
		b->hop[i] = b->port[i] = b->vrf[i] = 1;
	}
	datapath_parse(&worker, &view, &r);
	assert_int_equal(b->n, 1);
	for (unsigned i = 0; i < BURST_MAX; i++) {
		assert_true(i == 0 || b->mbuf[i] != mbufs[0]);
		assert_true(i == 0 || b->vrf[i] != 1);
		assert_true(b->hop[i] != 1 && b->port[i] != 1);
	}
}

static struct burst *one_packet(uint32_t hop, uint8_t ttl, uint16_t length)
{
	struct burst *b = &worker.poll->ip4;
	struct wire_recipe recipe = to_us(4);

	recipe.ttl = ttl;
	recipe.frame_bytes = length;
	place(0, &recipe, 0);
	b->n = 1;
	b->is_ip6 = false;
	b->has = BURST_PACKETS;
	b->view = &view;
	b->mbuf[0] = mbufs[0];
	b->frame[0] = packets[0].room + 128;
	b->length[0] = length;
	b->ttl[0] = ttl;
	b->hop[0] = hop;
	worker.n_dropped = 0;
	return b;
}

static struct fib_hop_entry stopping(uint8_t verdict)
{
	return (struct fib_hop_entry){.verdict = verdict, .kind = FIB_HOP_STOP};
}

static void check_names_what_stops_a_packet(void **state)
{
	static const struct {
		uint32_t hop;
		uint16_t length;
		uint8_t ttl, verdict;
	} rows[] = {
		{1, 60, 64, VERDICT_FORWARD},
		{1, 60, 2, VERDICT_FORWARD},
		{1, 60, 1, VERDICT_TTL_EXPIRED},
		{1, 60, 0, VERDICT_TTL_EXPIRED},
		{1, 1514, 64, VERDICT_FORWARD},
		{1, 1515, 64, VERDICT_MTU_EXCEEDED},
		{0, 60, 64, VERDICT_NO_ROUTE},
		{2, 60, 1, VERDICT_LOCAL}, // local: TTL does not matter
		{3, 60, 64, VERDICT_NEIGHBOUR_UNRESOLVED},
	};
	hops[0] = stopping(VERDICT_NO_ROUTE);
	hops[1] = (struct fib_hop_entry){.frame_max = 1514, .port = 2};
	hops[2] = stopping(VERDICT_LOCAL);
	hops[3] = stopping(VERDICT_NEIGHBOUR_UNRESOLVED);

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct burst *b = one_packet(rows[i].hop, rows[i].ttl, rows[i].length);
		uint64_t before = stat.verdict[rows[i].verdict], used = stat.hop[rows[i].hop];
		bool passes = rows[i].verdict == VERDICT_FORWARD;

		datapath_check(&worker, b);
		assert_int_equal(b->n, passes);
		assert_int_equal(stat.verdict[rows[i].verdict] - before, !passes);
		datapath_scalar.rewrite4(&stat, b);
		assert_int_equal(stat.hop[rows[i].hop] - used, passes);
	}
}

static void check_closes_gaps(const struct datapath_variant *variant)
{
	struct burst *b = &worker.poll->ip4;

	worker.variant = variant;
	worker.n_dropped = 0;
	one_packet(1, 64, 60);
	hops[4] = (struct fib_hop_entry){.frame_max = 1514, .port = 3};
	b->n = BURST_MAX;
	for (unsigned i = 0; i < BURST_MAX; i++) {
		b->mbuf[i] = &packets[i].mbuf;
		b->frame[i] = packets[i].room;
		b->ttl[i] = i % 3 ? 64 : 1;
		b->length[i] = 100 + i;
		b->hop[i] = i % 2 ? 1 : 4;
	}
	datapath_check(&worker, b);
	assert_int_equal(b->n, BURST_MAX - 22);
	assert_int_equal(worker.n_dropped, 22);
	for (unsigned i = 0, from = 0; i < b->n; i++, from++) {
		from += from % 3 == 0;
		assert_ptr_equal(b->mbuf[i], &packets[from].mbuf);
		assert_ptr_equal(b->frame[i], packets[from].room);
		assert_int_equal(b->length[i], 100 + from);
		assert_int_equal(b->hop[i], from % 2 ? 1 : 4);
		assert_int_equal(b->port[i], from % 2 ? 2 : 3);
	}
	assert_false(b->has_one_port);
	worker.n_dropped = 0;
}

static void check_closes_gaps_and_keeps_order(void **state)
{
	check_closes_gaps(&datapath_scalar);
	check_closes_gaps(datapath_choose_variant());
}

// Covers all header checksums before and after.
static void rewrite4_keeps_every_checksum_good(const struct datapath_variant *variant)
{
	uint8_t before[60];

	hops[1] = (struct fib_hop_entry){.macs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
		.frame_max = 1514};
	for (uint32_t id = 0; id <= UINT16_MAX; id++) {
		struct burst *b = one_packet(1, 2 + id % 254, 60);
		struct wire_ip4 *ip = (void *)(b->frame[0] + 14);
		uint64_t used = stat.hop[1];

		ip->id_be = id;
		ip->checksum_be = 0;
		ip->checksum_be = wire_ip4_checksum_be(ip);
		memcpy(before, b->frame[0], sizeof(before));
		b->has_one_hop = id & 1;
		variant->rewrite4(&stat, b);
		assert_int_equal(stat.hop[1] - used, 1);
		assert_true(wire_ip4_checksum_good(ip));
		memcpy(before, hops[1].macs, 12);
		before[22]--;
		memcpy(before + 24, &ip->checksum_be, 2);
		assert_memory_equal(b->frame[0], before, sizeof(before));
	}
}

static void rewrite6_changes_macs_and_hop_limit(const struct datapath_variant *variant)
{
	for (unsigned limit = 1; limit < 256; limit++) {
		struct wire_recipe recipe = to_us(6);
		struct burst *b = one_packet(1, 64, 60);
		uint8_t before[62];

		recipe.ttl = limit;
		place(0, &recipe, 0);
		memcpy(before, b->frame[0], sizeof(before));
		b->has_one_hop = limit & 1;
		variant->rewrite6(&stat, b);
		memcpy(before, hops[1].macs, 12);
		before[21]--;
		assert_memory_equal(b->frame[0], before, sizeof(before));
	}
}

static void rewriting_changes_nothing_but_what_it_should(void **state)
{
	const struct datapath_variant *const variants[] = {&datapath_scalar,
		datapath_choose_variant()};

	for (unsigned i = 0; i < ARRAY_LEN(variants); i++) {
		rewrite4_keeps_every_checksum_good(variants[i]);
		rewrite6_changes_macs_and_hop_limit(variants[i]);
	}
}

static uint32_t member_of(const struct wire_recipe *recipe, uint16_t fragment)
{
	struct burst *b = one_packet(5, 64, 60);

	place(0, recipe, 0);
	b->is_ip6 = recipe->src.family == 6;
	if (!b->is_ip6)
		((struct wire_ip4 *)(b->frame[0] + 14))->fragment_be = htobe16(fragment);
	b->length[0] = recipe->frame_bytes;
	assert_true(datapath_ecmp(b));
	return b->hop[0];
}

static void make_group(void)
{
	uint32_t first = FIB_GROUP_BUCKETS;

	hops[5] = (struct fib_hop_entry){.kind = FIB_HOP_GROUP};
	memcpy(hops[5].macs, &first, sizeof(first));
	for (unsigned i = 0; i < FIB_GROUP_BUCKETS; i++)
		buckets[first + i] = i < 512 ? 1 : i < 768 ? 2 : 4;
}

static void flows_spread_by_weight(uint8_t family)
{
	struct wire_recipe recipe = to_us(family);
	unsigned n[8] = {0}, n_flows = 40000;

	make_group();
	for (unsigned i = 0; i < n_flows; i++) {
		recipe.src_port = i;
		recipe.dst.bytes[3] = i >> 8;
		uint32_t member = member_of(&recipe, 0);
		assert_int_equal(member_of(&recipe, 0), member);
		n[member]++;
	}
	assert_in_range(n[1], n_flows / 2 - 600, n_flows / 2 + 600);
	assert_in_range(n[2], n_flows / 4 - 600, n_flows / 4 + 600);
	assert_in_range(n[4], n_flows / 4 - 600, n_flows / 4 + 600);
}

static void flows_of_both_families_spread_by_weight_and_stay(void **state)
{
	flows_spread_by_weight(4);
	flows_spread_by_weight(6);
}

static void fragments_of_a_packet_stay_together(void **state)
{
	struct wire_recipe recipe = to_us(4);

	make_group();
	for (unsigned i = 0; i < 1000; i++) {
		recipe.dst.bytes[3] = i;
		recipe.src_port = dice(65536);
		uint32_t first = member_of(&recipe, WIRE_IP4_MORE_FRAGMENTS);
		recipe.src_port = dice(65536); // in later fragments these bytes are payload
		assert_int_equal(member_of(&recipe, 185), first);
	}
}

// The first segment ends after a tag and the IPv4 header.
static void what_lies_behind_a_segment_chooses_no_member(void **state)
{
	struct wire_recipe recipe = to_us(4);
	uint32_t member = 0;

	make_group();
	for (unsigned i = 0; i < 100; i++) {
		struct burst *b = one_packet(5, 64, 60);

		recipe.src_port = i;
		place(0, &recipe, 0);
		packets[0].mbuf.data_off -= WIRE_VLAN_BYTES;
		packets[0].mbuf.data_len = WIRE_VLAN_BYTES + WIRE_ETHER_BYTES + WIRE_IP4_BYTES;
		b->has |= BURST_SEGMENTS;
		assert_true(datapath_ecmp(b));
		assert_true(i == 0 || b->hop[0] == member);
		member = b->hop[0];
	}
}

static void a_route_to_a_group_passes_check_as_its_member(void **state)
{
	make_group();
	hops[1] = hops[2] = hops[4] = (struct fib_hop_entry){.frame_max = 1514, .port = 3};
	struct burst *b = one_packet(5, 64, 60);

	datapath_check(&worker, b);
	assert_int_equal(b->n, 1);
	assert_int_not_equal(b->hop[0], 5);
	assert_int_equal(b->port[0], 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_scalar_parser_says_what_wire_check_says),
		cmocka_unit_test(the_parser_of_this_cpu_says_what_wire_check_says),
		cmocka_unit_test(pass_martians_lets_martian_sources_through),
		cmocka_unit_test(nothing_is_left_of_an_earlier_burst),
		cmocka_unit_test(check_names_what_stops_a_packet),
		cmocka_unit_test(check_closes_gaps_and_keeps_order),
		cmocka_unit_test(rewriting_changes_nothing_but_what_it_should),
		cmocka_unit_test(flows_of_both_families_spread_by_weight_and_stay),
		cmocka_unit_test(fragments_of_a_packet_stay_together),
		cmocka_unit_test(what_lies_behind_a_segment_chooses_no_member),
		cmocka_unit_test(a_route_to_a_group_passes_check_as_its_member),
	};
	return cmocka_run_group_tests(tests, set_up, NULL);
}
