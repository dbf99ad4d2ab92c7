// Per-burst data passed between pipeline steps: the remaining packets of one address family, and
// the state of a worker. Worker.
#pragma once

#include "acl/acl_fast.h"
#include "base/bits.h"
#include "base/idle.h"
#include "capture/capture_fast.h"
#include "datapath/handover.h"
#include "datapath/offload.h"
#include "datapath/shape.h"
#include "fib/fib_fast.h"
#include "flow/flow_fast.h"
#include "mac/mac_fast.h"
#include "port/port_fast.h"
#include "qos/qos_fast.h"
#include "rcu/rcu_fast.h"
#include "stats/stats.h"
#include "tap/tap_fast.h"

#include <rte_mbuf.h>

enum { BURST_MAX = 64 };
_Static_assert((int)BURST_MAX <= (int)FIB_BURST4, "a burst must fit into one lookup call");

// What some packets of a burst have or need; steps that are only for those do not run otherwise.
enum burst_has {
	BURST_PACKETS = 1 << 0,     // any packet; without, all others are clear, too
	BURST_SEGMENTS = 1 << 1,    // an mbuf with several segments
	BURST_TRAILERS = 1 << 2,    // bytes after length[i]
	BURST_TAGS = 1 << 3,        // VLAN tags or labels that a packet arrived with
	BURST_OWN_SOURCES = 1 << 4, // a bit in own_source_mask
	BURST_REDIRECTS = 1 << 5,   // a bit in redirect_mask
	BURST_DISCOVERY = 1 << 6,   // a bit in discovery_mask
	BURST_RPF = 1 << 7,         // a bit in strict_mask or loose_mask
	BURST_FRAGMENTS = 1 << 8,   // a bit in fragment_mask
	BURST_TEMPLATES = 1 << 9,   // a bit in template_mask or tag_mask
	BURST_FLOWS = 1 << 10,      // a bit in flow_mask
	BURST_MARKS = 1 << 11,      // a bit in mark_mask
	BURST_MIRRORS = 1 << 12,    // a bit in mirror_mask
	BURST_UNKNOWN = 1 << 13,    // no bit in flow_mask: a flow may be learnt
	BURST_OFFLOADS = 1 << 14,   // an open frame (offload.h)
	BURST_BRIDGES = 1 << 15,    // some were routed to a bridge
	BURST_LABELS = 1 << 16,     // MPLS labels that a packet arrived with
	BURST_SHAPED = 1 << 17,     // a bit in shape_mask
	BURST_REMOTES = 1 << 18,    // a bit in remote_mask
};

// Structure of arrays: element i of each array, and bit i of each mask, belong to packet i. If all
// packets have the same value and its `has_one` is set, only element 0 counts. burst_keep removes
// packets. Written by parse: all but hop (by lookup), has_one_hop, port and has_one_port (by
// check).
struct burst {
	uint32_t has; // enum burst_has
	uint16_t n;
	uint16_t in_port; // index of the input port of all packets
	bool is_ip6;
	bool has_one_iif, has_one_vrf;
	bool has_one_hop; // the other elements of hop[] are valid, too
	bool has_one_port;
	const struct fib_view *view;       // of the main VRF; next hops are those of all tables
	const struct fib_sources *sources; // Bloom filter of the router's own addresses
	// Bits from n on have no meaning.
	uint64_t own_source_mask; // IPv4: the source matched `sources`
	uint64_t linux_mask;      // Linux forwards the packet; local delivery is unchanged
	uint64_t redirect_mask;   // if the packet leaves by its input interface, it may be punted,
	                          // so that Linux sends an ICMP redirect (rate-limited)
	uint64_t discovery_mask;  // IPv6: punted if it is neighbour discovery (proxy NDP)
	uint64_t strict_mask, loose_mask; // the source is checked by its route (rpf)
	uint64_t fragment_mask; // IPv4: longer than the egress MTU, and to be fragmented; set by
	                        // check
	uint64_t template_mask; // the next hop was FIB_HOP_TEMPLATE; set by check
	uint64_t bridge_mask;   // the next hop was FIB_HOP_BRIDGE; set by check with BURST_BRIDGES,
	                        // and valid in the step after it
	uint64_t remote_mask;   // the next hop is behind remote[i]; set by bridge_out with
	                        // BURST_REMOTES, without which it has no meaning
	uint64_t flow_mask;     // a flow was found; set by match
	uint64_t flow_hop_mask; // the flow gave the next hop; set by match
	uint64_t mark_mask;     // dscp[i] is to be written
	uint64_t mirror_mask;   // mirror[i] is to get a copy
	uint64_t priority_mask; // priority[i] is to be written into VLAN tags
	uint64_t tag_mask;      // routed to a bridge, and to be sent with tag[i]; set by bridge_out
	uint64_t shape_mask;    // goes through the queues of its subscriber (shape.h); valid with
	                        // BURST_SHAPED, set by subscriber
	struct rte_mbuf *mbuf[BURST_MAX] LINE_ALIGNED;
	// Start of the Ethernet header. For a tagged packet: where the header would start without
	// the tags, so that the EtherType is at offset 12 and the packet at 14; the MAC addresses
	// are not there until rewrite writes them. Likewise for one with labels, or in a tunnel,
	// whose EtherType and TTL are those of ttl[] only after unlabel. After encap: the first
	// byte to be sent.
	uint8_t *frame[BURST_MAX] LINE_ALIGNED;
	union {
		uint32_t dst4[BURST_MAX]; // host order
		struct fib_key6 dst6[BURST_MAX];
	} LINE_ALIGNED;
	uint16_t length[BURST_MAX] LINE_ALIGNED; // bytes from frame[i] on, without FCS and
	                                         // trailer; at most 65535
	uint32_t hop[BURST_MAX] LINE_ALIGNED;
	uint8_t ttl[BURST_MAX] LINE_ALIGNED;  // or hop limit, before it is decremented
	uint8_t port[BURST_MAX] LINE_ALIGNED; // output port
	uint16_t iif[BURST_MAX] LINE_ALIGNED; // input interface: a port or a VLAN
	uint16_t vrf[BURST_MAX] LINE_ALIGNED; // the table in which the packet is looked up
	// Only of packets in flow_mask, in mirror_mask, in mark_mask, in priority_mask and in
	// tag_mask.
	uint32_t flow[BURST_MAX] LINE_ALIGNED; // its number
	uint32_t action[BURST_MAX] LINE_ALIGNED;
	uint16_t mirror[BURST_MAX] LINE_ALIGNED; // interface of a port
	uint8_t dscp[BURST_MAX] LINE_ALIGNED;
	uint8_t priority[BURST_MAX] LINE_ALIGNED;
	uint32_t tag[BURST_MAX] LINE_ALIGNED;    // EtherType << 16 | VLAN; of packets in tag_mask
	uint32_t remote[BURST_MAX] LINE_ALIGNED; // of VXLAN; only of packets in remote_mask
};

struct parse;
struct trace;
struct worker;
struct datapath_variant;

// The frames that one poll of one queue returned.
struct received {
	const struct port_queue *from;
	struct rte_mbuf **mbuf;
	uint16_t n;
	bool has_offloads;          // an open frame (offload.h)
	struct handover_ring *ring; // another worker has received them; NULL: they are from the
	                            // queue
};

// Those of them that are to be routed as if they had come in on an interface of their bridge:
// frames to its own address.
struct received_on_bridge {
	struct received frames;
	const struct mac_port *port; // by which they came in
};

// The flow lookups of one poll. Their keys are those of the packets of its bursts, except that
// those with a bit in `keyless` have none.
struct poll_flows {
	struct flow_lookup lookup4, lookup6;
	uint64_t keyless4, keyless6;
	struct flow_key4 key4[BURST_MAX] LINE_ALIGNED;
	struct flow_key6 key6[BURST_MAX] LINE_ALIGNED;
};

// The valid packets of one poll: a burst for each family.
struct poll {
	struct burst ip4, ip6;
	bool lookup_started; // `lookup` is in use: the IPv4 lookup is pipelined
	struct fib_lookup4_state lookup;
	struct poll_flows *flows; // NULL: none; set by datapath_enable_steps
};

// A batch is a series of consecutive polls of one queue whose lookups are pipelined (worker.c).
// BATCH_POLLS: maximum number of polls in a batch. PIPELINE_DEPTH: number of polls in flight.
// The last one of N_POLLS has the packets out of tunnels.
enum { BATCH_POLLS = 8, PIPELINE_DEPTH = 3, INNER_POLL = PIPELINE_DEPTH, N_POLLS };

// What happens to a burst, in order. Steps are functions over a burst in the phases before, of and
// after the lookup; the other phases are the worker's own. Lookups may be pipelined with other
// bursts.
enum phase {
	PHASE_RX,
	PHASE_HANDOVER, // to other workers: in place of all other steps
	PHASE_XCONNECT, // ports in mode xconnect: all until PHASE_FREE
	PHASE_BRIDGE,   // ports in a bridge: the same
	PHASE_PARSE,
	PHASE_BEFORE,
	PHASE_LOOKUP,
	PHASE_AFTER,
	PHASE_DECAP, // what was in tunnels is parsed, and goes through the phases above again
	PHASE_FREE,  // of dropped packets
	N_PHASES,
};

// A row of the step table (steps.h) that is enabled.
struct enabled_step {
	void (*run)(struct worker *w, struct burst *b);
	uint32_t has; // runs on bursts that have one of these (enum burst_has)
	uint16_t id;  // index in the table
};

struct enabled_steps {
	struct enabled_step step[STATS_MAX_STEPS];
	uint16_t first[N_PHASES + 1]; // by phase
};

// Packets to an address on which tunnels end, of one poll: see decap.c.
struct tunnelled {
	uint16_t n, in_port;
	struct rte_mbuf *mbuf[BURST_MAX];
	uint8_t *frame[BURST_MAX]; // as in struct burst
	uint16_t vrf[BURST_MAX];
	bool is_ip6[BURST_MAX];
};

// Frames from Linux that the device has not accepted yet, oldest first.
struct injection {
	uint16_t n;
	struct rte_mbuf *mbuf[BURST_MAX];
	uint64_t taken_at[BURST_MAX]; // value of stat->loops when dequeued
};

// Per-worker state: single writer, cache-line aligned.
struct worker {
	const struct port_worker *io;
	const struct port_state *states; // by port index
	const struct rcu_readers *rcu;
	const struct fib_live *live;
	const struct flow_view *flows;  // NULL: none
	const struct flow_learn *learn; // NULL: flows are not learnt
	const struct acl_live *acls;    // NULL: none
	const struct acl_live *filters; // tc filters of Linux; NULL: none; only with acls and tap
	const struct mac_live *macs;    // of bridges; NULL: no port is in one
	const struct qos_live *qos;     // subscribers; NULL: there are never any
	const bool *drops_missing;      // packets without a flow; atomic, relaxed
	const struct capture_live *captures; // NULL: there are none
	struct stats_worker *stat;
	const bool *stop;                       // atomic, relaxed
	const struct datapath_variant *variant; // of the steps, chosen for the CPU
	struct tap_worker *tap;                 // NULL if ports have no TAP interfaces
	struct poll *poll;                      // the poll being processed
	struct capture_producer *capture;       // NULL: no capture runs; read once per loop
	struct trace *trace; // not NULL: the control thread traces a packet; see trace.h
	bool poisons;        // debugging: each burst is poisoned before it is used again
	uint16_t n_dropped;
	struct rte_mbuf
		*dropped[PIPELINE_DEPTH * BURST_MAX] LINE_ALIGNED; // includes injected frames
	struct injection injection;
	struct handover_out *handover_out; // NULL: processes itself what it receives
	struct handover_in *handover_in;   // NULL: is handed nothing by others
	struct shape_worker *shape;        // NULL: nothing is ever shaped
	uint64_t timed_from;           // when stat->bursts reaches this, the next burst is timed
	uint64_t redirects_due;        // TSC: theoretical arrival time of the redirect limit (GCRA)
	struct enabled_steps steps[2]; // of IPv4 and of IPv6
	uint8_t step_of_phase[N_PHASES];       // its first row that is enabled or the worker's own
	uint64_t step_cycles[STATS_MAX_STEPS]; // of the burst being timed
	uint64_t cost_per_packet; // current estimate in cycles (datapath/cost.h); 0: unknown
	uint64_t long_gap; // a loop iteration that takes this many cycles longer than expected
	                   // is a stall
	uint64_t tsc_hz;   // TSC frequency
	struct idle idle;
	uint64_t min_recorded_gap;  // cycles; a shorter loop iteration is neither a stall nor the
	                            // longest one
	uint16_t next_id;           // of IPv4 headers of tunnels
	bool is_in_tunnel;          // the packets of w->poll were in one
	struct tunnelled tunnelled; // of the poll being processed
	struct poll polls[N_POLLS];
	struct poll_flows poll_flows[N_POLLS]; // not touched without flows
} LINE_ALIGNED;

// capture.c, only while a capture runs (w->capture), or for a traced packet: captures frames that
// were received; a packet that is dropped. / Passes frames to a device, as port_tx, and captures
// those that it accepted; a packet to Linux, as tap_punt.
void worker_capture_received(struct worker *w, uint16_t port, struct rte_mbuf *const mbuf[],
	uint16_t n);
void worker_capture_drop(struct worker *w, struct rte_mbuf *mbuf, enum verdict verdict);
uint16_t worker_capture_tx(struct worker *w, uint8_t port, struct rte_mbuf *mbuf[], uint16_t n);
bool worker_capture_punt(struct worker *w, struct rte_mbuf *mbuf, uint16_t in_port,
	enum verdict verdict);

// Passes a packet to Linux, or returns false: the caller frees it, see tap_punt. Linux gets
// finished frames.
static inline bool worker_punt(struct worker *w, struct rte_mbuf *mbuf, uint16_t in_port,
	enum verdict verdict)
{
	if (unlikely(offload_is_open(mbuf)))
		return offload_punt(w, mbuf, in_port, verdict);
	if (unlikely(w->capture != NULL))
		return worker_capture_punt(w, mbuf, in_port, verdict);
	return tap_punt(w->tap, w->stat, mbuf, verdict | (unsigned)in_port << TAP_PORT_SHIFT);
}

// Counts a packet that is not to be punted, and drops it. Dropped packets are freed at the end of
// the burst.
static inline void worker_drop(struct worker *w, struct rte_mbuf *mbuf, enum verdict verdict)
{
	if (unlikely(w->capture != NULL))
		worker_capture_drop(w, mbuf, verdict);
	stats_add(&w->stat->verdict[verdict], 1);
	w->dropped[w->n_dropped++] = mbuf;
}

// Drops or punts a packet that is not in a burst. If ports have TAP interfaces and the verdict
// belongs to a punt class, the packet is punted to Linux unmodified (such verdicts are only given
// before the rewrite step), and the tap thread counts it as punted, punt_over_limit or tap_refused;
// if the ring of its class is full, it is counted here as punt_ring_full. In all other cases its
// own verdict is counted.
static inline void worker_stop(struct worker *w, struct rte_mbuf *mbuf, uint16_t in_port,
	enum verdict verdict)
{
	if (!w->tap || w->tap->class_of[verdict] == CLASS_NONE)
		worker_drop(w, mbuf, verdict);
	else if (!worker_punt(w, mbuf, in_port, verdict))
		w->dropped[w->n_dropped++] = mbuf;
}

// burst_drop with access lists and TAP interfaces: Linux would forward some packets that it gets,
// so a list of their output interface judges them first (acl_judge.c).
void burst_drop_judged(struct worker *w, const struct burst *b, uint16_t i, enum verdict verdict);

// Drops or punts packet i. The caller removes it from the burst by burst_keep.
static inline void burst_drop(struct worker *w, const struct burst *b, uint16_t i,
	enum verdict verdict)
{
	if (unlikely(w->acls && w->tap))
		burst_drop_judged(w, b, i, verdict);
	else
		worker_stop(w, b->mbuf[i], b->in_port, verdict);
}

static inline void burst_free_dropped(struct worker *w)
{
	if (!w->n_dropped)
		return;
	rte_pktmbuf_free_bulk(w->dropped, w->n_dropped);
	w->n_dropped = 0;
}

static inline uint8_t burst_port(const struct burst *b, uint16_t i)
{
	return b->port[b->has_one_port ? 0 : i];
}

static inline uint16_t burst_iif(const struct burst *b, uint16_t i)
{
	return b->iif[b->has_one_iif ? 0 : i];
}

static inline uint16_t burst_vrf(const struct burst *b, uint16_t i)
{
	return b->vrf[b->has_one_vrf ? 0 : i];
}

// The table of a VRF.
static inline const struct fib_view *burst_table(const struct burst *b, uint16_t vrf)
{
	return likely(vrf == 0) ? b->view : &b->view->vrfs[vrf];
}

// One bit for each packet.
static inline uint64_t burst_all(const struct burst *b)
{
	return b->n == 64 ? UINT64_MAX : (1ull << b->n) - 1;
}

// Debugging: overwrites the whole burst with a pattern, so that a step that reads what an earlier
// burst left behind gives wrong results. On in unit tests and wherever ASan is.
void burst_poison(struct burst *b);
#if defined(__SANITIZE_ADDRESS__)
enum { BURST_POISONS = true };
#else
enum { BURST_POISONS = false };
#endif

// Removes all packets.
static inline void burst_clear(struct burst *b)
{
	b->n = 0;
	b->has = 0;
}

// Removes all packets but those with a bit in `mask`, in all arrays; order is kept. The caller has
// dropped, punted or sent the others.
void burst_keep(struct burst *b, uint64_t mask);

// Length of the VLAN tags, or of labels and tunnel headers, that the packet arrived with. Valid
// until the untag step.
static inline uint16_t burst_tag_bytes(const struct burst *b, uint16_t i)
{
	return b->frame[i] - rte_pktmbuf_mtod(b->mbuf[i], uint8_t *);
}

// How many bytes from frame[i] on are contiguous. Valid until the untag step.
static inline uint16_t burst_contiguous_bytes(const struct burst *b, uint16_t i)
{
	return b->has & BURST_SEGMENTS ? b->mbuf[i]->data_len - burst_tag_bytes(b, i)
	                               : b->length[i];
}
