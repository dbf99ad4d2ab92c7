// The step table: names, what enables a step, and whose cycles are counted.
#include "datapath/steps.h"

#include "datapath/datapath.h"
#include "datapath/vlans.h"

static int step_named(const char *name)
{
	for (unsigned i = 0; datapath_step_name(i); i++)
		if (!strcmp(datapath_step_name(i), name))
			return i;
	return -1;
}

static void names_are_unique(void **state)
{
	for (unsigned i = 0; datapath_step_name(i); i++)
		assert_int_equal(step_named(datapath_step_name(i)), i);
	assert_null(datapath_step_name(STATS_MAX_STEPS));
}

// "punt" is the TAP thread's.
static void each_verdict_is_of_a_step(void **state)
{
	for (unsigned v = 0; v < N_VERDICTS; v++)
		assert_true(step_named(verdict_step(v)) >= 0 || !strcmp(verdict_step(v), "punt"));
}

static bool is_enabled(const char *name, bool is_ip6)
{
	const struct enabled_steps *steps = &fake.worker.steps[is_ip6];

	for (unsigned i = 0; i < steps->first[N_PHASES]; i++)
		if (steps->step[i].id == step_named(name))
			return true;
	return false;
}

static void a_worker_has_only_the_steps_that_are_enabled(void **state)
{
	fake_reset(fake_variants[1]);
	datapath_enable_steps(&fake.worker);
	assert_true(is_enabled("discovery", true) && !is_enabled("discovery", false));
	assert_true(is_enabled("source", false) && !is_enabled("source", true));
	assert_true(is_enabled("redirect", true) && is_enabled("redirect", false));
	assert_true(is_enabled("check", true) && is_enabled("check", false));
	assert_false(is_enabled("match", true) || is_enabled("flow", false));
	fake.worker.tap = NULL;
	datapath_enable_steps(&fake.worker);
	assert_false(is_enabled("discovery", true));
	assert_false(is_enabled("redirect", true) || is_enabled("redirect", false));
	assert_true(is_enabled("source", false) && is_enabled("check", true));
}

static bool has_cycles(const char *name)
{
	return fake.stat.step_cycles[step_named(name)] > 0;
}

static void receive_one(uint16_t iface, const char *dst)
{
	struct bytes frame = frame_on(iface, dst);

	fake.worker.long_gap = 1ull << 56; // no burst counts as disturbed
	fake_receive(0, &frame);
	fake_run();
	assert_int_equal(fake.stat.timed_packets, 1);
}

static void cycles_are_those_of_the_steps_that_ran(void **state)
{
	static const char *const always[] = {"rx", "parse", "lookup", "check", "rewrite", "send"};
	static const char *const dst[] = {"10.1.2.3", "2001:db8:1::3", "10.20.2.3",
		"2001:db8:14::3"};

	for (unsigned v = 0; v < FAKE_VARIANTS; v++)
		for (unsigned i = 0; i < 8; i++) {
			const bool is_tagged = i & 1, leaves_tagged = i & 4;

			fake_reset(fake_variants[v]);
			receive_one(is_tagged ? TAGGED_IN : PLAIN_IN, dst[i / 2]);
			for (unsigned k = 0; k < ARRAY_LEN(always); k++)
				assert_true(has_cycles(always[k]));
			assert_int_equal(has_cycles("untag"), is_tagged);
			assert_int_equal(has_cycles("encap"), leaves_tagged);
			assert_false(has_cycles("xconnect") || has_cycles("source") ||
				     has_cycles("trim") || has_cycles("discovery"));
		}
}

static void an_xconnect_runs_none_of_them(void **state)
{
	fake_reset(fake_variants[1]);
	fake.states[0].is_xconnect = true;
	fake.states[0].xconnect = 1;
	receive_one(PLAIN_IN, "10.1.2.3");
	assert_int_equal(fake.device[1].n_sent, 1);
	assert_true(has_cycles("rx") && has_cycles("xconnect"));
	assert_false(has_cycles("parse") || has_cycles("lookup") || has_cycles("send"));
}

// No step runs for a burst whose packets are all gone.
static void steps_end_with_the_last_packet(void **state)
{
	fake_reset(fake_variants[1]);
	receive_one(PLAIN_IN, "10.99.0.1");
	assert_int_equal(fake.stat.handed[VERDICT_NO_ROUTE], 1);
	assert_true(has_cycles("check"));
	assert_false(has_cycles("rewrite") || has_cycles("send"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_unique),
		cmocka_unit_test(each_verdict_is_of_a_step),
		cmocka_unit_test(a_worker_has_only_the_steps_that_are_enabled),
		cmocka_unit_test(cycles_are_those_of_the_steps_that_ran),
		cmocka_unit_test(an_xconnect_runs_none_of_them),
		cmocka_unit_test(steps_end_with_the_last_packet),
	};

	return cmocka_run_group_tests(tests, vlans_open, fake_close);
}
