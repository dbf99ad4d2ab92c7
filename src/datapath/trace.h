// Notes what happens to a traced packet. Internal to the datapath; called by steps and by what they
// use, only if w->trace is set: on the worker of the control thread that trace.c makes. Control
// thread.
#pragma once

#include "datapath/datapath.h"
#include "datapath/steps.h"

// The first step that runs for the frames of this port.
uint8_t trace_first_step(const struct port_state *from);
// Has the steps of a worker note what they do.
void trace_wrap_steps(struct worker *w);

// The packet of a burst of one that a step took out of the others.
void trace_packet(struct trace *t, const struct burst *one);
// A rule that matches it. `step` is set here.
void trace_rule(struct worker *w, const struct trace_rule *rule);
// In place of what workers do with frames: sends them, / passes one to Linux; false: it has no
// class. They are freed. / One is dropped; it is not freed here.
uint16_t trace_send(struct worker *w, uint8_t port, struct rte_mbuf *mbuf[], uint16_t n);
bool trace_punt(struct worker *w, struct rte_mbuf *mbuf, uint16_t in_port, enum verdict verdict);
void trace_drop(struct worker *w, const struct rte_mbuf *mbuf, enum verdict verdict);

// The trace of a packet that comes in by a port, by a worker that does what `like` would do.
// `room`: of the buffers of the port's pool, with headroom. As datapath_trace.
struct trace_input {
	const struct worker *like;
	uint16_t port, room;
	const uint8_t *frame;
	size_t n;
};
int trace_run(const struct trace_input *input, struct trace *out, struct error *error);
