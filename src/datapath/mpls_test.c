// Frames with MPLS labels: what leaves, byte for byte, and what is stopped.
#include "datapath/dice.h"
#include "datapath/vlans.h"
#include "wire/headers.h"

enum {
	SWAP = 100, // to port 1, 10.1.0.2
	SWAP_PUSH,  // 301, 302 and 303 in its place
	PHP,
	PHP_PIPE,
	PHP_TAGGED, // to TAGGED_OUT
	POP,        // looked up
	POP_PIPE,
	POP_LOOPS,
	POP_RED,
	POP_LAST, // only as the last one
	LINUX,
	UNRESOLVED,
	SPREAD, // over PLAIN_OUT and interface 3, label 310 and 311
	BLACK,
	N_KNOWN,
	UNKNOWN = 999,
	MAX_STACK = 6,
	ROUNDS = 4000,
	TTL = 64,
};

struct entry {
	uint32_t label;
	uint8_t tc, ttl;
};

static struct fib_hop via(const char *addr, uint16_t iface)
{
	struct fib_hop hop = {.kind = FIB_VIA, .iface = iface};

	assert_int_equal(wire_addr_parse(addr, &hop.via), 0);
	return hop;
}

static void set(const struct fib_label *label)
{
	assert_int_equal(fib_label_set(fake.fib, label, NULL), 0);
}

static void lead(uint32_t label, const struct fib_hop *hop, bool is_pipe)
{
	set(&(struct fib_label){.label = label,
		.op = FIB_LABEL_FORWARD,
		.hop = *hop,
		.is_pipe = is_pipe});
}

static void look_up(uint32_t label, uint16_t vrf, bool is_pipe, bool loops)
{
	set(&(struct fib_label){.label = label,
		.op = FIB_LABEL_LOOKUP,
		.vrf = vrf,
		.is_pipe = is_pipe,
		.loops = loops});
}

static struct fib_hop pushing(struct fib_hop hop, unsigned n, uint32_t first)
{
	hop.n_labels = n;
	for (unsigned i = 0; i < n; i++)
		hop.label[i] = first + i;
	return hop;
}

static void set_labels(void)
{
	const struct fib_hop out = via("10.1.0.2", PLAIN_OUT);
	const struct fib_hop nowhere = via("10.1.0.99", PLAIN_OUT), other = via("10.3.0.2", 3);
	const struct fib_hop black = {.kind = FIB_BLACKHOLE, .iface = IFACE_NONE};
	const struct fib_member members[] = {{pushing(out, 1, 310), 1},
		{pushing(other, 1, 311), 1}};
	struct fib_hop hop = pushing(out, 1, 200);

	lead(SWAP, &hop, false);
	hop = pushing(out, 3, 301);
	lead(SWAP_PUSH, &hop, false);
	lead(PHP, &out, false);
	lead(PHP_PIPE, &out, true);
	hop = via("10.20.0.2", TAGGED_OUT);
	lead(PHP_TAGGED, &hop, false);
	look_up(POP, 0, false, false);
	look_up(POP_PIPE, 0, true, false);
	look_up(POP_LOOPS, 0, false, true);
	look_up(POP_RED, RED, false, false);
	set(&(struct fib_label){.label = POP_LAST, .op = FIB_LABEL_LOOKUP, .ends_stack = true});
	look_up(0, 0, false, false);
	look_up(2, 0, false, false);
	set(&(struct fib_label){.label = LINUX, .op = FIB_LABEL_LINUX});
	lead(UNRESOLVED, &nowhere, false);
	assert_int_equal(fib_group(fake.fib, members, 2, &hop, NULL), 0);
	lead(SPREAD, &hop, false);
	lead(BLACK, &black, false);
}

// Inserts a label stack, the outermost entry first.
static void push(struct bytes *frame, const struct entry stack[], unsigned n)
{
	memmove(frame->at + 14 + 4 * n, frame->at + 14, frame->n - 14);
	memcpy(frame->at + 12, (uint8_t[]){0x88, 0x47}, 2);
	for (unsigned i = 0; i < n; i++) {
		const uint32_t word_be = htobe32(
			stack[i].label << 12 | stack[i].tc << 9 | (i + 1 == n) << 8 | stack[i].ttl);

		memcpy(frame->at + 14 + 4 * i, &word_be, sizeof(word_be));
	}
	frame->n += 4 * n;
}

static struct bytes labelled(const char *dst, const struct entry stack[], unsigned n)
{
	struct bytes frame = frame_to(0, dst);

	push(&frame, stack, n);
	return frame;
}

static struct bytes with_label(const char *dst, uint32_t label)
{
	return labelled(dst, &(struct entry){label, 5, TTL}, 1);
}

static void set_ttl(struct bytes *frame, uint8_t ttl)
{
	if (frame->at[12] == 0x86) {
		frame->at[21] = ttl;
		return;
	}
	frame->at[22] = ttl;
	frame_mend(frame);
}

static void to_neighbour(struct bytes *frame, uint16_t iface, uint8_t port)
{
	memcpy(frame->at, (uint8_t[]){2, 0, 0, iface, 0, 2, 2, 0, 0, 0, 0, port + 1}, 12);
}

static void reset(const struct datapath_variant *variant)
{
	fake_reset(variant);
	for (uint16_t iface = 0; iface <= RED_OUT; iface++) {
		const struct iface *was = fib_iface(fake.fib, iface);

		if (!was)
			continue;
		struct iface settings = *was;
		settings.flags |= IFACE_MPLS;
		fake_set(iface, &settings);
	}
	set_labels();
}

static void expect(const struct bytes *frame, uint8_t port, const struct bytes *left)
{
	fake_receive(0, frame);
	fake_run();
	expect_sent(port, left);
}

// Written by hand: 0x64 is 100, 0xc8 is 200; traffic class 5 is gone, the TTL is one less.
static void a_label_is_swapped(void **state)
{
	static const uint8_t head[] = {0x02, 0, 0, 1, 0, 2, 0x02, 0, 0, 0, 0, 2, 0x88, 0x47, 0x00,
		0x0c, 0x81, 0x3f};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		struct bytes frame = with_label("10.9.2.3", SWAP), left = frame;

		assert_memory_equal(frame.at + 12,
			((uint8_t[]){0x88, 0x47, 0x00, 0x06, 0x4b, 0x40, 0x45}), 7);
		memcpy(left.at, head, sizeof(head));
		reset(fake_variants[v]);
		expect(&frame, 1, &left);
	}
}

static void the_bottom_of_stack_bit_stays_where_it_belongs(void **state)
{
	const struct entry stack[] = {{SWAP_PUSH, 0, 2}, {77, 3, 9}};
	const struct entry out[] = {{301, 0, 1}, {302, 0, 1}, {303, 0, 1}, {77, 3, 9}};
	struct bytes frame = labelled("10.9.2.3", stack, 2), left = labelled("10.9.2.3", out, 4);

	to_neighbour(&left, PLAIN_OUT, 1);
	reset(fake_variants[1]);
	expect(&frame, 1, &left);
}

static void the_last_label_but_one_is_popped_to_ip(void **state)
{
	static const char *const dsts[] = {"10.9.2.3", "2001:db8:9::3"};

	for (unsigned i = 0; i < 4; i++) {
		const bool is_pipe = i / 2;
		struct bytes frame = with_label(dsts[i % 2], is_pipe ? PHP_PIPE : PHP);
		struct bytes left = frame_to(0, dsts[i % 2]);

		set_ttl(&left, (is_pipe ? (i % 2 ? left.at[21] : left.at[22]) : TTL) - 1);
		to_neighbour(&left, PLAIN_OUT, 1);
		reset(fake_variants[0]);
		expect(&frame, 1, &left);
	}
}

static void a_popped_packet_leaves_with_the_tag_of_its_interface(void **state)
{
	struct bytes frame = with_label("2001:db8:9::3", PHP_TAGGED);
	struct bytes left = frame_to(0, "2001:db8:9::3");

	set_ttl(&left, TTL - 1);
	to_neighbour(&left, TAGGED_OUT, 1);
	frame_tag_for(&left, TAGGED_OUT);
	reset(fake_variants[1]);
	expect(&frame, 1, &left);
}

static void a_label_below_is_left_as_it_is(void **state)
{
	const struct entry stack[] = {{PHP, 1, 9}, {UNKNOWN, 2, 5}};
	struct bytes frame = labelled("10.9.2.3", stack, 2);
	struct bytes left = labelled("10.9.2.3", stack + 1, 1);

	to_neighbour(&left, PLAIN_OUT, 1);
	reset(fake_variants[1]);
	expect(&frame, 1, &left);
}

struct lookup {
	uint32_t label;
	uint16_t iface;
	uint8_t port;
	int ttl; // before it is decremented; 0: that of the packet
};

static const struct lookup lookups[] = {
	{POP, PLAIN_OUT, 1, 9},
	{POP_PIPE, PLAIN_OUT, 1, 0},
	{POP_LOOPS, PLAIN_OUT, 1, 8},
	{POP_RED, RED_OUT, 2, 9},
	{0, PLAIN_OUT, 1, 9},
	{2, PLAIN_OUT, 1, 9},
};

static void a_popped_packet_is_looked_up_in_its_vrf(void **state)
{
	static const char *const dsts[] = {"10.1.2.3", "2001:db8:1::3"};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < 2 * ARRAY_LEN(lookups); i++) {
			const struct lookup *to = &lookups[i / 2];
			const char *dst = dsts[i % 2];
			const struct entry entry = {to->label, 7, 9};
			struct bytes frame = labelled(dst, &entry, 1), inner = frame_to(0, dst);

			if (to->ttl)
				set_ttl(&inner, to->ttl);
			const struct bytes left = frame_forwarded(&inner, to->iface);
			reset(fake_variants[v]);
			expect(&frame, to->port, &left);
		}
}

static void labels_are_popped_until_one_is_the_last(void **state)
{
	struct entry stack[] = {{POP, 0, 2}, {POP_RED, 0, 200}, {0, 0, 30}};
	struct bytes frame = labelled("10.1.2.3", stack, 3), inner = frame_to(0, "10.1.2.3");

	set_ttl(&inner, 30);
	const struct bytes left = frame_forwarded(&inner, PLAIN_OUT);
	reset(fake_variants[1]);
	expect(&frame, 1, &left);
	stack[2].label = POP_LAST;
	frame = labelled("10.1.2.3", stack, 3);
	reset(fake_variants[1]);
	expect(&frame, 1, &left);
}

static void frames_with_tags_and_padding_are_popped_too(void **state)
{
	struct bytes frame = with_label("10.1.2.3", POP), inner = frame_to(0, "10.1.2.3");

	frame_tag_for(&frame, TAGGED_IN);
	memset(frame.at + frame.n, 0xee, 9);
	frame.n += 9;
	set_ttl(&inner, TTL);
	const struct bytes left = frame_forwarded(&inner, PLAIN_OUT);
	reset(fake_variants[1]);
	expect(&frame, 1, &left);
}

// Handed to Linux exactly as it was received.
static void expect_punted(const struct bytes *frame, enum verdict verdict, enum punt_class class)
{
	fake_receive(0, frame);
	fake_run();
	assert_int_equal(fake.stat.handed[verdict], 1);
	expect_bytes(fake_punted(class), frame);
}

static void expect_dropped(const struct bytes *frame, enum verdict verdict)
{
	fake_receive(0, frame);
	fake_run();
	assert_int_equal(fake.stat.verdict[verdict], 1);
}

static void what_has_no_way_is_dropped_by_name(void **state)
{
	struct bytes frame = with_label("10.1.2.3", UNKNOWN);

	reset(fake_variants[1]);
	expect_dropped(&frame, VERDICT_MPLS_UNKNOWN);
	for (uint8_t ttl = 0; ttl <= 1; ttl++) {
		frame = labelled("10.1.2.3", &(struct entry){SWAP, 0, ttl}, 1);
		reset(fake_variants[1]);
		expect_dropped(&frame, VERDICT_MPLS_TTL);
	}
	for (uint32_t label = PHP; label <= POP; label += POP - PHP) {
		frame = with_label("10.1.2.3", label);
		frame.at[18] = 0x55;
		reset(fake_variants[1]);
		expect_dropped(&frame, VERDICT_MPLS_PAYLOAD);
	}
	frame = with_label("10.1.2.3", BLACK);
	reset(fake_variants[1]);
	expect_dropped(&frame, VERDICT_BLACKHOLE);
	frame = with_label("10.1.2.3", POP);
	frame.at[28]++; // the checksum
	reset(fake_variants[1]);
	expect_dropped(&frame, VERDICT_IP4_CHECKSUM);
	frame.n = 17;
	reset(fake_variants[1]);
	expect_dropped(&frame, VERDICT_RUNT);
}

static void linux_gets_the_rest_as_it_was_received(void **state)
{
	const struct entry deep[] = {{POP, 0, 9}, {POP, 0, 9}, {POP, 0, 9}, {POP, 0, 9},
		{POP, 0, 9}};
	struct bytes frame = labelled("10.1.2.3", deep, 5);

	reset(fake_variants[1]);
	expect_punted(&frame, VERDICT_MPLS_DEEP, CLASS_OTHER);
	for (uint32_t label = 1; label < FIB_FREE_LABEL; label += 1 + (label == 1)) {
		frame = with_label("10.1.2.3", label);
		reset(fake_variants[1]);
		expect_punted(&frame, VERDICT_MPLS_RESERVED, CLASS_OTHER);
	}
	frame = with_label("10.1.2.3", LINUX);
	reset(fake_variants[1]);
	expect_punted(&frame, VERDICT_LINUX, CLASS_LINUX);
	frame = labelled("10.1.2.3", (const struct entry[]){{POP_LAST, 0, 9}, {POP, 0, 9}}, 2);
	reset(fake_variants[1]);
	expect_punted(&frame, VERDICT_LINUX, CLASS_LINUX);
	frame = with_label("10.1.2.3", UNRESOLVED);
	reset(fake_variants[1]);
	expect_punted(&frame, VERDICT_NEIGHBOUR_UNRESOLVED, CLASS_UNRESOLVED);
}

// Nothing has been written when a step after the lookup punts.
static void a_popped_packet_for_linux_still_has_its_labels(void **state)
{
	const struct entry last = {POP_LOOPS, 0, 2};
	struct bytes frame = labelled("10.1.2.3", &last, 1);

	reset(fake_variants[1]);
	expect_punted(&frame, VERDICT_TTL_EXPIRED, CLASS_TTL);
	frame = with_label("203.0.113.1", POP);
	reset(fake_variants[1]);
	expect_punted(&frame, VERDICT_NO_ROUTE, CLASS_UNREACHABLE);
	frame = with_label("2001:db8:1::3", POP);
	reset(fake_variants[1]);
	struct iface settings = *fib_iface(fake.fib, 0);
	settings.flags |= IFACE_LINUX6;
	fake_set(0, &settings);
	expect_punted(&frame, VERDICT_LINUX, CLASS_LINUX);
}

static void longer_than_the_mtu_with_its_labels_goes_to_linux(void **state)
{
	for (unsigned more = 0; more <= 1; more++) {
		struct bytes frame = with_label("10.9.2.3", SWAP_PUSH);

		frame.n = 14 + 4 + 1500 - 12 + more;
		reset(fake_variants[1]);
		fake_receive(0, &frame);
		fake_run();
		assert_int_equal(fake.device[1].n_sent, !more);
		assert_int_equal(fake.stat.handed[VERDICT_MTU_EXCEEDED], more);
	}
}

static void interfaces_take_labels_only_if_they_may(void **state)
{
	const struct bytes frame = with_label("10.1.2.3", SWAP);
	struct iface settings;

	reset(fake_variants[1]);
	settings = *fib_iface(fake.fib, 0);
	settings.flags &= ~IFACE_MPLS;
	fake_set(0, &settings);
	expect_punted(&frame, VERDICT_ETHERTYPE_UNKNOWN, CLASS_HOST);
	reset(fake_variants[1]);
	settings.flags |= IFACE_MPLS | IFACE_LINUX;
	fake_set(0, &settings);
	expect_punted(&frame, VERDICT_ETHERTYPE_UNKNOWN, CLASS_HOST);
	reset(fake_variants[1]); // without Linux there is no such setting
	settings.flags = 0;
	fake_set(0, &settings);
	fake.worker.tap = NULL;
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(fake.device[1].n_sent, 1);
}

static void without_any_label_mpls_is_off(void **state)
{
	const struct bytes frame = with_label("10.1.2.3", SWAP);
	struct fib_label label;

	reset(fake_variants[1]);
	while (fib_label_next(fake.fib, 0, &label))
		assert_int_equal(fib_label_delete(fake.fib, label.label), 0);
	expect_punted(&frame, VERDICT_ETHERTYPE_UNKNOWN, CLASS_HOST);
}

static void flows_are_spread_and_keep_their_way(void **state)
{
	enum { N_FLOWS = 512 };
	unsigned n[2] = {0};

	reset(fake_variants[1]);
	for (unsigned i = 0; i < 2 * N_FLOWS; i++) {
		struct bytes frame = with_label("10.9.2.3", SPREAD);

		frame.at[36] = i % N_FLOWS >> 8; // of the destination
		frame.at[37] = i;
		fake_receive(0, &frame);
	}
	fake_run();
	for (unsigned to = 0; to < 2; to++) {
		const struct fake_device *d = &fake.device[to ? 3 : 1];
		uint8_t seen[N_FLOWS] = {0};

		n[to] = d->n_sent;
		for (unsigned i = 0; i < d->n_sent; i++) {
			const uint8_t *at = rte_pktmbuf_mtod(d->sent[i], const uint8_t *);

			assert_memory_equal(at + 14, ((uint8_t[]){0, 0x13, to ? 0x71 : 0x61}), 3);
			seen[at[36] << 8 | at[37]]++;
		}
		for (unsigned i = 0; i < N_FLOWS; i++)
			assert_true(seen[i] == 0 || seen[i] == 2);
	}
	assert_int_equal(n[0] + n[1], 2 * N_FLOWS);
	assert_in_range(n[0], N_FLOWS / 2, 3 * N_FLOWS / 2);
}

static void routes_push_labels(void **state)
{
	static const char *const dsts[] = {"10.66.2.3", "2001:db8:66::3"};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < 4; i++) {
			const uint8_t fixed = i / 2 ? 17 : 0;
			struct fib_hop hop = pushing(via("10.1.0.2", PLAIN_OUT), 2, 401);
			const struct entry out[] = {{401, 0, fixed ? fixed : TTL - 1},
				{402, 0, fixed ? fixed : TTL - 1}};
			struct bytes frame = frame_to(0, dsts[i % 2]);
			struct bytes left = frame_forwarded(&frame, PLAIN_OUT);

			hop.label_ttl = fixed;
			reset(fake_variants[v]);
			fake_route(0, "10.66.0.0/16", &hop);
			fake_route(0, "2001:db8:66::/48", &hop);
			push(&left, out, 2);
			expect(&frame, 1, &left);
		}
}

// Their MTU is that of the interface less the labels: 1492 of 1500.
static void packets_are_fragmented_before_labels_are_pushed(void **state)
{
	struct fib_hop hop = pushing(via("10.1.0.2", PLAIN_OUT), 2, 401);
	struct bytes frame = frame_to(0, "10.66.2.3");

	for (unsigned length = 1492; length <= 1493; length++) {
		const bool is_long = length > 1492;

		frame.n = 14 + length;
		frame.at[16] = length >> 8;
		frame.at[17] = length & 0xff;
		frame.at[20] = 0; // it may be fragmented
		frame_mend(&frame);
		reset(fake_variants[1]);
		fake_route(0, "10.66.0.0/16", &hop);
		fake_receive(0, &frame);
		fake_run();
		assert_int_equal(fake.device[1].n_sent, 1 + is_long);
		for (unsigned i = 0; i <= is_long; i++) {
			const struct rte_mbuf *m = fake.device[1].sent[i];

			assert_true(m->pkt_len <= 14 + 1500);
			assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *) + 12,
				((uint8_t[]){0x88, 0x47, 0, 0x19, 0x10, TTL - 1, 0, 0x19, 0x21,
					TTL - 1, 0x45}),
				11);
		}
	}
}

// --- a plain model: what becomes of a frame

struct fate {
	enum verdict verdict; // VERDICT_FORWARD: `left` leaves by `port`
	uint8_t port;
	struct bytes left;
};

static struct fate stop(enum verdict verdict)
{
	return (struct fate){.verdict = verdict};
}

static struct fate leave(struct bytes left, uint16_t iface, uint8_t port)
{
	to_neighbour(&left, iface, port);
	return (struct fate){.port = port, .left = left};
}

static struct fate model_php(const char *dst, const struct entry stack[], unsigned n)
{
	struct bytes left = frame_to(0, dst);

	if (n > 1) {
		push(&left, stack + 1, n - 1);
		return leave(left, PLAIN_OUT, 1);
	}
	set_ttl(&left, stack[0].label == PHP ? stack[0].ttl - 1 : TTL - 1);
	return leave(left, PLAIN_OUT, 1);
}

static struct fate model_swap(const char *dst, const struct entry stack[], unsigned n)
{
	const unsigned pushed = stack[0].label == SWAP ? 1 : 3;
	struct entry out[MAX_STACK + 3];
	struct bytes left = frame_to(0, dst);

	for (unsigned i = 0; i < pushed; i++)
		out[i] = (struct entry){(pushed == 1 ? 200 : 301) + i, 0, stack[0].ttl - 1};
	memcpy(out + pushed, stack + 1, (n - 1) * sizeof(*stack));
	push(&left, out, n - 1 + pushed);
	return leave(left, PLAIN_OUT, 1);
}

static struct fate model(const char *dst, const struct entry stack[], unsigned n, unsigned depth)
{
	const struct entry *top = stack;
	struct bytes inner = frame_to(0, dst);

	if (depth == 4)
		return stop(VERDICT_MPLS_DEEP);
	if (top->label == UNKNOWN)
		return stop(VERDICT_MPLS_UNKNOWN);
	if (top->label == 3)
		return stop(VERDICT_MPLS_RESERVED);
	if (top->ttl <= 1)
		return stop(VERDICT_MPLS_TTL);
	if (top->label == SWAP || top->label == SWAP_PUSH)
		return model_swap(dst, stack, n);
	if (top->label == PHP || top->label == PHP_PIPE)
		return model_php(dst, stack, n);
	if (n > 1)
		return model(dst, stack + 1, n - 1, depth + 1);
	set_ttl(&inner, top->label == POP_PIPE ? TTL : top->ttl);
	return (struct fate){.port = 1, .left = frame_forwarded(&inner, PLAIN_OUT)};
}

static void random_stacks_fare_as_in_a_plain_model(void **state)
{
	static const uint32_t pool[] = {SWAP, SWAP_PUSH, PHP, PHP_PIPE, POP, POP, POP_PIPE, 0, 2,
		UNKNOWN, 3};
	static const uint8_t ttls[] = {0, 1, 2, 3, 64, 255};

	for (unsigned round = 0; round < ROUNDS; round++) {
		const char *dst = dice(2) ? "10.1.2.3" : "2001:db8:1::3";
		const unsigned n = 1 + dice(MAX_STACK);
		struct entry stack[MAX_STACK];

		for (unsigned i = 0; i < n; i++)
			stack[i] = (struct entry){pool[dice(ARRAY_LEN(pool))], dice(8),
				ttls[1 + dice(ARRAY_LEN(ttls) - 1 - (i > 0)) + (i > 0)]};
		const struct fate fate = model(dst, stack, n, 0);
		const struct bytes frame = labelled(dst, stack, n);
		if (round % 64 == 0)
			reset(fake_variants[round / 64 % FAKE_VARIANTS]);
		const uint64_t before =
			fake.stat.verdict[fate.verdict] + fake.stat.handed[fate.verdict];
		const unsigned n_sent = fake.device[1].n_sent;
		fake_receive(0, &frame);
		fake_run();
		assert_int_equal(fake.stat.verdict[fate.verdict] + fake.stat.handed[fate.verdict],
			before + 1);
		if (fate.verdict != VERDICT_FORWARD)
			continue;
		assert_int_equal(fake.device[1].n_sent, n_sent + 1);
		expect_bytes(fake.device[1].sent[n_sent], &fate.left);
	}
}

// Any bytes after the EtherType: the account closes, and nothing is read beyond the frame.
static void random_bytes_are_accounted_for(void **state)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct bytes frame = with_label("10.1.2.3", SWAP + dice(N_KNOWN - SWAP));
		const unsigned most = frame.n;

		frame.n = 14 + dice(most - 13);
		for (unsigned i = 0; i < 3; i++)
			frame.at[14 + dice(40)] = dice(256);
		if (round % 64 == 0)
			reset(fake_variants[round / 64 % FAKE_VARIANTS]);
		fake_receive(0, &frame);
		fake_run();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_label_is_swapped),
		cmocka_unit_test(the_bottom_of_stack_bit_stays_where_it_belongs),
		cmocka_unit_test(the_last_label_but_one_is_popped_to_ip),
		cmocka_unit_test(a_popped_packet_leaves_with_the_tag_of_its_interface),
		cmocka_unit_test(a_label_below_is_left_as_it_is),
		cmocka_unit_test(a_popped_packet_is_looked_up_in_its_vrf),
		cmocka_unit_test(labels_are_popped_until_one_is_the_last),
		cmocka_unit_test(frames_with_tags_and_padding_are_popped_too),
		cmocka_unit_test(what_has_no_way_is_dropped_by_name),
		cmocka_unit_test(linux_gets_the_rest_as_it_was_received),
		cmocka_unit_test(a_popped_packet_for_linux_still_has_its_labels),
		cmocka_unit_test(longer_than_the_mtu_with_its_labels_goes_to_linux),
		cmocka_unit_test(interfaces_take_labels_only_if_they_may),
		cmocka_unit_test(without_any_label_mpls_is_off),
		cmocka_unit_test(flows_are_spread_and_keep_their_way),
		cmocka_unit_test(routes_push_labels),
		cmocka_unit_test(packets_are_fragmented_before_labels_are_pushed),
		cmocka_unit_test(random_stacks_fare_as_in_a_plain_model),
		cmocka_unit_test(random_bytes_are_accounted_for),
	};

	return cmocka_run_group_tests(tests, vlans_open, fake_close);
}
