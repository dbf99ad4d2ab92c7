// Logs when frames arrive: 16 bytes each.
#include "gen/arrivals.h"

#include "base/pages.h"
#include "gen/new_file.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_BITS = 16, UNIT_BITS = 4, WRITTEN_AT_ONCE = 4096 };
static const uint64_t TIME_MASK = UINT64_MAX >> BYTES_BITS;

struct entry {
	uint64_t time_bytes; // 48 bits of the TSC, in units of 16 cycles, and 16 of the bytes
	uint32_t flow;
	uint32_t lag; // since it was due, in the same units; the most if it is longer
};

struct arrivals {
	uint64_t n;      // atomic: stored after the entries
	uint64_t missed; // atomic
	uint64_t size;
	struct entry *entry;
};

static size_t bytes_of(uint64_t n)
{
	return n * sizeof(struct entry);
}

int arrivals_create(struct arrivals **out, const struct gen_stream *stream, struct error *error)
{
	const uint64_t available = pages_available();
	const size_t bytes = bytes_of(stream->n_logged);
	struct arrivals *a = stream->n_logged ? calloc(1, sizeof(*a)) : NULL;

	*out = a;
	if (!stream->n_logged)
		return 0;
	if (a && bytes < available)
		a->entry = pages_alloc(bytes);
	if (!a || !a->entry) {
		free(a);
		*out = NULL;
		return error_set(error, -ENOMEM,
			"stream %s: the log of %u arrivals takes %zu KiB of memory, but only %llu "
			"KiB are available; lower log_arrivals",
			stream->name, stream->n_logged, bytes >> 10,
			(unsigned long long)available >> 10);
	}
	a->size = stream->n_logged;
	// Touched here, so that no worker takes the page faults.
	memset(a->entry, 0, bytes);
	return 0;
}

void arrivals_destroy(struct arrivals *a)
{
	if (!a)
		return;
	pages_free(a->entry, bytes_of(a->size));
	free(a);
}

void arrivals_add(struct arrivals *a, const struct whole *frames, const uint32_t flow[],
	const uint64_t since_due[], uint64_t now)
{
	const uint64_t n = MIN_OF((uint64_t)frames->n, a->size - a->n);

	for (uint64_t i = 0; i < n; i++)
		a->entry[a->n + i] = (struct entry){now >> UNIT_BITS << BYTES_BITS |
							    (frames->bytes[i] & UINT16_MAX),
			flow[i], MIN_OF(since_due[i] >> UNIT_BITS, (uint64_t)UINT32_MAX)};
	__atomic_store_n(&a->missed, a->missed + frames->n - n, __ATOMIC_RELAXED);
	__atomic_store_n(&a->n, a->n + n, __ATOMIC_RELEASE); // partner: write_all
}

static uint64_t ns_of(uint64_t cycles, uint64_t hz)
{
	return (unsigned __int128)cycles * 1000000000u / hz;
}

struct writing {
	const struct arrivals *arrivals;
	const struct arrivals_clock *clock;
	struct arrivals_written *written;
};

// A frame that came before the start, by a poll that began before it, came at 0.
static struct arrivals_record record_of(const struct entry *e, const struct arrivals_clock *clock)
{
	const uint64_t start = clock->start >> UNIT_BITS;
	const uint64_t since = ((e->time_bytes >> BYTES_BITS) - start) & TIME_MASK;
	const bool is_before = since > TIME_MASK / 2;
	const uint64_t lag = (uint64_t)e->lag << UNIT_BITS;

	return (struct arrivals_record){htole64(is_before ? 0
							  : ns_of(since << UNIT_BITS, clock->hz)),
		htole64(ns_of(lag, clock->hz)), htole32(e->flow),
		htole32(e->time_bytes & UINT16_MAX)};
}

static bool write_all(void *ctx, FILE *file)
{
	static struct arrivals_record part[WRITTEN_AT_ONCE];
	const struct writing *w = ctx;
	const struct arrivals *a = w->arrivals;
	const uint64_t n = __atomic_load_n(&a->n, __ATOMIC_ACQUIRE); // partner: arrivals_add

	w->written->missed = __atomic_load_n(&a->missed, __ATOMIC_RELAXED);
	w->written->frames = n;
	for (uint64_t at = 0; at < n; at += WRITTEN_AT_ONCE) {
		const uint64_t n_part = MIN_OF(n - at, (uint64_t)WRITTEN_AT_ONCE);

		for (uint64_t i = 0; i < n_part; i++)
			part[i] = record_of(&a->entry[at + i], w->clock);
		if (fwrite(part, sizeof(part[0]), n_part, file) != n_part)
			return false;
	}
	return true;
}

int arrivals_write(const struct arrivals *arrivals, const char *path,
	const struct arrivals_clock *clock, struct arrivals_written *written, struct error *error)
{
	struct writing writing = {arrivals, clock, written};

	return new_file(path, write_all, &writing, error);
}
