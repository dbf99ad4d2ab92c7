// What a worker captures, through the whole pipeline: where frames are seen, and with which bytes.
#include "datapath/fake.h"

#include "capture/capture.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HZ = 1000000000, RING_KIB = 256, POLL_MS = 1, STREAM_BYTES = 1 << 20, SEEN_MOST = 64 };
enum { BLOCK_IFACE = 1, BLOCK_PACKET = 6, NAME_AT = 16 + 4, PACKET_AT = 8, BYTES_AT = 28 };
enum { CHUNK_HEAD = sizeof(struct capture_chunk) };

// A captured frame, as the blocks of the stream say.
struct seen {
	char iface[32];
	uint32_t n;
	const uint8_t *bytes;
};

static struct capture *capture;
static int reader;
static uint8_t stream[STREAM_BYTES];
static size_t n_bytes;
static struct seen seen[SEEN_MOST];
static unsigned n_seen;

static void begin(unsigned variant)
{
	struct capture_settings settings = {.port = -1,
		.wants_received = true,
		.wants_sent = true,
		.snap = CAPTURE_SNAP_MOST,
		.ring_kib = RING_KIB};
	struct error error = {""};
	int fds[2];

	fake_reset(fake_variants[variant]);
	for (unsigned v = 0; v < N_VERDICTS; v++)
		settings.wants[v] = true;
	for (unsigned p = 0; p < FAKE_PORTS; p++)
		snprintf(settings.port_name[p], sizeof(settings.port_name[p]), "p%u", p);
	assert_int_equal(capture_open(&capture, &(struct capture_program){1, fake.rcu, HZ}, &error),
		0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(capture_start(capture, &settings, &error), 0);
	capture_attach(capture, fds[0]);
	reader = fds[1];
	while (!capture_producer(capture_live(capture), 0)) {
		capture_poll(capture);
		poll(NULL, 0, POLL_MS);
	}
	fake.worker.captures = capture_live(capture);
}

static void read_stream(void)
{
	ssize_t n;

	n_bytes = 0;
	shutdown(reader, SHUT_WR);
	do {
		capture_poll(capture);
		poll(&(struct pollfd){.fd = reader, .events = POLLIN}, 1, POLL_MS);
		n = read(reader, stream + n_bytes, STREAM_BYTES - n_bytes);
		n_bytes += n > 0 ? n : 0;
	} while (n > 0 || (n < 0 && errno == EAGAIN));
	assert_int_equal(n, 0);
	close(reader);
	capture_close(capture);
	fake.worker.captures = NULL;
}

static void see(const uint8_t *block, uint32_t kind, const uint8_t *ifaces[], unsigned *n_ifaces)
{
	if (kind == BLOCK_IFACE)
		ifaces[(*n_ifaces)++] = block;
	if (kind != BLOCK_PACKET)
		return;
	struct seen *one = &seen[n_seen++];
	uint32_t iface;
	uint16_t n_name;

	assert_in_range(n_seen, 1, SEEN_MOST);
	memcpy(&iface, block + PACKET_AT, sizeof(iface));
	assert_in_range(iface, 0, *n_ifaces - 1);
	memcpy(&n_name, ifaces[iface] + NAME_AT - sizeof(n_name), sizeof(n_name));
	snprintf(one->iface, sizeof(one->iface), "%.*s", n_name, ifaces[iface] + NAME_AT);
	memcpy(&one->n, block + PACKET_AT + 12, sizeof(one->n));
	one->bytes = block + BYTES_AT;
}

// Runs the worker and reads what was captured.
static void run(void)
{
	const uint8_t *ifaces[SEEN_MOST];
	unsigned n_ifaces = 0;

	fake_run();
	read_stream();
	n_seen = 0;
	for (size_t at = 0; at < n_bytes;) {
		uint32_t n_chunk, head[2];

		memcpy(&n_chunk, stream + at, sizeof(n_chunk));
		at += CHUNK_HEAD;
		for (size_t end = at + n_chunk; at < end; at += head[1]) {
			memcpy(head, stream + at, sizeof(head));
			see(stream + at, head[0], ifaces, &n_ifaces);
		}
	}
}

static void expect_seen(const char *iface, const struct bytes *frame)
{
	for (unsigned i = 0; i < n_seen; i++) {
		if (strcmp(seen[i].iface, iface) || seen[i].n != frame->n ||
			memcmp(seen[i].bytes, frame->at, frame->n))
			continue;
		seen[i].n = 0;
		return;
	}
	fail_msg("no such frame of %u bytes on %s", frame->n, iface);
}

static void expect_no_more(void)
{
	for (unsigned i = 0; i < n_seen; i++)
		if (seen[i].n)
			fail_msg("a frame of %u bytes on %s", seen[i].n, seen[i].iface);
}

static void forwarded_frames_are_seen_twice(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		struct bytes frame = frame_to(0, "10.1.2.3"), out = frame_forwarded(&frame, 1);

		begin(v);
		fake_receive(0, &frame);
		run();
		expect_seen("p0", &frame);
		expect_seen("p1", &out);
		expect_no_more();
	}
}

static void dropped_packets_have_their_bytes(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		struct bytes frame = frame_to(0, "198.51.100.1"), runt = frame_to(2, "10.1.2.3");

		runt.n = 30;
		begin(v);
		fake.worker.tap = NULL;
		fake_receive(0, &frame);
		fake_receive(2, &runt);
		run();
		expect_seen("drop:no_route", &frame);
		expect_seen("drop:runt", &runt);
		expect_seen("p0", &frame);
		expect_seen("p2", &runt);
		expect_no_more();
	}
}

static void punted_packets_have_their_bytes(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		struct bytes frame = frame_to(0, "198.51.100.1");

		begin(v);
		fake_receive(0, &frame);
		run();
		expect_seen("punt:no_route", &frame);
		expect_seen("p0", &frame);
		expect_no_more();
	}
}

static void packets_that_no_ring_takes_are_dropped(void **state)
{
	struct bytes frame = frame_to(0, "198.51.100.1");
	unsigned n = 0, n_full = 0;

	begin(1);
	while (rte_ring_sp_enqueue(fake.tap.punt[CLASS_UNREACHABLE], fake_mbuf(&frame)) == 0)
		n++;
	fake.n_made = 0; // not of this worker
	fake_receive(0, &frame);
	assert_true(n > 0);
	run();
	for (unsigned i = 0; i < n_seen; i++)
		n_full += !strcmp(seen[i].iface, "drop:punt_ring_full");
	assert_int_equal(n_full, 1);
	assert_int_equal(n_seen, 2);
}

static void refused_frames_are_not_seen_as_sent(void **state)
{
	for (unsigned v = 0; v < FAKE_VARIANTS; v++) {
		struct bytes frame = frame_to(0, "10.1.2.3"), out = frame_forwarded(&frame, 1);

		begin(v);
		fake.device[1].takes = 1;
		fake_receive(0, &frame);
		fake_receive(0, &frame);
		run();
		expect_seen("p0", &frame);
		expect_seen("p0", &frame);
		expect_seen("p1", &out);
		expect_seen("drop:tx_refused", &out);
		expect_no_more();
	}
}

static void frames_of_linux_are_seen(void **state)
{
	struct bytes frame = frame_to(0, "10.1.2.3");

	begin(1);
	fake_inject(1, &frame);
	fake_inject(2, &frame);
	fake.states[2].up = false;
	run();
	expect_seen("p1", &frame);
	expect_seen("drop:port_down", &frame);
	expect_no_more();
}

static void cross_connected_frames_are_seen(void **state)
{
	struct bytes frame = frame_to(0, "10.1.2.3");

	begin(1);
	fake.states[0].is_xconnect = true;
	fake.states[0].xconnect = 3;
	fake_receive(0, &frame);
	run();
	expect_seen("p0", &frame);
	expect_seen("p3", &frame);
	expect_no_more();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forwarded_frames_are_seen_twice),
		cmocka_unit_test(dropped_packets_have_their_bytes),
		cmocka_unit_test(punted_packets_have_their_bytes),
		cmocka_unit_test(packets_that_no_ring_takes_are_dropped),
		cmocka_unit_test(refused_frames_are_not_seen_as_sent),
		cmocka_unit_test(frames_of_linux_are_seen),
		cmocka_unit_test(cross_connected_frames_are_seen),
	};

	return cmocka_run_group_tests(tests, fake_open, fake_close);
}
