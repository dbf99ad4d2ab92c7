// What the files of the listener share. Control thread.
#pragma once

#include "netlink/bursts.h"
#include "netlink/decode.h"
#include "netlink/listen.h"
#include "netlink/sections.h"
#include "netlink/socket.h"

enum { LISTEN_PIECE_BYTES = 256 << 10 };

enum stage {
	STAGE_FOLLOWING,
	STAGE_GAP,    // messages were lost: all news are thrown away until there are none
	STAGE_ASK,    // the next section is to be asked for
	STAGE_ANSWER, // its pieces come
};

struct listen {
	struct listen_ops ops;
	int namespace, epoll, ask;
	int news[N_PROTOS], dump[N_PROTOS]; // -1: this kernel has none
	struct socket_buffer held;
	uint8_t *piece; // of a dump or an answer
	uint8_t stage;  // enum stage
	unsigned section, pass;
	// The section that is being dumped: something of it went meanwhile; it changed while it was
	// told; a message of it could not be understood.
	bool is_disturbed, is_interrupted, is_unsound;
	bool wants_dump;
	uint32_t partial;  // kinds that this dump could not tell whole
	uint32_t failing;  // sections (1 << their number) of which that was said
	uint64_t retry_ns; // after so long the dump that was partial is repeated; 0: it was not
	uint32_t sequence, asked; // of dumps; of questions, which may come in the middle of one
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

// A dump goes through all sections; it ends by itself.
bool dump_is_due(const struct listen *listen);
void dump_begin(struct listen *listen);
void dump_stop(struct listen *listen); // in the middle of a section
// The next section is asked for (STAGE_ASK). / A piece of it is taken in (STAGE_ANSWER).
void dump_ask(struct listen *listen);
void dump_take_piece(struct listen *listen);
