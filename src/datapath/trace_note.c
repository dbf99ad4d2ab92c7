// See trace.h. Control thread.
#include "datapath/trace.h"

#include <stdlib.h>

#define ID_OF_PHASE(name, phase) STEP_##name,
#define ID_OF_STEP(name, phase, families, has, is_enabled) STEP_##name,
enum step_id { DATAPATH_STEPS(ID_OF_PHASE, ID_OF_STEP) N_STEPS };

uint8_t trace_first_step(const struct port_state *from)
{
	if (from->is_xconnect)
		return STEP_xconnect;
	return port_is_bridged(from) ? STEP_bridge : STEP_parse;
}

static void add_step(struct trace *t, uint8_t step)
{
	if (t->n_steps < TRACE_STEPS)
		t->step[t->n_steps++] = step;
}

// What was in a tunnel goes through the steps again.
static void enter_tunnel(struct trace *t)
{
	t->outer = (struct trace_outer){t->is_ip6, t->ttl, t->iif, t->vrf, t->dst4, t->dst6};
	t->was_in_tunnel = true;
	t->is_parsed = t->has_hop = t->for_linux = t->flow_gives_hop = false;
	t->flow = FLOW_NONE;
	add_step(t, STEP_decap);
}

// The step that runs now. What a bridge of Linux leaves is parsed: then its bursts have a table.
static uint8_t step_now(struct worker *w)
{
	struct trace *t = w->trace;

	if (t->step[t->n_steps - 1] == STEP_bridge && w->poll->ip4.view)
		add_step(t, STEP_parse);
	if (w->is_in_tunnel && !t->was_in_tunnel)
		enter_tunnel(t);
	return t->step[t->n_steps - 1];
}

// What steps before the lookup know. Removed packets keep their place in the arrays, but have no
// bits.
static void see(struct trace *t, const struct burst *b)
{
	t->is_parsed = true;
	t->is_ip6 = b->is_ip6;
	t->iif = burst_iif(b, 0);
	t->vrf = burst_vrf(b, 0);
	t->ttl = b->ttl[0];
	if (b->is_ip6)
		t->dst6 = b->dst6[0];
	else
		t->dst4 = b->dst4[0];
	if (!b->n)
		return;
	t->for_linux |= b->linux_mask & 1;
	if (b->flow_mask & 1) {
		t->flow = b->flow[0];
		t->action = b->action[0];
		t->flow_gives_hop = b->flow_hop_mask & 1;
	}
	if (b->mark_mask & 1)
		t->dscp = b->dscp[0];
	if (b->mirror_mask & 1)
		t->mirror = b->mirror[0];
	t->is_fragmented |= b->fragment_mask & 1;
}

static void see_hop(struct trace *t, uint32_t hop)
{
	if (!t->has_hop)
		t->first_hop = hop;
	t->has_hop = true;
	t->hop = hop;
}

void trace_packet(struct trace *t, const struct burst *one)
{
	see(t, one);
	see_hop(t, one->hop[0]);
}

static void run_step(struct worker *w, struct burst *b, enum step_id id,
	void (*run)(struct worker *w, struct burst *b))
{
	struct trace *t = w->trace;

	step_now(w);
	add_step(t, id);
	see(t, b);
	run(w, b);
	see(t, b);
	if (id >= STEP_lookup)
		see_hop(t, b->hop[0]);
}

#define NO_WRAPPER(name, phase)
#define WRAPPER(name, phase, families, has, is_enabled)                                            \
	static void traced_##name(struct worker *w, struct burst *b)                               \
	{                                                                                          \
		run_step(w, b, STEP_##name, datapath_##name);                                      \
	}
DATAPATH_STEPS(NO_WRAPPER, WRAPPER)

#define NO_ROW(name, phase)
#define ROW(name, phase, families, has, is_enabled) [STEP_##name] = traced_##name,
static void (*const wrappers[N_STEPS])(struct worker *w, struct burst *b) = {
	DATAPATH_STEPS(NO_ROW, ROW)};

void trace_wrap_steps(struct worker *w)
{
	for (unsigned family = 0; family < ARRAY_LEN(w->steps); family++) {
		struct enabled_steps *steps = &w->steps[family];

		for (unsigned i = 0; i < steps->first[N_PHASES]; i++)
			steps->step[i].run = wrappers[steps->step[i].id];
	}
}

void trace_rule(struct worker *w, const struct trace_rule *rule)
{
	struct trace *t = w->trace;

	if (t->n_rules == TRACE_RULES)
		return;
	t->rule[t->n_rules] = *rule;
	t->rule[t->n_rules++].step = step_now(w);
}

// Adds where the frame goes, with a copy of its bytes.
static void add_end(struct worker *w, const struct rte_mbuf *mbuf, struct trace_end end)
{
	struct trace *t = w->trace;
	uint8_t *bytes = malloc(mbuf->pkt_len);
	const void *from;

	if (!bytes || t->n_ends == TRACE_ENDS) {
		t->is_cut = true;
		free(bytes);
		return;
	}
	from = rte_pktmbuf_read(mbuf, 0, mbuf->pkt_len, bytes);
	if (from != bytes)
		memcpy(bytes, from, mbuf->pkt_len);
	end.step = step_now(w);
	end.n_bytes = mbuf->pkt_len;
	end.bytes = bytes;
	t->end[t->n_ends++] = end;
}

uint16_t trace_send(struct worker *w, uint8_t port, struct rte_mbuf *mbuf[], uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		add_end(w, mbuf[i],
			(struct trace_end){.kind = TRACE_SENT,
				.verdict = VERDICT_FORWARD,
				.class = CLASS_NONE,
				.port = port});
	rte_pktmbuf_free_bulk(mbuf, n);
	return n;
}

bool trace_punt(struct worker *w, struct rte_mbuf *mbuf, uint16_t in_port, enum verdict verdict)
{
	unsigned class = w->tap->class_of[verdict];

	if (class == CLASS_CONTENT)
		class = tap_classify(rte_pktmbuf_mtod(mbuf, uint8_t *), mbuf->data_len);
	if (class >= N_CLASSES)
		return false;
	stats_add(&w->stat->handed[verdict], 1);
	add_end(w, mbuf,
		(struct trace_end){.kind = TRACE_PUNTED,
			.verdict = verdict,
			.class = class,
			.port = in_port});
	rte_pktmbuf_free(mbuf);
	return true;
}

void trace_drop(struct worker *w, const struct rte_mbuf *mbuf, enum verdict verdict)
{
	add_end(w, mbuf,
		(struct trace_end){.kind = TRACE_DROPPED,
			.verdict = verdict,
			.class = CLASS_NONE,
			.port = w->trace->port});
}
