// Shared by the tests of capture: a frame in an mbuf, and a producer without a thread.
#pragma once

#include "capture/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { ROOM = 2048, HZ = 1000000000 };

struct frame {
	struct rte_mbuf mbuf, rest; // `rest`: the second buffer, if there are two
	uint8_t bytes[ROOM];
};

// `n` bytes that depend on `seed`, the first `n_first` of them in the first buffer.
static inline struct rte_mbuf *make_frame(struct frame *frame, unsigned n, unsigned n_first,
	uint8_t seed)
{
	for (unsigned i = 0; i < n; i++)
		frame->bytes[i] = seed + i;
	frame->rest = (struct rte_mbuf){.buf_addr = frame->bytes + n_first,
		.data_len = n - n_first,
		.nb_segs = 1};
	frame->mbuf = (struct rte_mbuf){.buf_addr = frame->bytes,
		.data_len = n_first,
		.pkt_len = n,
		.nb_segs = n_first < n ? 2 : 1,
		.next = n_first < n ? &frame->rest : NULL};
	return &frame->mbuf;
}
