// Starts and ends captures. Control thread.
#include "capture/session.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/pages.h"

#include <errno.h>
#include <inttypes.h>
#include <rte_cycles.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	CHUNK_BYTES = 256 << 10,
	LAST_MS = 1000,       // for the reader to take what is left when the program ends
	LEFT_MS = 10000,      // when the capture has ended, and what all rings take at
	LEFT_KIB_PER_MS = 10, // this rate
};

struct slot {
	struct capture_session *session; // also while it ends; NULL: none
	bool is_ending;                  // no producer can find it any more
	uint64_t grace; // token, after the session was published and after it was withdrawn
};

struct capture {
	struct capture_live live;
	struct capture_program program;
	struct slot slot[CAPTURE_SLOTS];
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

static void free_session(struct slot *slot)
{
	struct capture_session *s = slot->session;

	for (unsigned i = 0; s->producer && i < s->n_producers; i++)
		capture_ring_free(&s->producer[i]);
	free(s->producer);
	pcapng_close(&s->out);
	free(s->settings.program);
	free(s);
	slot->session = NULL;
	slot->is_ending = false;
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
		s->producer[i].random = (rte_rdtsc() + i) * 0x9e3779b97f4a7c15u | 1;
	}
	return pcapng_open(&s->out, &s->settings, CHUNK_BYTES);
}

static unsigned slot_of(const struct capture_settings *settings)
{
	return settings->is_export ? CAPTURE_EXPORT : CAPTURE_READ;
}

// Rings that take all memory would end the program, or others.
static int check_start(const struct capture *capture, const struct capture_settings *settings,
	struct error *error)
{
	const uint64_t n = capture->program.n_workers + 1ull;
	const uint64_t kib = n * settings->ring_kib, available_kib = pages_available() >> 10;

	if (capture->slot[slot_of(settings)].session)
		return error_set(error, -EBUSY,
			"another %s is running: end it first, since there is one at a time",
			settings->is_export ? "export" : "capture");
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
	capture->slot[slot_of(settings)].session = s;
	err = make_producers(s);
	if (err) {
		free_session(&capture->slot[slot_of(settings)]);
		return error_set(error, err,
			"not enough memory for %u rings of %" PRIu32 " KiB; use a smaller buffer",
			capture->program.n_workers + 1, settings->ring_kib);
	}
	return 0;
}

static bool is_starting(const struct slot *slot)
{
	return slot->session &&
	       __atomic_load_n(&slot->session->state, __ATOMIC_RELAXED) == CAPTURE_STARTING;
}

static struct slot *find_starting(const struct capture *capture)
{
	for (unsigned i = 0; i < CAPTURE_SLOTS; i++)
		if (is_starting(&capture->slot[i]))
			return (struct slot *)&capture->slot[i];
	return NULL;
}

bool capture_is_starting(const struct capture *capture)
{
	return find_starting(capture) != NULL;
}

bool capture_runs(const struct capture *capture, unsigned slot)
{
	return capture && capture->slot[slot].session;
}

static void publish(struct capture *capture, const struct slot *slot,
	struct capture_session *session)
{
	pthread_mutex_lock(&capture->live.lock);
	__atomic_store_n(&capture->live.session[slot - capture->slot], session, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&capture->live.lock);
}

static const char *word_of(const struct capture_session *session)
{
	return session->settings.is_export ? "export" : "capture";
}

void capture_attach(struct capture *capture, int fd)
{
	struct slot *slot = find_starting(capture);
	struct capture_session *s = slot->session;

	if (fd < 0) {
		free_session(slot);
		return;
	}
	s->fd = fd;
	s->state = CAPTURE_TOUCHING;
	int err = pthread_create(&s->thread, NULL, capture_run, s);
	if (err) {
		log_error("cannot create the thread of a capture: %s", strerror(err));
		close(fd);
		free_session(slot);
		return;
	}
	pthread_setname_np(s->thread, "dl3d-capture");
	log_info("%s: started", word_of(s));
}

static void finish(struct slot *slot)
{
	struct capture_session *s = slot->session;

	pthread_join(s->thread, NULL);
	log_info("%s: ended; captured %" PRIu64 ", missed %" PRIu64, word_of(s), s->captured,
		s->missed);
	free_session(slot);
}

static bool has_passed(const struct capture *capture, const struct slot *slot)
{
	return rcu_has_passed(capture->program.rcu, slot->grace);
}

static void limit_reader(struct capture_session *s, uint64_t ms)
{
	__atomic_store_n(&s->give_up_ns, clock_now_ns() + ms * 1000000, __ATOMIC_RELAXED);
}

static void poll_slot(struct capture *capture, struct slot *slot)
{
	struct capture_session *s = slot->session;
	const uint32_t state = s ? __atomic_load_n(&s->state, __ATOMIC_ACQUIRE) : CAPTURE_STARTING;

	if (state == CAPTURE_TOUCHED) {
		__atomic_store_n(&s->state, CAPTURE_BEGINNING, __ATOMIC_RELEASE);
		publish(capture, slot, s);
		slot->grace = rcu_start_grace(capture->program.rcu);
	}
	if (state == CAPTURE_BEGINNING && has_passed(capture, slot))
		__atomic_store_n(&s->state, CAPTURE_RUNNING, __ATOMIC_RELEASE);
	if (state == CAPTURE_ENDING && !slot->is_ending) {
		publish(capture, slot, NULL);
		slot->grace = rcu_start_grace(capture->program.rcu);
		slot->is_ending = true;
	}
	if (state == CAPTURE_ENDING && has_passed(capture, slot)) {
		const uint64_t kib = (uint64_t)s->n_producers * s->settings.ring_kib;

		limit_reader(s, LEFT_MS + kib / LEFT_KIB_PER_MS);
		__atomic_store_n(&s->state, CAPTURE_QUIET, __ATOMIC_RELEASE);
	}
	if (state == CAPTURE_DONE)
		finish(slot);
}

void capture_poll(struct capture *capture)
{
	for (unsigned i = 0; capture && i < CAPTURE_SLOTS; i++)
		poll_slot(capture, &capture->slot[i]);
}

static void close_slot(struct capture *capture, struct slot *slot)
{
	uint32_t state = CAPTURE_BEGINNING;

	if (is_starting(slot))
		free_session(slot);
	if (!slot->session)
		return;
	publish(capture, slot, NULL);
	limit_reader(slot->session, LAST_MS);
	while (state < CAPTURE_QUIET &&
		!__atomic_compare_exchange_n(&slot->session->state, &state, CAPTURE_QUIET, false,
			__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
	finish(slot);
}

void capture_close(struct capture *capture)
{
	if (!capture)
		return;
	for (unsigned i = 0; i < CAPTURE_SLOTS; i++)
		close_slot(capture, &capture->slot[i]);
	pthread_mutex_destroy(&capture->live.lock);
	free(capture);
}
