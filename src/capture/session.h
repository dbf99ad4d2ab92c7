// Private to capture: a capture, its producers and its thread.
#pragma once

#include "capture/capture.h"
#include "capture/pcapng.h"
#include "capture/ring.h"

// The states of a session, in order.
enum capture_state {
	CAPTURE_STARTING,  // no thread yet
	CAPTURE_TOUCHING,  // the thread makes the memory of the rings present
	CAPTURE_TOUCHED,   // set by the thread: there is nothing that producers would wait for
	CAPTURE_BEGINNING, // set by the control thread: published; some producers may not have
	                   // seen it yet
	CAPTURE_RUNNING,   // set by the control thread: all producers capture
	CAPTURE_ENDING,    // set by the thread: no more frames are wanted
	CAPTURE_QUIET,     // set by the control thread: no producer uses the session any more
	CAPTURE_DONE,      // set by the thread when it ends
};

struct capture_session {
	struct capture_settings settings;
	unsigned n_producers;
	struct capture_producer *producer; // of the workers, and of the tap thread at the end
	uint32_t state;                    // enum capture_state; atomic, acquire and release
	uint64_t give_up_ns; // when the reader must have taken all, by clock_now_ns; 0: no limit;
	                     // atomic, relaxed; set by the control thread
	int fd;
	uint64_t hz; // of the TSC
	pthread_t thread;
	// Of the thread.
	struct pcapng out;
	uint64_t captured, missed; // what the last chunk says
	bool is_reader_gone;
};

// thread.c: the thread of a session.
void *capture_run(void *session);

static inline uint64_t capture_missed(const struct capture_session *session)
{
	uint64_t missed = 0;

	for (unsigned i = 0; i < session->n_producers; i++)
		missed += stats_read(&session->producer[i].missed);
	return missed;
}
