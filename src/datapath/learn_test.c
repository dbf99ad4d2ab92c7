// Of which packets the control thread is told, so that it may learn flows.
#include "datapath/flows.h"

#include "wire/headers.h"

enum { OUT = 1, TTL_AT = 22, LIMIT_AT = 21, PORT_AT = 34, RATE = 1000000, MOST = 100 };

static const char *const dsts[] = {"10.1.2.3", "2001:db8:1::3"};
static struct flow_learn *learn;

static void reset(unsigned number, uint32_t rate)
{
	flows_reset(number);
	flow_learn_close(learn);
	learn = flow_learn_open(1, NULL);
	assert_non_null(learn);
	flow_learn_set_rate(learn, rate);
	fake.worker.learn = learn;
}

static int close_learn(void **state)
{
	flow_learn_close(learn);
	return flows_close(state);
}

static void receive_on(uint16_t iface, const char *dst)
{
	struct bytes frame = frame_on(iface, dst);

	fake_receive(0, &frame);
}

static void expect_told(unsigned n)
{
	struct flow_unknown told[MOST];

	assert_int_equal(flow_learn_take(learn, 0, told, MOST), n);
}

static void expect_key(const struct flow_unknown *told, const char *dst, uint16_t vrf)
{
	struct flow_tuple tuple = flows_tuple(dst);
	struct flow_key key;

	tuple.vrf = vrf;
	assert_int_equal(flow_key_set(&key, &tuple, NULL), 0);
	assert_int_equal(told->family, key.family);
	if (key.family == 6)
		assert_memory_equal(&told->six, &key.six, sizeof(key.six));
	else
		assert_memory_equal(&told->four, &key.four, sizeof(key.four));
}

// Five packets are forwarded by route; the control thread learns of it once. A tick may begin
// between two polls: then it learns of it again.
static void the_first_packet_is_told(void **state)
{
	static const struct {
		uint16_t iface, vrf;
	} rows[] = {{PLAIN_IN, 0}, {TAGGED_IN, 0}, {RED_IN, RED}};

	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < ARRAY_LEN(rows) * ARRAY_LEN(dsts); i++) {
			struct flow_unknown told[MOST];
			struct fib_answer answer;
			const struct flow_tuple tuple = flows_tuple(dsts[i % 2]);

			reset(v, RATE);
			for (unsigned k = 0; k < 5; k++)
				receive_on(rows[i / 2].iface, dsts[i % 2]);
			fake_run();
			const unsigned n = flow_learn_take(learn, 0, told, MOST);
			assert_in_range(n, 1, 2);
			expect_key(&told[0], dsts[i % 2], rows[i / 2].vrf);
			assert_int_equal(told[0].iface, rows[i / 2].iface);
			rib_lookup(fake.fib, rows[i / 2].vrf, &tuple.dst, &answer);
			assert_int_equal(told[0].hop, answer.hop_id);
			assert_int_equal(
				fake.device[fib_iface(fake.fib, answer.hop.iface)->port].n_sent, 5);
			assert_int_equal(fake.stat.flow_learn_lost, 0);
		}
}

static void nothing_is_told_of_flows_and_unless_it_is_wanted(void **state)
{
	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < ARRAY_LEN(dsts); i++) {
			const struct flow_tuple tuple = flows_tuple(dsts[i]);

			reset(v, RATE);
			flows_set(&tuple, flows_by_route());
			receive_on(PLAIN_IN, dsts[i]);
			fake_run();
			expect_told(0);
			reset(v, 0);
			receive_on(PLAIN_IN, dsts[i]);
			fake_run();
			expect_told(0);
			assert_int_equal(fake.device[OUT].n_sent, 1);
			assert_int_equal(fake.stat.flow_learn_lost, 0);
		}
}

// They would take the space of those that are.
static void packets_that_are_not_forwarded_are_not_told(void **state)
{
	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < ARRAY_LEN(dsts); i++) {
			struct bytes expired = frame_on(PLAIN_IN, dsts[i]);

			expired.at[i ? LIMIT_AT : TTL_AT] = 1;
			reset(v, RATE);
			if (!i)
				frame_mend(&expired);
			fake_receive(0, &expired);
			receive_on(PLAIN_IN, i ? "2001:db8:99::1" : "10.99.0.1"); // no route
			receive_on(PLAIN_IN, "10.50.1.1");                        // unresolved
			fake_run();
			expect_told(0);
			reset(v, RATE);
			flows_drop_missing(true);
			fake_receive(0, &expired);
			fake_run();
			expect_told(0);
		}
}

static void what_is_dropped_for_want_of_a_flow_is_told(void **state)
{
	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < ARRAY_LEN(dsts); i++) {
			struct flow_unknown told[MOST];

			reset(v, RATE);
			flows_drop_missing(true);
			receive_on(PLAIN_IN, dsts[i]);
			fake_run();
			assert_int_equal(fake.stat.verdict[VERDICT_FLOW_MISSING], 1);
			assert_int_equal(flow_learn_take(learn, 0, told, MOST), 1);
			expect_key(&told[0], dsts[i], 0);
		}
}

// What an interface at its limit sends does not take the place of others.
static void an_interface_or_vrf_at_its_limit_is_left_out(void **state)
{
	for (unsigned v = 0; v < FLOWS_CASES; v++)
		for (unsigned i = 0; i < 2; i++) {
			struct flow_unknown told[MOST];

			reset(v, RATE);
			if (i)
				flow_learn_set_vrf_full(learn, 0, true);
			else
				flow_learn_set_iface_full(learn, PLAIN_IN, true);
			receive_on(PLAIN_IN, dsts[0]);
			receive_on(PLAIN_IN, dsts[0]);
			receive_on(RED_IN, dsts[0]);
			fake_run();
			assert_int_equal(flow_learn_take(learn, 0, told, MOST), 1);
			assert_int_equal(told[0].iface, RED_IN);
			assert_int_equal(fake.stat.flow_learn_over, 2);
			assert_int_equal(fake.stat.flow_learn_lost, 0);
		}
}

// As nothing could be learnt, each of them would be told of again and again.
static void nothing_is_told_of_a_family_without_flows(void **state)
{
	const struct flow_settings settings[] = {
		{.max6 = 10, .n_workers = 1, .hz = 2000000000},
		{.max4 = 10, .n_workers = 1, .hz = 2000000000},
	};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < ARRAY_LEN(dsts); i++) {
			struct flow_table *table = flow_create(&settings[i], 0, NULL);

			assert_non_null(table);
			for (unsigned drops = 0; drops < 2; drops++) {
				reset(v, RATE);
				fake.worker.flows = flow_view(table);
				flows_drop_missing(drops);
				receive_on(PLAIN_IN, dsts[i]);
				receive_on(PLAIN_IN, dsts[!i]);
				fake_run();
				expect_told(1);
				assert_int_equal(fake.stat.flow_learn_lost, 0);
			}
			fake.worker.flows = NULL;
			flow_destroy(table);
		}
}

// Each packet has another source port. All are forwarded, and those of a flow are counted.
static void a_flood_is_forwarded_and_what_is_not_told_is_counted(void **state)
{
	enum { FLOOD = 1900 };

	for (unsigned v = 0; v < FLOWS_CASES; v++) {
		const struct flow_tuple tuple = flows_tuple("10.1.9.9");
		struct bytes known = frame_on(PLAIN_IN, "10.1.9.9");
		struct flow_unknown told[MOST];
		unsigned n_told = 0, n;

		reset(v, 1);
		flows_set(&tuple, flows_to(3));
		for (unsigned i = 0; i < FLOOD; i++) {
			struct bytes frame = frame_on(PLAIN_IN, dsts[0]);

			frame.at[PORT_AT] = i >> 8;
			frame.at[PORT_AT + 1] = i;
			fake_receive(0, &frame);
			if (i % 100 == 0)
				fake_receive(0, &known);
		}
		fake_run();
		assert_int_equal(fake.device[OUT].n_sent, FLOOD);
		flows_expect(&tuple, FLOOD / 100, (uint64_t)known.n * (FLOOD / 100));
		while ((n = flow_learn_take(learn, 0, told, MOST)))
			n_told += n;
		assert_true(n_told >= 64 && fake.stat.flow_learn_lost > 0);
		assert_int_equal(n_told + fake.stat.flow_learn_lost, FLOOD);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_packet_is_told),
		cmocka_unit_test(nothing_is_told_of_flows_and_unless_it_is_wanted),
		cmocka_unit_test(packets_that_are_not_forwarded_are_not_told),
		cmocka_unit_test(what_is_dropped_for_want_of_a_flow_is_told),
		cmocka_unit_test(an_interface_or_vrf_at_its_limit_is_left_out),
		cmocka_unit_test(nothing_is_told_of_a_family_without_flows),
		cmocka_unit_test(a_flood_is_forwarded_and_what_is_not_told_is_counted),
	};

	return cmocka_run_group_tests(tests, flows_open, close_learn);
}
