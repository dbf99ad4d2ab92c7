// Real-time priority, its budget, and what becomes of a thread that never sleeps. Where the system
// refuses real-time priority, only the weight is tested.
#include "base/priority.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static const uint64_t patience_ns = 60000000000;

static int policy(void)
{
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static bool is_permitted(void)
{
	struct sched_param one = {.sched_priority = 1}, none = {0};
	bool is = sched_setscheduler(0, SCHED_RR, &one) == 0;

	sched_setscheduler(0, SCHED_OTHER, &none);
	return is;
}

static void runs_before_others_as_far_as_permitted(void **state)
{
	struct priority priority;
	struct error error;
	bool may = is_permitted(), has_weight = setpriority(PRIO_PROCESS, gettid(), -1) == 0;

	assert_int_equal(priority_real_time(&priority, &error), may ? 0 : -EPERM);
	assert_int_equal(priority.may_be_real_time, may);
	assert_int_equal(priority.is_real_time, may);
	assert_int_equal(policy(), may ? SCHED_RR : SCHED_OTHER);
	if (has_weight)
		assert_int_equal(getpriority(PRIO_PROCESS, gettid()), -10);
	printf("real-time priority is %spermitted here\n", may ? "" : "not ");
}

static void is_ordinary_once_its_budget_is_spent_and_real_time_again_later(void **state)
{
	struct priority priority;
	unsigned n_back = 0, n_again = 0;
	uint64_t start_ns = clock_now_ns();

	priority_real_time(&priority, NULL);
	if (!priority.may_be_real_time)
		skip();
	// Many windows: RLIMIT_RTTIME must not take the priority away from a thread that keeps its
	// budget.
	while (n_again < 20 && clock_now_ns() - start_ns < patience_ns) {
		bool before = priority.is_real_time;

		priority_check(&priority);
		n_back += before && !priority.is_real_time;
		n_again += !before && priority.is_real_time;
		assert_int_equal(policy(), priority.is_real_time ? SCHED_RR : SCHED_OTHER);
	}
	assert_int_equal(n_again, 20);
	assert_in_range(n_back, 20, 21);
}

static void loses_it_for_good_if_it_never_sleeps(void **state)
{
	struct priority priority;
	uint64_t start_ns = clock_now_ns();

	priority_real_time(&priority, NULL);
	if (!priority.may_be_real_time)
		skip();
	while (policy() == SCHED_RR && clock_now_ns() - start_ns < patience_ns)
		;
	assert_int_equal(policy(), SCHED_OTHER);
	priority.is_real_time = false;
	priority.window_ns -= PRIORITY_WINDOW_NS;
	priority_check(&priority);
	assert_int_equal(policy(), SCHED_OTHER);
}

// The rest of the program runs without it.
static void give_up_capability(unsigned capability)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	assert_int_equal(syscall(SYS_capget, &head, data), 0);
	data[0].effective &= ~(1u << capability);
	assert_int_equal(syscall(SYS_capset, &head, data), 0);
}

static void is_ordinary_and_says_why_without_the_capability(void **state)
{
	struct rlimit none = {0, 0};
	struct priority priority;
	struct error error = {""};

	give_up_capability(CAP_SYS_NICE);
	assert_int_equal(setrlimit(RLIMIT_RTPRIO, &none), 0);
	assert_int_equal(priority_real_time(&priority, &error), -EPERM);
	assert_non_null(strstr(error.text, "CAP_SYS_NICE"));
	assert_false(priority.may_be_real_time);
	priority.window_ns -= PRIORITY_WINDOW_NS;
	priority_check(&priority);
	assert_int_equal(policy(), SCHED_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_before_others_as_far_as_permitted),
		cmocka_unit_test(is_ordinary_once_its_budget_is_spent_and_real_time_again_later),
		cmocka_unit_test(loses_it_for_good_if_it_never_sleeps),
		cmocka_unit_test(is_ordinary_and_says_why_without_the_capability),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
