// The thread of a capture: moves frames from the rings into a stream of pcapng blocks, in the order
// of their times as far as they are there, and writes it to the reader. A reader that is slow makes
// rings full, and frames of the capture missing. Capture thread.
#include "capture/session.h"

#include "base/clock.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <rte_cycles.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	NAP_MS = 5, // between looks at empty rings
	TOUCH_BYTES = 1 << 20,
	WAIT_MS = 50, // for a reader that does not read
};
static const int64_t second_ns = 1000000000;

static uint32_t state_of(const struct capture_session *s)
{
	return __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);
}

// The control thread changes the state only after this one has asked for it, or at the end.
static void ask_for_end(struct capture_session *s)
{
	uint32_t running = CAPTURE_RUNNING;

	__atomic_compare_exchange_n(&s->state, &running, CAPTURE_ENDING, false, __ATOMIC_ACQ_REL,
		__ATOMIC_ACQUIRE);
}

// Whether the reader has closed its side, or only its sending side. It has nothing to say.
static bool reader_has_ended(const struct capture_session *s)
{
	char said[64];
	ssize_t n = recv(s->fd, said, sizeof(said), MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

// Whether the reader may still take what is left.
static bool is_patient(const struct capture_session *s)
{
	const uint64_t until_ns = __atomic_load_n(&s->give_up_ns, __ATOMIC_RELAXED);

	return !until_ns || clock_now_ns() < until_ns;
}

static void wait_for_reader(struct capture_session *s)
{
	struct pollfd polled = {.fd = s->fd, .events = POLLOUT};

	poll(&polled, 1, WAIT_MS);
	if (reader_has_ended(s))
		ask_for_end(s);
}

static void write_all(struct capture_session *s, const void *from, size_t n)
{
	const uint8_t *at = from;

	while (n && !s->is_reader_gone) {
		ssize_t written = send(s->fd, at, n, MSG_NOSIGNAL);

		if (written > 0) {
			at += written;
			n -= written;
		} else if (written < 0 && errno != EAGAIN && errno != EINTR) {
			s->is_reader_gone = true;
		} else {
			wait_for_reader(s);
		}
		s->is_reader_gone |= !is_patient(s);
	}
	if (s->is_reader_gone)
		ask_for_end(s);
}

static bool is_complete(const struct capture_session *s)
{
	return s->settings.limit && s->captured >= s->settings.limit;
}

static void write_chunk(struct capture_session *s, bool is_last)
{
	if (!is_complete(s))
		s->missed = capture_missed(s);
	const struct capture_chunk chunk = {.bytes = htole32(s->out.n),
		.is_last = htole32(is_last),
		.captured = htole64(s->captured),
		.missed = htole64(s->missed)};

	write_all(s, &chunk, sizeof(chunk));
	write_all(s, s->out.block, s->out.n);
	s->out.n = 0;
}

// The TSC and the time since 1970 at one moment.
struct now {
	uint64_t cycles, ns;
};

static struct now read_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (struct now){rte_rdtsc(), t.tv_sec * second_ns + t.tv_nsec};
}

static uint64_t time_of(const struct capture_session *s, const struct now *now, uint64_t cycles)
{
	const int64_t ago = now->cycles - cycles;

	return now->ns - (int64_t)((__int128)ago * second_ns / s->hz);
}

static struct capture_producer *find_oldest(struct capture_session *s,
	const struct capture_record **oldest)
{
	struct capture_producer *found = NULL;

	for (unsigned i = 0; i < s->n_producers; i++) {
		const struct capture_record *record = capture_ring_peek(&s->producer[i]);

		if (!record || (found && (int64_t)(record->cycles - (*oldest)->cycles) >= 0))
			continue;
		*oldest = record;
		found = &s->producer[i];
	}
	return found;
}

// Moves frames from the rings to the chunk, as many as it has space for; false: no ring has any, or
// the limit is reached.
static bool drain(struct capture_session *s)
{
	const struct now now = read_now();
	const struct capture_record *record;
	struct capture_producer *from;

	while (!is_complete(s) && pcapng_has_space(&s->out) && (from = find_oldest(s, &record))) {
		pcapng_add(&s->out, record, time_of(s, &now, record->cycles));
		capture_ring_pop(from, record);
		s->captured++;
		if (is_complete(s)) // what is missing from here on is not wanted
			s->missed = capture_missed(s);
	}
	return !is_complete(s) && !pcapng_has_space(&s->out);
}

static void nap(const struct capture_session *s)
{
	const bool runs = state_of(s) == CAPTURE_RUNNING;
	struct pollfd polled = {.fd = runs ? s->fd : -1, .events = POLLIN};

	poll(&polled, 1, NAP_MS);
}

// Until the program ends.
static void touch_rings(struct capture_session *s)
{
	const uint64_t bytes = s->settings.ring_kib * 1024ull + CAPTURE_SNAP_MOST;
	uint32_t touching = CAPTURE_TOUCHING;

	for (unsigned i = 0; i < s->n_producers; i++)
		for (uint64_t at = 0; at < bytes && state_of(s) == CAPTURE_TOUCHING;
			at += TOUCH_BYTES)
			capture_ring_touch(&s->producer[i], at, TOUCH_BYTES);
	__atomic_compare_exchange_n(&s->state, &touching, CAPTURE_TOUCHED, false, __ATOMIC_ACQ_REL,
		__ATOMIC_ACQUIRE);
}

// No producer uses them any more. Large ones take long, which the control thread has no time for.
static void free_rings(struct capture_session *s)
{
	for (unsigned i = 0; i < s->n_producers; i++)
		capture_ring_free(&s->producer[i]);
}

void *capture_run(void *session)
{
	struct capture_session *s = session;
	bool is_quiet;

	setpriority(PRIO_PROCESS, gettid(), 0); // the control thread has more
	touch_rings(s);
	while (state_of(s) < CAPTURE_RUNNING)
		poll(NULL, 0, NAP_MS);
	pcapng_begin(&s->out);
	do {
		is_quiet = state_of(s) >= CAPTURE_QUIET; // nothing is added after this
		const bool has_more = drain(s);

		if (s->out.n)
			write_chunk(s, false);
		if (is_complete(s) || reader_has_ended(s))
			ask_for_end(s);
		is_quiet &= !has_more || s->is_reader_gone;
		if (!is_quiet && !has_more)
			nap(s);
	} while (!is_quiet);
	free_rings(s);
	write_chunk(s, true);
	close(s->fd);
	__atomic_store_n(&s->state, CAPTURE_DONE, __ATOMIC_RELEASE);
	return NULL;
}
