// The tap thread: it sleeps while there is nothing to do, and the first punted packet wakes it.
#include "tap/fixture.h"

#include "base/clock.h"

#include <dirent.h>
#include <unistd.h>

static const uint64_t patience_ns = 60000000000;

// Number of times that the thread has gone to sleep.
static unsigned long count_naps(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned long n = 0;

	assert_non_null(tasks);
	for (struct dirent *one; (one = readdir(tasks));) {
		char path[300], line[200] = "";

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", one->d_name);
		FILE *file = fopen(path, "r");
		bool is_it = false;

		while (file && fgets(line, sizeof(line), file)) {
			is_it |= strcmp(line, "Name:\tdl3d-taps\n") == 0;
			if (is_it)
				sscanf(line, "voluntary_ctxt_switches: %lu", &n);
		}
		if (file)
			fclose(file);
	}
	closedir(tasks);
	return n;
}

static void wait_until_it_sleeps(void)
{
	uint64_t start_ns = clock_now_ns();

	while (!__atomic_load_n(&room->wakeup.is_asleep, __ATOMIC_RELAXED))
		if (clock_now_ns() - start_ns > patience_ns)
			fail_msg("the thread never sleeps");
}

static void sleeps_while_nothing_comes(void **state)
{
	open_module();
	wait_until_it_sleeps();
	unsigned long naps = count_naps();
	uint64_t start_ns = clock_now_ns();

	assert_true(naps > 0);
	usleep(2000000);
	uint64_t ms = (clock_now_ns() - start_ns) / 1000000;

	assert_in_range((count_naps() - naps) * 1000 / ms, 0, 200); // per second
}

static void is_woken_once_by_the_first_packet(void **state)
{
	uint64_t n_rung;

	open_module();
	thread_stop(room);
	while (read(room->wakeup.fd, &n_rung, sizeof(n_rung)) > 0)
		;
	room->wakeup.is_asleep = true;
	assert_true(punt(0, VERDICT_TTL_EXPIRED, 1));
	assert_false(room->wakeup.is_asleep);
	assert_true(punt(0, VERDICT_TTL_EXPIRED, 2));
	assert_int_equal(read(room->wakeup.fd, &n_rung, sizeof(n_rung)), sizeof(n_rung));
	assert_int_equal(n_rung, 1);
	move_rest(room);
}

static void hands_over_what_is_punted_while_it_sleeps_or_goes_to_sleep(void **state)
{
	open_module();
	int fd = listen_to_tap(0);

	for (unsigned i = 0; i < 300; i++) {
		if (i % 3 == 0)
			wait_until_it_sleeps();
		else
			usleep(1500 + 5 * i); // about when it goes to sleep
		assert_true(punt(0, VERDICT_TTL_EXPIRED, i));
		assert_int_equal(receive_mark(fd), i);
	}
	settle();
	close(fd);
}

int main(void)
{
#define ROOM_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		ROOM_TEST(sleeps_while_nothing_comes),
		ROOM_TEST(is_woken_once_by_the_first_packet),
		ROOM_TEST(hands_over_what_is_punted_while_it_sleeps_or_goes_to_sleep),
	};

	return cmocka_run_group_tests(tests, open_ports, close_ports);
}
