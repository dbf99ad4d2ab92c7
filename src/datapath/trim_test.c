// What follows a packet in its frame: trimmed where workers forward it, kept where Linux gets it.
#include "datapath/vlans.h"

enum { MIN_FRAME = 60, TTL_AT = 22 };

static void add_trailer(struct bytes *frame, unsigned n)
{
	memset(frame->at + frame->n, 0xee, n);
	frame->n += n;
}

// A packet of `payload` bytes of UDP data, in a frame that ends with it.
static struct bytes packet(uint16_t iface, const char *dst, unsigned payload)
{
	struct bytes frame = frame_on(iface, dst);
	bool is_ip4 = !strchr(dst, ':');
	unsigned tags = frame.n - frame_to(0, dst).n, ip = 14 + tags;
	unsigned length = 8 + payload + (is_ip4 ? 20 : 0);

	frame.at[ip + (is_ip4 ? 2 : 4)] = length >> 8;
	frame.at[ip + (is_ip4 ? 3 : 5)] = length;
	frame.n = ip + length + (is_ip4 ? 0 : 40);
	if (is_ip4)
		frame_mend(&frame);
	return frame;
}

static void walk(uint16_t in, uint16_t out, const char *dst, unsigned payload, unsigned trailer)
{
	struct bytes whole = packet(in, dst, payload), received = whole;
	unsigned tags = frame_on(in, dst).n - frame_to(0, dst).n;
	unsigned padding = whole.n - tags < MIN_FRAME ? MIN_FRAME - (whole.n - tags) : 0;

	add_trailer(&whole, MIN_OF(padding, trailer));
	add_trailer(&received, trailer);
	struct bytes left = frame_forwarded(&whole, out);
	fake_receive(0, &received);
	fake_run();
	expect_sent(1, &left);
}

static void only_padding_to_the_minimum_length_is_forwarded(void **state)
{
	static const struct {
		unsigned payload, trailer;
	} rows[] = {{100, 0}, {100, 1}, {100, 60}, {18, 1}, {18, 4}, {17, 1}, {17, 2}, {2, 8},
		{2, 16}, {2, 17}, {0, 300}, {1000, 500}};
	static const uint16_t ways_in[] = {PLAIN_IN, TAGGED_IN, QINQ_IN};
	static const struct {
		uint16_t iface;
		const char *dst4, *dst6;
	} ways_out[] = {{PLAIN_OUT, "10.1.2.3", "2001:db8:1::3"},
		{QINQ_OUT, "10.21.2.3", "2001:db8:15::3"}};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(rows) * ARRAY_LEN(ways_in); i++)
			for (unsigned o = 0; o < 2 * ARRAY_LEN(ways_out); o++) {
				unsigned row = i / ARRAY_LEN(ways_in);

				fake_reset(fake_variants[v]);
				walk(ways_in[i % ARRAY_LEN(ways_in)], ways_out[o / 2].iface,
					o % 2 ? ways_out[o / 2].dst6 : ways_out[o / 2].dst4,
					rows[row].payload, rows[row].trailer);
			}
}

// A frame that fits without its trailer is forwarded; the packet's own length decides.
static void the_mtu_is_that_of_the_packet(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		fake_reset(fake_variants[v]);
		walk(PLAIN_IN, PLAIN_OUT, "10.1.2.3", 1472, 100);
		fake_reset(fake_variants[v]);
		walk(PLAIN_IN, PLAIN_OUT, "2001:db8:1::3", 1452, 100);
		fake_reset(fake_variants[v]);
		struct bytes frame = packet(PLAIN_IN, "10.1.2.3", 1473);
		struct rte_mbuf *m = fake_receive(0, &frame);
		fake_run();
		assert_int_equal(fake.stat.handed[VERDICT_MTU_EXCEEDED], 1);
		expect_bytes(m, &frame);
	}
}

static void linux_gets_the_whole_frame(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		struct bytes frame = packet(PLAIN_IN, "10.1.2.3", 100);

		fake_reset(fake_variants[v]);
		frame.at[TTL_AT] = 1;
		frame_mend(&frame);
		add_trailer(&frame, 33);
		struct rte_mbuf *m = fake_receive(0, &frame);
		fake_run();
		assert_int_equal(fake.stat.handed[VERDICT_TTL_EXPIRED], 1);
		expect_bytes(m, &frame);
	}
}

// Some of a burst have trailers; counters of bytes agree with what came and left.
static void a_burst_keeps_its_order_and_counts_its_bytes(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		struct bytes left[BURST_MAX];
		uint64_t n_in = 0, n_out = 0;

		fake_reset(fake_variants[v]);
		for (unsigned i = 0; i < BURST_MAX; i++) {
			struct bytes frame = packet(PLAIN_IN, "10.1.2.3", 20 + i);

			left[i] = frame_forwarded(&frame, PLAIN_OUT);
			add_trailer(&frame, i % 5 ? 0 : 1 + i);
			fake_receive(0, &frame);
			n_in += frame.n;
			n_out += left[i].n;
		}
		fake_run();
		assert_int_equal(fake.device[1].n_sent, BURST_MAX);
		for (unsigned i = 0; i < BURST_MAX; i++)
			expect_bytes(fake.device[1].sent[i], &left[i]);
		assert_int_equal(fake.stat.port[0].rx_bytes, n_in);
		assert_int_equal(fake.stat.port[1].tx_bytes, n_out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_padding_to_the_minimum_length_is_forwarded),
		cmocka_unit_test(the_mtu_is_that_of_the_packet),
		cmocka_unit_test(linux_gets_the_whole_frame),
		cmocka_unit_test(a_burst_keeps_its_order_and_counts_its_bytes),
	};

	return cmocka_run_group_tests(tests, vlans_open, fake_close);
}
