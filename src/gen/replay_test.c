// Captures that are replaced or modified between check and run.
#include "gen/replay.h"

#include "base/bits.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { FRAME_BYTES = 60, SECONDS = 1000, N_MBUFS = 15 };

static const struct gen_port ports[] = {{"left", {{2, 0, 0, 0, 0, 0x11}}, 0, 0}};
static char path[64], other[72];
static struct rte_mempool *pool;
static struct gen_streams streams;
static struct replay *replay;
static struct error error;
static bool is_written_to; // applies to the next file that is read

// One frame filled with a byte, in a file with an mtime `ns` after a second.
static void write_capture(const char *name, uint8_t byte, long ns)
{
	const uint32_t head[] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 65535, 1};
	const uint32_t frame_head[] = {0, 0, FRAME_BYTES, FRAME_BYTES};
	const struct timespec times[] = {{SECONDS, ns}, {SECONDS, ns}};
	uint8_t frame[FRAME_BYTES];
	FILE *file = fopen(name, "w");

	memset(frame, byte, sizeof(frame));
	assert_non_null(file);
	fwrite(head, sizeof(head), 1, file);
	fwrite(frame_head, sizeof(frame_head), 1, file);
	fwrite(frame, sizeof(frame), 1, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(utimensat(AT_FDCWD, name, times, 0), 0);
}

// Lets file systems with a coarse clock distinguish two writes.
static void sleep_a_tick(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

// Called before the first frame is read. Simulates a writer that modifies the file without changing
// its length, and sets its mtime back.
int pcap_datalink(pcap_t *pcap)
{
	int (*real)(pcap_t *) = (int (*)(pcap_t *))dlsym(RTLD_NEXT, "pcap_datalink");

	if (is_written_to) {
		sleep_a_tick();
		write_capture(path, 2, 5);
	}
	is_written_to = false;
	return real(pcap);
}

static void check_streams(void)
{
	json_t *list = json_pack("[{s:s, s:s, s:s, s:s, s:s}]", "name", "east", "from", "left",
		"to", "left", "pcap", path, "rate", "max");

	assert_int_equal(gen_read_streams(&streams, list, ports, ARRAY_LEN(ports), &error), 0);
	json_decref(list);
}

static int make_replay(void)
{
	const struct sender_terms terms = {.stream = &streams.stream[0],
		.pool = pool,
		.tsc_hz = 1e9};

	replay_destroy(replay);
	replay = NULL;
	return replay_create(&replay, &terms, &error);
}

static int set_up_group(void **state)
{
	static char *args[] = {"replay_test", "--no-huge", "-m64", "--no-pci", "--no-telemetry",
		"--no-shconf", "--log-level=error", "--file-prefix=replay_test"};

	if (rte_eal_init(ARRAY_LEN(args), args) < 0)
		return -1;
	pool = rte_pktmbuf_pool_create("replay_test", N_MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	snprintf(path, sizeof(path), "/tmp/replay_test.%d", getpid());
	snprintf(other, sizeof(other), "%s.other", path);
	return pool ? 0 : -1;
}

static int tear_down_group(void **state)
{
	rte_mempool_free(pool);
	return rte_eal_cleanup();
}

static int set_up(void **state)
{
	write_capture(path, 1, 5);
	check_streams();
	return 0;
}

static int tear_down(void **state)
{
	replay_destroy(replay);
	replay = NULL;
	unlink(path);
	return 0;
}

static void check_refused(void)
{
	char text[256];

	snprintf(text, sizeof(text),
		"stream east: %s was changed after it was checked; send again when no program is "
		"writing to it",
		path);
	assert_int_not_equal(make_replay(), 0);
	assert_string_equal(error.text, text);
}

static void takes_the_file_that_was_checked(void **state)
{
	assert_int_equal(make_replay(), 0);
	assert_int_equal(replay->capture.bytes[0], 1);
	assert_int_equal(make_replay(), 0); // repeated runs work
}

static void refuses_another_file_of_that_name(void **state)
{
	write_capture(other, 2, 5);
	assert_int_equal(rename(other, path), 0);
	check_refused();
}

static void refuses_the_file_with_other_frames(void **state)
{
	write_capture(path, 2, 6);
	check_refused();
	check_streams();
	assert_int_equal(make_replay(), 0);
	assert_int_equal(replay->capture.bytes[0], 2);
}

static void refuses_the_file_with_other_frames_and_its_old_time(void **state)
{
	sleep_a_tick();
	write_capture(path, 2, 5);
	check_refused();
}

static void refuses_a_file_that_is_written_to_while_it_is_read(void **state)
{
	char text[256];

	snprintf(text, sizeof(text),
		"stream east: %s was changed while it was read; try again when no program is "
		"writing to it",
		path);
	is_written_to = true;
	assert_int_not_equal(make_replay(), 0);
	assert_string_equal(error.text, text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(takes_the_file_that_was_checked),
		TEST(refuses_another_file_of_that_name),
		TEST(refuses_the_file_with_other_frames),
		TEST(refuses_the_file_with_other_frames_and_its_old_time),
		TEST(refuses_a_file_that_is_written_to_while_it_is_read),
	};

	return cmocka_run_group_tests(tests, set_up_group, tear_down_group);
}
