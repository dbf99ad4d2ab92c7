// Which port and DSCP a flow is expected to have.
#include "gen/expect.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct gen_expect three_and_five = {
	.secret = 42,
	.other_secret = 43,
	.every = 5,
	.n_ports = 3,
	.n_dscps = 5,
	.port = {10, 11, 12},
	.dscp = {0, 8, 16, 34, 46},
};

// Computed by another program from the formula in expect.h.
static void follows_the_documented_formula(void **state)
{
	static const struct {
		uint64_t secret;
		uint32_t flow;
		unsigned port, dscp; // places in the lists
	} rows[] = {{0, 0, 0, 0}, {0, 1, 2, 2}, {1, 0, 1, 0}, {42, 16777215, 0, 0},
		{INT64_MAX, 65536, 0, 2}, {42, 5, 2, 1}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct expect_action action =
			expect_action(&three_and_five, rows[i].secret, rows[i].flow);

		assert_int_equal(action.port, three_and_five.port[rows[i].port]);
		assert_int_equal(action.dscp, three_and_five.dscp[rows[i].dscp]);
	}
}

static void gives_each_action_to_as_many_flows(void **state)
{
	enum { FLOWS = 150000 };
	unsigned n_of[16][64] = {0};

	for (uint32_t flow = 0; flow < FLOWS; flow++) {
		struct expect_action action = expect_action(&three_and_five, 42, flow);

		n_of[action.port][action.dscp]++;
	}
	for (unsigned p = 0; p < 3; p++)
		for (unsigned d = 0; d < 5; d++) {
			unsigned n = n_of[three_and_five.port[p]][three_and_five.dscp[d]];

			assert_true(n > FLOWS / 15 - 1000 && n < FLOWS / 15 + 1000);
		}
}

// The verdict as the words in expect.h have it.
static enum expect_verdict judge(struct expect_action first, struct expect_action other,
	bool has_other, struct expect_action found)
{
	if (found.port == first.port && found.dscp == first.dscp)
		return EXPECT_RIGHT;
	if (has_other && found.port == other.port && found.dscp == other.dscp)
		return EXPECT_OTHER;
	if (found.port == first.port || (has_other && found.port == other.port))
		return EXPECT_WRONG_DSCP;
	return EXPECT_WRONG_PORT;
}

static void judges_each_action_of_each_flow(void **state)
{
	unsigned n_of[4] = {0};

	for (uint32_t flow = 0; flow < 1000; flow++) {
		struct expect_action first = expect_action(&three_and_five, 42, flow);
		struct expect_action other = expect_action(&three_and_five, 43, flow);

		assert_int_equal(expect_has_other(&three_and_five, flow), flow % 5 == 0);
		for (uint8_t port = 10; port < 14; port++)
			for (uint8_t dscp = 0; dscp < 64; dscp++) {
				struct expect_action found = {port, dscp};
				enum expect_verdict verdict =
					expect_judge(&three_and_five, flow, found);

				assert_int_equal(verdict,
					judge(first, other, flow % 5 == 0, found));
				n_of[verdict]++;
			}
	}
	assert_int_equal(n_of[EXPECT_RIGHT], 1000);
	assert_true(n_of[EXPECT_OTHER] > 100 && n_of[EXPECT_OTHER] < 200);
	assert_true(n_of[EXPECT_WRONG_PORT] && n_of[EXPECT_WRONG_DSCP]);
}

static void a_port_of_one_action_with_the_dscp_of_the_other_is_wrong(void **state)
{
	struct gen_expect expect = three_and_five;
	unsigned n = 0;

	for (uint32_t flow = 0; flow < 1000; flow += expect.every) {
		struct expect_action first = expect_action(&expect, 42, flow);
		struct expect_action other = expect_action(&expect, 43, flow);
		struct expect_action mixed = {first.port, other.dscp};

		if (first.port == other.port || first.dscp == other.dscp)
			continue;
		assert_int_equal(expect_judge(&expect, flow, mixed), EXPECT_WRONG_DSCP);
		n++;
	}
	assert_true(n > 50);
}

static void frames_end_on_the_ports_of_the_list_or_on_the_only_port(void **state)
{
	struct gen_stream stream = {.to = 4};

	for (unsigned port = 0; port < 256; port++)
		assert_int_equal(expect_ends_on(&stream, port), port == 4);
	stream.expect = three_and_five;
	stream.to = 11;
	for (unsigned port = 0; port < 256; port++)
		assert_int_equal(expect_ends_on(&stream, port), port >= 10 && port <= 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follows_the_documented_formula),
		cmocka_unit_test(gives_each_action_to_as_many_flows),
		cmocka_unit_test(judges_each_action_of_each_flow),
		cmocka_unit_test(a_port_of_one_action_with_the_dscp_of_the_other_is_wrong),
		cmocka_unit_test(frames_end_on_the_ports_of_the_list_or_on_the_only_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
