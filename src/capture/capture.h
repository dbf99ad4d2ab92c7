// Captures of frames on running workers, as a stream of pcapng blocks: one that somebody reads and
// one that exports samples at a time, each with a thread that reads the rings of the producers and
// writes to a socket. Control thread.
#pragma once

#include "base/error.h"
#include "capture/capture_fast.h"
#include "rcu/rcu.h"
#include "stats/stats.h"

#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdint.h>

struct capture;

#define CAPTURE_SAMPLE_MOST 1000000000

enum {
	CAPTURE_SNAP_LEAST = 14,
	CAPTURE_SNAP_MOST = 65535,
	CAPTURE_RING_KIB_LEAST = 256, // two of the longest frames fit
	CAPTURE_RING_KIB_MOST = 1 << 20,
	CAPTURE_PROGRAM_MOST = 4096,
	CAPTURE_NAME_MAX = 32,
};

struct capture_settings {
	int port;       // -1: all
	bool is_export; // takes the place of exports, not that of captures
	bool wants_received, wants_sent;
	bool wants[N_VERDICTS]; // dropped and punted ones, by verdict
	uint32_t snap;          // bytes of each frame, CAPTURE_SNAP_LEAST to CAPTURE_SNAP_MOST
	uint32_t ring_kib;      // per producer; a power of two within the limits above
	uint32_t sample[CAPTURE_SAMPLED]; // one frame of so many, at random; 0 and 1: all
	uint64_t limit;                   // ends after so many frames; 0: no limit
	struct bpf_insn *program;         // filter, allocated by malloc; NULL: none
	unsigned program_length;
	char port_name[STATS_MAX_PORTS][CAPTURE_NAME_MAX]; // "" if there is no such port
};

// The stream is a sequence of chunks: this header, with little-endian numbers, and whole pcapng
// blocks. The first one comes when all workers capture; the last one may have no blocks.
struct capture_chunk {
	uint32_t bytes;    // of the blocks
	uint32_t is_last;  // 1: the stream ends here
	uint64_t captured; // frames in this chunk and all before it
	uint64_t missed;   // frames missing so far because a ring was full
};

// Checks a classic BPF program: it ends, reads and jumps only within its bounds, and forward. The
// program may come from anywhere. 0, or -EINVAL with `error` set.
int capture_check_program(const struct bpf_insn program[], unsigned n, struct error *error);

// What captures need to know of the program.
struct capture_program {
	unsigned n_workers;
	struct rcu *rcu; // borrowed
	uint64_t hz;     // of the TSC
};

// -errno with `error` set: out of memory.
int capture_open(struct capture **out, const struct capture_program *program, struct error *error);
// Ends a capture that still runs: what it has captured is written if the reader takes it within a
// second. Call when workers and the tap thread have ended. NULL is allowed.
void capture_close(struct capture *capture);

// For producers; valid until capture_close. NULL for NULL.
struct capture_live *capture_live(struct capture *capture);

// Allocates the rings of a capture, which begins when it is attached. Takes over
// settings->program in any case. With `error` set: -EBUSY, another one of its kind runs; -ENOMEM,
// also if the rings would take more than half of the memory that is available.
int capture_start(struct capture *capture, const struct capture_settings *settings,
	struct error *error);
// Whether a capture has been started and not attached.
bool capture_is_starting(const struct capture *capture);
// Whether there is one in a slot, until it has ended and another one can start. NULL is allowed.
bool capture_runs(const struct capture *capture, unsigned slot);
// Begins to write the capture that is starting to the socket `fd`, which it owns and which does not
// block; -1: gives the capture up. The reader ends it by closing its side, or only its sending side
// if it wants the rest.
void capture_attach(struct capture *capture, int fd);

// Ends captures whose reader has ended; call it often. Never waits. NULL is allowed.
void capture_poll(struct capture *capture);
