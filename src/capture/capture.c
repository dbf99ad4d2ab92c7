// Starts and ends captures. Control thread.
#include "capture/session.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/pages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	CHUNK_BYTES = 256 << 10,
	LAST_MS = 1000,       // for the reader to take what is left when the program ends
	LEFT_MS = 10000,      // when the capture has ended, and what all rings take at
	LEFT_KIB_PER_MS = 10, // this rate
};

struct capture {
	struct capture_live live;
	struct capture_program program;
	struct capture_session *session; // also while it ends; NULL: none
	bool is_ending;                  // no producer can find it any more
	uint64_t grace; // token, after the session was published and after it was withdrawn
};

int capture_open(struct capture **out, const struct capture_program *program, struct error *error)
{
	struct capture *capture = calloc(1, sizeof(*capture));

	if (!capture)
		return error_set(error, -ENOMEM, "not enough memory for captures");
	capture->program = *program;
	pthread_mutex_init(&capture->live.lock, NULL);
	*out = capture;
	return 0;
}

struct capture_live *capture_live(struct capture *capture)
{
	return capture ? &capture->live : NULL;
}

struct capture_producer *capture_producer_of(struct capture_session *session, unsigned worker)
{
	session->producer[worker].in_port = CAPTURE_PORT_UNKNOWN;
	return &session->producer[worker];
}

static void free_session(struct capture *capture)
{
	struct capture_session *s = capture->session;

	for (unsigned i = 0; s->producer && i < s->n_producers; i++)
		capture_ring_free(&s->producer[i]);
	free(s->producer);
	pcapng_close(&s->out);
	free(s->settings.program);
	free(s);
	capture->session = NULL;
	capture->is_ending = false;
}

static int make_producers(struct capture_session *s)
{
	s->producer = aligned_alloc(CACHE_LINE_BYTES, s->n_producers * sizeof(*s->producer));
	if (!s->producer)
		return -ENOMEM;
	memset(s->producer, 0, s->n_producers * sizeof(*s->producer));
	for (unsigned i = 0; i < s->n_producers; i++) {
		int err = capture_ring_make(&s->producer[i], s->settings.ring_kib * 1024ull);
		if (err)
			return err;
		s->producer[i].session = s;
	}
	return pcapng_open(&s->out, &s->settings, CHUNK_BYTES);
}

// Rings that take all memory would end the program, or others.
static int check_start(const struct capture *capture, const struct capture_settings *settings,
	struct error *error)
{
	const uint64_t n = capture->program.n_workers + 1ull;
	const uint64_t kib = n * settings->ring_kib, available_kib = pages_available() >> 10;

	if (capture->session)
		return error_set(error, -EBUSY,
			"another capture is running: end it first, since there is one at a time");
	if (kib <= available_kib / 2)
		return 0;
	return error_set(error, -ENOMEM,
		"%" PRIu64 " rings of %" PRIu32 " KiB would take more than half of the %" PRIu64
		" MiB of memory that are available; use a smaller buffer",
		n, settings->ring_kib, available_kib >> 10);
}

int capture_start(struct capture *capture, const struct capture_settings *settings,
	struct error *error)
{
	capture_poll(capture); // one may just have ended
	int err = check_start(capture, settings, error);
	struct capture_session *s = err ? NULL : calloc(1, sizeof(*s));

	if (!s) {
		free(settings->program);
		return err ? err : error_set(error, -ENOMEM, "not enough memory for a capture");
	}
	s->settings = *settings;
	s->n_producers = capture->program.n_workers + 1;
	s->hz = capture->program.hz;
	capture->session = s;
	err = make_producers(s);
	if (err) {
		free_session(capture);
		return error_set(error, err,
			"not enough memory for %u rings of %" PRIu32 " KiB; use a smaller buffer",
			capture->program.n_workers + 1, settings->ring_kib);
	}
	return 0;
}

bool capture_is_starting(const struct capture *capture)
{
	return capture->session &&
	       __atomic_load_n(&capture->session->state, __ATOMIC_RELAXED) == CAPTURE_STARTING;
}

bool capture_runs(const struct capture *capture)
{
	return capture && capture->session;
}

static void publish(struct capture *capture, struct capture_session *session)
{
	pthread_mutex_lock(&capture->live.lock);
	__atomic_store_n(&capture->live.session, session, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&capture->live.lock);
}

void capture_attach(struct capture *capture, int fd)
{
	struct capture_session *s = capture->session;

	if (fd < 0) {
		free_session(capture);
		return;
	}
	s->fd = fd;
	s->state = CAPTURE_TOUCHING;
	int err = pthread_create(&s->thread, NULL, capture_run, s);
	if (err) {
		log_error("cannot create the thread of a capture: %s", strerror(err));
		close(fd);
		free_session(capture);
		return;
	}
	pthread_setname_np(s->thread, "dl3d-capture");
	log_info("capture: started");
}

static void finish(struct capture *capture)
{
	struct capture_session *s = capture->session;

	pthread_join(s->thread, NULL);
	log_info("capture: ended; captured %" PRIu64 ", missed %" PRIu64, s->captured, s->missed);
	free_session(capture);
}

static bool has_passed(const struct capture *capture)
{
	return rcu_has_passed(capture->program.rcu, capture->grace);
}

static void limit_reader(struct capture_session *s, uint64_t ms)
{
	__atomic_store_n(&s->give_up_ns, clock_now_ns() + ms * 1000000, __ATOMIC_RELAXED);
}

void capture_poll(struct capture *capture)
{
	struct capture_session *s = capture ? capture->session : NULL;
	const uint32_t state = s ? __atomic_load_n(&s->state, __ATOMIC_ACQUIRE) : CAPTURE_STARTING;

	if (state == CAPTURE_TOUCHED) {
		__atomic_store_n(&s->state, CAPTURE_BEGINNING, __ATOMIC_RELEASE);
		publish(capture, s);
		capture->grace = rcu_start_grace(capture->program.rcu);
	}
	if (state == CAPTURE_BEGINNING && has_passed(capture))
		__atomic_store_n(&s->state, CAPTURE_RUNNING, __ATOMIC_RELEASE);
	if (state == CAPTURE_ENDING && !capture->is_ending) {
		publish(capture, NULL);
		capture->grace = rcu_start_grace(capture->program.rcu);
		capture->is_ending = true;
	}
	if (state == CAPTURE_ENDING && has_passed(capture)) {
		const uint64_t kib = (uint64_t)s->n_producers * s->settings.ring_kib;

		limit_reader(s, LEFT_MS + kib / LEFT_KIB_PER_MS);
		__atomic_store_n(&s->state, CAPTURE_QUIET, __ATOMIC_RELEASE);
	}
	if (state == CAPTURE_DONE)
		finish(capture);
}

void capture_close(struct capture *capture)
{
	if (!capture)
		return;
	if (capture->session && capture_is_starting(capture))
		free_session(capture);
	if (capture->session) {
		uint32_t state = CAPTURE_BEGINNING;

		publish(capture, NULL);
		limit_reader(capture->session, LAST_MS);
		while (state < CAPTURE_QUIET &&
			!__atomic_compare_exchange_n(&capture->session->state, &state,
				CAPTURE_QUIET, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			;
		finish(capture);
	}
	pthread_mutex_destroy(&capture->live.lock);
	free(capture);
}
