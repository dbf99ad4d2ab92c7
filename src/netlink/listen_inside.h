// Shared by the files of the listener. Control thread.
#pragma once

#include "netlink/bursts.h"
#include "netlink/decode.h"
#include "netlink/listen.h"
#include "netlink/sections.h"
#include "netlink/socket.h"

enum { LISTEN_PIECE_BYTES = 256 << 10 };

enum stage {
	STAGE_FOLLOWING,
	STAGE_GAP,    // messages were lost: notifications are discarded until the buffer is empty
	STAGE_ASK,    // the next section is about to be requested
	STAGE_ANSWER, // receiving its parts
};

struct listen {
	struct listen_ops ops;
	int namespace, epoll, ask;
	int news[N_PROTOS], dump[N_PROTOS]; // -1: not supported by this kernel
	struct socket_buffer held;
	uint8_t *piece; // of a dump or a reply
	uint8_t stage;  // enum stage
	unsigned section, pass;
	// State of the section being dumped: an object of it was deleted during the dump; it
	// changed during the dump; one of its messages was malformed.
	bool is_disturbed, is_interrupted, is_unsound;
	bool wants_dump;
	uint32_t partial;  // kinds that this dump could not return completely
	uint32_t failing;  // sections (1 << number) for which that was logged
	uint64_t retry_ns; // delay before a partial dump is repeated; 0: the dump was not partial
	uint32_t sequence, asked; // of dumps; of requests, which may be sent during a dump
	uint64_t dump_since_ns, dump_end_ns, warned_ns;
	struct listen_info info;
	struct bursts bursts;
};

struct listen_protocol {
	int protocol;
	enum decode_result (*decode)(const void *message, size_t bytes, struct event *out);
	const uint16_t *groups;
	unsigned n_groups;
};
extern const struct listen_protocol listen_protocols[N_PROTOS];

// A dump runs through all sections and then ends by itself.
bool dump_is_due(const struct listen *listen);
void dump_begin(struct listen *listen);
void dump_stop(struct listen *listen); // may be called in the middle of a section
// Requests the next section (STAGE_ASK). / Processes one part of it (STAGE_ANSWER).
void dump_ask(struct listen *listen);
void dump_take_piece(struct listen *listen);
