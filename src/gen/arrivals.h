// When each received frame of a stream arrived: a log from which rates over windows and bursts of
// each flow are computed. One writer: the worker that polls the stream's ports. Creation, and
// writing to a file: control thread, also while the worker goes on.
#pragma once

#include "base/bits.h"
#include "base/error.h"
#include "gen/recognise.h"
#include "gen/stream.h"

struct arrivals;

// One frame, as it is written to a file: little endian, without padding.
struct arrivals_record {
	uint64_t at_ns;    // when the poll that received it began, from the start of the run on
	uint64_t delay_ns; // since it was due
	uint32_t flow;
	uint32_t bytes; // with FCS
};
_Static_assert(sizeof(struct arrivals_record) == 24, "as the file has it");

// How the times of a run are read.
struct arrivals_clock {
	uint64_t start, hz; // TSC
};

struct arrivals_written {
	uint64_t frames, missed; // missed: arrived when the log was full
};

// NULL in *out if the stream logs nothing. 0, or -ENOMEM with `error` set. Owner: caller,
// arrivals_destroy.
int arrivals_create(struct arrivals **out, const struct gen_stream *stream, struct error *error);
void arrivals_destroy(struct arrivals *arrivals);
// Logs frames that have arrived at `now`, with the flow of each, and its cycles since it was due.
// Worker.
void arrivals_add(struct arrivals *arrivals, const struct whole *frames, const uint32_t flow[],
	const uint64_t since_due[], uint64_t now);
// Writes all that is logged so far to a new file, which replaces `path`. 0, or -errno with `error`
// set.
int arrivals_write(const struct arrivals *arrivals, const char *path,
	const struct arrivals_clock *clock, struct arrivals_written *written, struct error *error);
