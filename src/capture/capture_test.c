// A whole capture: the test is the worker, the control thread and the reader.
#include "capture/fixture.h"

#include "base/log.h"
#include "rcu/rcu_fast.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <rte_cycles.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { POLL_MS = 1, STREAM_BYTES = 1 << 22, RING_KIB = 256 };

static struct rcu *rcu;
static struct capture *capture;
static int reader;
static struct stream {
	size_t n;
	uint8_t bytes[STREAM_BYTES];
} stream;

static int open_capture(void **state)
{
	struct error error = {""};

	rcu = rcu_create(1, &error);
	assert_non_null(rcu);
	stream.n = 0;
	reader = -1;
	return capture_open(&capture, &(struct capture_program){1, rcu, HZ}, &error);
}

static int close_capture(void **state)
{
	close(reader);
	capture_close(capture);
	rcu_destroy(rcu);
	return 0;
}

static struct capture_settings settings_of_all(void)
{
	struct capture_settings settings = {.port = -1,
		.wants_received = true,
		.wants_sent = true,
		.snap = CAPTURE_SNAP_MOST,
		.ring_kib = RING_KIB};

	for (unsigned v = 0; v < N_VERDICTS; v++)
		settings.wants[v] = true;
	strcpy(settings.port_name[2], "east");
	return settings;
}

static void start(const struct capture_settings *settings)
{
	struct error error = {""};
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(capture_start(capture, settings, &error), 0);
	assert_true(capture_is_starting(capture));
	capture_attach(capture, fds[0]);
	assert_false(capture_is_starting(capture));
	reader = fds[1];
	while (!capture_producer(capture_live(capture), 0)) {
		capture_poll(capture);
		poll(NULL, 0, POLL_MS);
	}
}

static void pass(struct capture_event event, unsigned n, uint8_t seed)
{
	struct capture_producer *producer = capture_producer(capture_live(capture), 0);
	struct capture_draft draft;
	struct frame frame;
	struct rte_mbuf *mbuf = make_frame(&frame, n, n, seed);

	assert_non_null(producer);
	capture_copy(producer, &draft, CAPTURE_FRAMES, &mbuf, 1);
	capture_publish(producer, &draft, &event, 1);
}

// Reads whatever is there; false: the stream has ended.
static bool read_more(void)
{
	ssize_t n = read(reader, stream.bytes + stream.n, STREAM_BYTES - stream.n);

	assert_true(n >= 0 || errno == EAGAIN);
	stream.n += n > 0 ? n : 0;
	return n != 0;
}

static void read_to_the_end(void)
{
	do {
		capture_poll(capture);
		poll(&(struct pollfd){.fd = reader, .events = POLLIN}, 1, POLL_MS);
	} while (read_more());
}

// The sums of the last chunk; the blocks of all chunks are joined in their place.
static struct capture_chunk join_chunks(void)
{
	struct capture_chunk chunk = {0};
	size_t from = 0, to = 0;

	while (!chunk.is_last) {
		assert_in_range(from + sizeof(chunk), sizeof(chunk), stream.n);
		memcpy(&chunk, stream.bytes + from, sizeof(chunk));
		from += sizeof(chunk);
		memmove(stream.bytes + to, stream.bytes + from, le32toh(chunk.bytes));
		from += le32toh(chunk.bytes);
		to += le32toh(chunk.bytes);
	}
	assert_int_equal(from, stream.n);
	stream.n = to;
	return chunk;
}

static bool has_text(const char *text)
{
	return memmem(stream.bytes, stream.n, text, strlen(text));
}

static void end(void)
{
	assert_int_equal(shutdown(reader, SHUT_WR), 0);
	read_to_the_end();
}

// Until a new one could start.
static void wait_for_the_end(void)
{
	struct capture_settings settings = settings_of_all();
	struct error error = {""};

	while (capture_start(capture, &settings, &error)) {
		capture_poll(capture);
		poll(NULL, 0, POLL_MS);
	}
	capture_attach(capture, -1);
}

static void frames_have_the_names_of_ports_and_reasons(void **state)
{
	const struct capture_settings settings = settings_of_all();
	const uint8_t *frame;
	uint8_t first[60];

	start(&settings);
	pass((struct capture_event){CAPTURE_IN, VERDICT_FORWARD, 2}, 60, 'a');
	pass((struct capture_event){CAPTURE_DROP, VERDICT_NO_ROUTE, 2}, 60, 'A');
	pass((struct capture_event){CAPTURE_PUNT, VERDICT_LOCAL, 7}, 60, 'B');
	end();
	struct capture_chunk last = join_chunks();

	assert_int_equal(le64toh(last.captured), 3);
	assert_int_equal(le64toh(last.missed), 0);
	assert_true(has_text("east"));
	assert_true(has_text("drop:no_route"));
	assert_true(has_text("dropped: no route to the destination (port east)"));
	assert_true(has_text("punt:local"));
	assert_true(has_text("punted to Linux: "));
	assert_true(has_text("(port port 7)"));
	for (unsigned i = 0; i < sizeof(first); i++)
		first[i] = 'a' + i;
	frame = memmem(stream.bytes, stream.n, first, sizeof(first));
	assert_non_null(frame);
	wait_for_the_end();
}

static void only_what_is_wanted_is_captured(void **state)
{
	struct capture_settings settings = settings_of_all();

	settings.port = 2;
	settings.wants_received = settings.wants_sent = false;
	settings.wants[VERDICT_LOCAL] = false;
	start(&settings);
	pass((struct capture_event){CAPTURE_IN, VERDICT_FORWARD, 2}, 60, 1);
	pass((struct capture_event){CAPTURE_OUT, VERDICT_FORWARD, 2}, 60, 2);
	pass((struct capture_event){CAPTURE_PUNT, VERDICT_LOCAL, 2}, 60, 3);
	pass((struct capture_event){CAPTURE_DROP, VERDICT_NO_ROUTE, 1}, 60, 4);
	pass((struct capture_event){CAPTURE_DROP, VERDICT_NO_ROUTE, 2}, 60, 5);
	end();
	assert_int_equal(le64toh(join_chunks().captured), 1);
}

static void a_capture_ends_at_its_limit(void **state)
{
	struct capture_settings settings = settings_of_all();

	settings.limit = 3;
	start(&settings);
	for (unsigned i = 0; i < 10; i++)
		pass((struct capture_event){CAPTURE_IN, VERDICT_FORWARD, 2}, 60, i);
	read_to_the_end();
	assert_int_equal(le64toh(join_chunks().captured), 3);
}

// A worker that publishes as long as it has a producer.
static void *publish_without_pause(void *unused)
{
	const struct capture_event in = {CAPTURE_IN, VERDICT_FORWARD, 2};
	struct capture_producer *producer;
	struct capture_draft draft;
	struct frame frame;
	struct rte_mbuf *mbufs[CAPTURE_BURST];

	for (unsigned i = 0; i < CAPTURE_BURST; i++)
		mbufs[i] = make_frame(&frame, 14, 14, 1);
	rcu_reader_online(rcu_readers(rcu), 0);
	while ((producer = capture_producer(capture_live(capture), 0))) {
		capture_copy(producer, &draft, CAPTURE_FRAMES, mbufs, CAPTURE_BURST);
		capture_publish(producer, &draft, &in, CAPTURE_BURST);
		rcu_reader_report(rcu_readers(rcu), 0);
	}
	rcu_reader_offline(rcu_readers(rcu), 0);
	return unused;
}

// With many rings the thread is slower than the worker and, on two free cores, never finds all of
// them empty.
static void a_capture_ends_at_its_limit_while_frames_come(void **state)
{
	enum { WORKERS = 60 };
	struct capture_settings settings = settings_of_all();
	struct error error = {""};
	pthread_t worker;

	capture_close(capture);
	assert_int_equal(capture_open(&capture, &(struct capture_program){WORKERS, rcu, HZ},
				 &error),
		0);
	settings.limit = 3;
	start(&settings);
	assert_int_equal(pthread_create(&worker, NULL, publish_without_pause, NULL), 0);
	read_to_the_end();
	pthread_join(worker, NULL);
	assert_int_equal(le64toh(join_chunks().captured), 3);
}

// The reader does not read: rings fill up, and nothing waits.
static void captured_and_missed_are_all(void **state)
{
	enum { FRAMES = 4000 };
	const struct capture_settings settings = settings_of_all();

	start(&settings);
	for (unsigned i = 0; i < FRAMES; i++)
		pass((struct capture_event){CAPTURE_IN, VERDICT_FORWARD, 2}, 1500, i);
	end();
	struct capture_chunk last = join_chunks();

	assert_true(le64toh(last.missed) > 0);
	assert_int_equal(le64toh(last.captured) + le64toh(last.missed), FRAMES);
}

static void there_is_one_at_a_time(void **state)
{
	const struct capture_settings settings = settings_of_all();
	struct error error = {""};

	start(&settings);
	assert_int_equal(capture_start(capture, &settings, &error), -EBUSY);
	assert_non_null(strstr(error.text, "another capture is running"));
	end();
	wait_for_the_end();
}

// Until workers see so many captures.
static void poll_until(unsigned wanted)
{
	unsigned n;

	do {
		capture_poll(capture);
		n = 0;
		for (const struct capture_producer *p = capture_producer(capture_live(capture), 0);
			p; p = p->next)
			n++;
	} while (n != wanted);
}

// Passes a frame to all captures, as a worker does.
static void pass_to_all(struct capture_event event)
{
	struct capture_draft draft;
	struct frame frame;
	struct rte_mbuf *mbuf = make_frame(&frame, 60, 60, 'a');

	for (struct capture_producer *p = capture_producer(capture_live(capture), 0); p;
		p = p->next)
		if (capture_wants(p, &event)) {
			capture_copy(p, &draft, CAPTURE_FRAMES, &mbuf, 1);
			capture_publish(p, &draft, &event, 1);
		}
}

static void an_export_runs_beside_a_capture(void **state)
{
	struct capture_settings settings = settings_of_all(), exported = settings_of_all();
	struct error error = {""};

	exported.is_export = true;
	exported.wants_sent = false;
	start(&settings);
	const int reader_of_capture = reader;

	start(&exported);
	assert_int_equal(capture_start(capture, &exported, &error), -EBUSY);
	assert_non_null(strstr(error.text, "another export is running"));
	poll_until(CAPTURE_SLOTS);
	pass_to_all((struct capture_event){CAPTURE_OUT, VERDICT_FORWARD, 2});
	pass_to_all((struct capture_event){CAPTURE_IN, VERDICT_FORWARD, 2});
	end();
	assert_int_equal(le64toh(join_chunks().captured), 1);
	close(reader);
	reader = reader_of_capture;
	stream.n = 0;
	poll_until(1);
	pass_to_all((struct capture_event){CAPTURE_DROP, VERDICT_NO_ROUTE, 2});
	end();
	assert_int_equal(le64toh(join_chunks().captured), 3);
	assert_true(has_text("drop:no_route"));
}

static void rings_that_take_most_memory_are_refused(void **state)
{
	struct capture_settings settings = settings_of_all();
	struct error error = {""};

	capture_close(capture);
	assert_int_equal(capture_open(&capture, &(struct capture_program){1000000, rcu, HZ},
				 &error),
		0);
	settings.ring_kib = CAPTURE_RING_KIB_MOST;
	assert_int_equal(capture_start(capture, &settings, &error), -ENOMEM);
	assert_non_null(strstr(error.text, "more than half of the"));
	assert_false(capture_runs(capture, CAPTURE_READ));
}

static void it_ends_with_its_reader(void **state)
{
	const struct capture_settings settings = settings_of_all();

	start(&settings);
	close(reader);
	reader = -1;
	wait_for_the_end();
	assert_null(capture_producer(capture_live(capture), 0));
}

// The worker is in a loop, in which it may still use the producer.
static void it_ends_after_a_grace_period(void **state)
{
	const struct capture_settings settings = settings_of_all();

	rcu_reader_online(rcu_readers(rcu), 0);
	start(&settings);
	while (!stream.n) {
		capture_poll(capture);
		rcu_reader_report(rcu_readers(rcu), 0);
		poll(NULL, 0, POLL_MS);
		assert_true(read_more());
	}
	struct capture_producer *producer = capture_producer(capture_live(capture), 0);

	assert_int_equal(shutdown(reader, SHUT_WR), 0);
	while (capture_producer(capture_live(capture), 0)) {
		capture_poll(capture);
		poll(NULL, 0, POLL_MS);
	}
	for (unsigned i = 0; i < 20; i++)
		capture_poll(capture);
	struct capture_draft draft;
	struct frame frame;
	struct rte_mbuf *mbuf = make_frame(&frame, 60, 60, 1);
	const struct capture_event in = {CAPTURE_IN, VERDICT_FORWARD, 2};

	capture_copy(producer, &draft, CAPTURE_FRAMES, &mbuf, 1);
	capture_publish(producer, &draft, &in, 1);
	rcu_reader_report(rcu_readers(rcu), 0);
	read_to_the_end();
	assert_int_equal(le64toh(join_chunks().captured), 1);
	rcu_reader_offline(rcu_readers(rcu), 0);
}

static void the_program_ends_with_what_was_captured(void **state)
{
	const struct capture_settings settings = settings_of_all();
	struct error error = {""};

	start(&settings);
	pass((struct capture_event){CAPTURE_IN, VERDICT_FORWARD, 2}, 60, 1);
	capture_close(capture);
	while (read_more())
		;
	assert_int_equal(le64toh(join_chunks().captured), 1);
	assert_int_equal(capture_open(&capture, &(struct capture_program){1, rcu, HZ}, &error), 0);
}

static void frames_that_linux_does_not_get_are_captured(void **state)
{
	const struct capture_settings settings = settings_of_all();
	struct frame frame;
	struct rte_mbuf *mbuf = make_frame(&frame, 60, 60, 1);

	mbuf->port = 2;
	capture_tap(capture_live(capture), mbuf, VERDICT_TAP_REFUSED);
	start(&settings);
	capture_tap(capture_live(capture), mbuf, VERDICT_PUNT_OVER_LIMIT);
	end();
	assert_int_equal(le64toh(join_chunks().captured), 1);
	assert_true(has_text("drop:punt_over_limit"));
}

int main(void)
{
#define CAPTURE_TEST(test) cmocka_unit_test_setup_teardown(test, open_capture, close_capture)
	const struct CMUnitTest tests[] = {
		CAPTURE_TEST(frames_have_the_names_of_ports_and_reasons),
		CAPTURE_TEST(only_what_is_wanted_is_captured),
		CAPTURE_TEST(a_capture_ends_at_its_limit),
		CAPTURE_TEST(a_capture_ends_at_its_limit_while_frames_come),
		CAPTURE_TEST(captured_and_missed_are_all),
		CAPTURE_TEST(there_is_one_at_a_time),
		CAPTURE_TEST(an_export_runs_beside_a_capture),
		CAPTURE_TEST(rings_that_take_most_memory_are_refused),
		CAPTURE_TEST(it_ends_with_its_reader),
		CAPTURE_TEST(it_ends_after_a_grace_period),
		CAPTURE_TEST(the_program_ends_with_what_was_captured),
		CAPTURE_TEST(frames_that_linux_does_not_get_are_captured),
	};

	log_start("test");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
