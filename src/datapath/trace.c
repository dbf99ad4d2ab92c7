// Traces one packet: a worker of the control thread runs the steps over it. That worker reads the
// live tables, which only this thread changes, but what workers write to is its own and is thrown
// away: counters, the marks of buckets in use, the limits of redirects and storm control. Where
// steps pass frames on, they ask w->capture first, which is set, so that its functions note the
// frame instead (capture.c, trace_note.c). What tables share between workers is left alone where
// w->trace is set: policers (acl_police.c, subscriber.c) and the age of MAC addresses
// (bridge.c). Control thread.
#include "datapath/trace.h"

#include "acl/acl.h"
#include "base/pages.h"
#include "datapath/variant.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdlib.h>

// BUFFERS: for the frame, a copy for a mirror, and the fragments of a packet.
enum { BUFFERS = 255 };

// What belongs to the worker alone.
struct shadow {
	struct worker worker;
	struct port_worker io;
	struct port_queue queue;
	struct fib_live live;
	struct fib_view view;
	struct flow_view flows;
	struct acl_live acls, filters;
	struct mac_live macs;
	struct capture_producer capture;
	struct stats_worker *stat;
	void *scratch; // for counters that nobody reads
	size_t scratch_bytes;
	struct rte_mempool *pool;
	void *buffers;
	size_t buffers_bytes;
};

static size_t scratch_bytes(const struct worker *like)
{
	const size_t rules = ACL_MAX_COUNTERS * sizeof(struct acl_count);
	const size_t buckets = FIB_MAX_GROUPS * FIB_GROUP_BUCKETS * sizeof(uint32_t);
	const size_t flows = like->flows ? like->flows->end * sizeof(struct flow_count) : 0;

	return MAX_OF(MAX_OF(rules, buckets), flows);
}

// Address space: what is not touched takes no memory.
static void *reserve(size_t bytes)
{
	void *memory = pages_alloc(bytes);

	pages_keep_small(memory, bytes);
	return memory;
}

// Its memory is no device's, as nothing is sent, and not of huge pages.
static int make_pool(struct shadow *s, unsigned room)
{
	struct rte_pktmbuf_pool_private private = {.mbuf_data_room_size = room};
	struct rte_mempool *pool = rte_mempool_create_empty("dl3d-trace", BUFFERS,
		sizeof(struct rte_mbuf) + room, 0, sizeof(private), SOCKET_ID_ANY,
		RTE_MEMPOOL_F_SP_PUT | RTE_MEMPOOL_F_SC_GET | RTE_MEMPOOL_F_NO_IOVA_CONTIG);

	s->pool = pool;
	if (!pool || rte_mempool_set_ops_byname(pool, "ring_sp_sc", NULL))
		return -ENOMEM;
	rte_pktmbuf_pool_init(pool, &private);
	s->buffers_bytes =
		BUFFERS * (size_t)(pool->header_size + pool->elt_size + pool->trailer_size) +
		RTE_MEMPOOL_ALIGN;
	s->buffers = reserve(s->buffers_bytes);
	if (!s->buffers || rte_mempool_populate_iova(pool, s->buffers, RTE_BAD_IOVA,
				   s->buffers_bytes, NULL, NULL) < BUFFERS)
		return -ENOMEM;
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return 0;
}

static void shadow_free(struct shadow *s)
{
	if (!s)
		return;
	rte_mempool_free(s->pool);
	if (s->buffers)
		pages_free(s->buffers, s->buffers_bytes);
	if (s->scratch)
		pages_free(s->scratch, s->scratch_bytes);
	if (s->stat)
		pages_free(s->stat, sizeof(*s->stat));
	pages_free(s, sizeof(*s));
}

static struct shadow *shadow_make(const struct trace_input *input)
{
	struct shadow *s = reserve(sizeof(*s));

	if (!s)
		return NULL;
	s->stat = reserve(sizeof(*s->stat));
	s->scratch_bytes = scratch_bytes(input->like);
	s->scratch = reserve(s->scratch_bytes);
	if (s->stat && s->scratch && !make_pool(s, input->room))
		return s;
	shadow_free(s);
	return NULL;
}

// Tables as they are, whose counters and marks are the worker's own.
static void set_tables(struct shadow *s, const struct worker *like)
{
	struct worker *w = &s->worker;

	s->view = *fib_live_view(like->live);
	s->view.used = s->scratch;
	s->live.view = &s->view;
	w->live = &s->live;
	if (like->flows) {
		s->flows = *like->flows;
		s->flows.count[0] = s->scratch;
		w->flows = &s->flows;
	}
	w->qos = like->qos; // its counters and buckets are left alone
	if (like->acls) {
		s->acls.view = acl_live_view(like->acls);
		s->acls.count[0] = s->scratch;
		w->acls = &s->acls;
	}
	if (like->filters) {
		s->filters.view = acl_live_view(like->filters);
		s->filters.count[0] = s->scratch;
		w->filters = &s->filters;
	}
}

static void set_macs(struct shadow *s, const struct worker *like, uint16_t port)
{
	if (!like->macs)
		return;
	s->macs.view = (struct mac_view *)(uintptr_t)mac_live_view(like->macs);
	for (unsigned kind = 0; kind < MAC_STORMS; kind++)
		s->macs.due[port].at[kind] =
			__atomic_load_n(&like->macs->due[port].at[kind], __ATOMIC_RELAXED);
	s->macs.remote = like->macs->remote;
	for (uint32_t i = MAC_FIRST_TUNNEL; i < s->macs.view->n_members; i++)
		s->macs.flood[i - MAC_FIRST_TUNNEL] = mac_live_flood(like->macs, i);
	s->worker.macs = &s->macs;
}

static void set_worker(struct shadow *s, const struct trace_input *input, struct trace *out)
{
	const struct worker *like = input->like;
	struct worker *w = &s->worker;

	s->queue.port = input->port;
	s->io.burst = BURST_MAX;
	w->io = &s->io;
	w->states = like->states;
	w->rcu = like->rcu;
	w->drops_missing = like->drops_missing;
	w->stat = s->stat;
	w->variant = like->variant;
	w->tap = like->tap; // only its classes and limits are read
	w->poll = w->polls;
	w->capture = &s->capture;
	w->trace = out;
	w->poisons = BURST_POISONS;
	w->redirects_due = __atomic_load_n(&like->redirects_due, __ATOMIC_RELAXED);
	w->tsc_hz = like->tsc_hz;
	set_tables(s, like);
	set_macs(s, like, input->port);
	datapath_enable_steps(w);
	trace_wrap_steps(w);
}

// A device that cuts frames does not count a tag that Linux takes out.
static size_t received_bytes(const struct port_state *state, const struct trace_input *input)
{
	size_t most = state->cut_bytes;

	if (!most || input->n <= most)
		return input->n;
	if (port_fills_slot(state, input->frame, most + WIRE_VLAN_BYTES))
		most += WIRE_VLAN_BYTES;
	return MIN_OF(input->n, most);
}

// The frame in as many buffers as a device needs. NULL: there are too few.
static struct rte_mbuf *fill(struct shadow *s, const struct trace_input *input, size_t n)
{
	const size_t most = input->room - RTE_PKTMBUF_HEADROOM;
	struct rte_mbuf *first = NULL;

	for (size_t at = 0; at < n;) {
		const size_t bytes = MIN_OF(n - at, most);
		struct rte_mbuf *m = rte_pktmbuf_alloc(s->pool);

		if (!m)
			return NULL;
		m->port = input->port;
		memcpy(rte_pktmbuf_append(m, bytes), input->frame + at, bytes);
		if (!first)
			first = m;
		else if (rte_pktmbuf_chain(first, m))
			return NULL;
		at += bytes;
	}
	return first;
}

// Where the destination of a bridged frame is. A bridge of Linux may filter by VLAN, but it sends
// only what is known.
static void find_bridged(const struct shadow *s, const struct trace_input *input, struct trace *out)
{
	const struct mac_view *view = s->macs.view;
	uint8_t mac[8] = {0}; // mac_key reads two bytes more
	struct mac_found found;

	if (!view || !port_is_bridged(&s->worker.states[input->port]) ||
		input->n < WIRE_ETHER_BYTES)
		return;
	if (view->port[input->port].flags & MAC_OF_LINUX) { // what it leaves is parsed
		if (out->n_steps == 1 && out->n_ends) {
			out->bridge = TRACE_KNOWN;
			out->bridge_port = out->end[0].port;
		}
		return;
	}
	memcpy(mac, input->frame, 6);
	const uint64_t key = mac_key(view->port[input->port].domain, mac);
	mac_lookup(view->slots, &key, 1, &found);
	const bool is_known = !(mac[0] & 1) && found.slot;
	out->bridge = is_known ? TRACE_KNOWN : TRACE_FLOODED;
	out->bridge_port = is_known ? found.port : PORT_NONE;
	if (is_known && found.flags & MAC_REMOTE)
		out->bridge_port = out->n_ends ? out->end[0].port : PORT_NONE;
}

static void account(const struct shadow *s, struct trace *out)
{
	struct stats_worker *stat[] = {s->stat};

	stats_add_workers(&out->account, stat, 1);
	out->account.received = 1; // no queue was polled
	for (unsigned v = 0; v < N_VERDICTS; v++)
		out->account.punted += s->stat->handed[v];
}

static int process(struct shadow *s, const struct trace_input *input, struct trace *out)
{
	struct rte_mbuf *mbuf[BURST_MAX];
	struct received r = {.from = &s->queue, .mbuf = mbuf, .n = 1};

	out->n_received = received_bytes(&s->worker.states[input->port], input);
	mbuf[0] = fill(s, input, out->n_received);
	if (!mbuf[0])
		return -ENOMEM;
	worker_process(&s->worker, &r);
	account(s, out);
	find_bridged(s, input, out);
	return out->is_cut || rte_mempool_avail_count(s->pool) != BUFFERS ? -ENOMEM : 0;
}

int trace_run(const struct trace_input *input, struct trace *out, struct error *error)
{
	struct shadow *s = shadow_make(input);
	int err = -ENOMEM;

	*out = (struct trace){.port = input->port,
		.dscp = TRACE_KEEP_DSCP,
		.iif = input->port,
		.mirror = IFACE_NONE,
		.bridge_port = PORT_NONE,
		.step = {trace_first_step(&input->like->states[input->port])},
		.n_steps = 1};
	if (s) {
		set_worker(s, input, out);
		err = process(s, input, out);
		shadow_free(s);
	}
	if (!err)
		return 0;
	datapath_trace_free(out);
	return error_set(error, err,
		"not enough memory to trace a packet of %zu bytes; try again, or free some",
		input->n);
}

void datapath_trace_free(struct trace *trace)
{
	for (unsigned i = 0; i < trace->n_ends; i++)
		free(trace->end[i].bytes);
	trace->n_ends = 0;
}
