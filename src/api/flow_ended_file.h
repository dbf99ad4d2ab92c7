// The file of ended flows: a thread appends a line of JSON for each. Control thread.
#pragma once

#include "flow/flow.h"

#include <net/if.h>

// A flow that has ended.
struct flow_ended_row {
	uint64_t start; // of the process, so that sequence numbers of several can be told apart
	uint64_t seq;
	uint64_t ended_ms; // since 1970
	struct flow_key key;
	uint64_t packets, bytes, idle_ms;
	uint32_t subscriber;
	uint8_t reason, effect; // enum flow_reason, flow_effect
	char vrf[IF_NAMESIZE];
};
const char *flow_reason_word(unsigned reason);

struct flow_ended_file;

// The thread reads ring[seq % n], and writes to `fd`, which it owns; negative: no file. NULL with
// `error` set. / Writes what is left, as far as it can be written.
struct flow_ended_file *flow_ended_file_start(const struct flow_ended_row *ring, uint64_t n, int fd,
	struct error *error);
void flow_ended_file_stop(struct flow_ended_file *file);
// What is not written yet goes to the new file; negative: none.
void flow_ended_file_change(struct flow_ended_file *file, int fd);
// Rows up to `last` are there.
void flow_ended_file_wake(struct flow_ended_file *file, uint64_t last);
// How many of the rows up to `last` may not be overwritten yet: they are not written.
uint64_t flow_ended_file_behind(struct flow_ended_file *file, uint64_t last);
// Whether the latest attempt to write failed. / Then, if no other is under way, counts the oldest
// half of the ring as lost.
bool flow_ended_file_fails(struct flow_ended_file *file);
void flow_ended_file_lose(struct flow_ended_file *file, uint64_t last);

struct flow_ended_file_usage {
	uint64_t n_written, n_lost;
	struct error error; // "": none
};
void flow_ended_file_usage(struct flow_ended_file *file, struct flow_ended_file_usage *usage);
