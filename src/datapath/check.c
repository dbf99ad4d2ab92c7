// Every reason to stop a packet after its lookup and before the first byte is written: the route's
// own verdict, TTL, MTU. Worker.
#include "datapath/hop_limits.h"
#include "datapath/judge.h"
#include "datapath/steps.h"
#include "datapath/tunnel.h"
#include "datapath/variant.h"

// Where Linux forwards, it also checks TTL, MTU and routes. Workers only determine which packets
// are local, and so their class.
static enum verdict decide_for_linux(const struct tap_worker *tap, enum verdict verdict)
{
	return tap->class_of[verdict] == CLASS_CONTENT ? verdict : VERDICT_LINUX;
}

// An IPv6 next hop may have a smaller MTU than IPv4 has on the same interface.
static uint16_t longest(const struct burst *b, uint16_t i, uint32_t limits)
{
	return b->is_ip6 ? limits_frame_max(limits) : fib_frame_max4_load(b->view, b->hop[i]);
}

// Whether a packet longer than the MTU will be fragmented.
static bool keep_long(struct burst *b, uint16_t i, uint16_t most)
{
	if (b->is_ip6 || !datapath_may_fragment(b, i, most))
		return false;
	b->has |= BURST_FRAGMENTS;
	b->fragment_mask |= 1ull << i;
	return true;
}

// The verdict of packet i. Linux would forward by its routes what a flow sends to a next hop: so if
// packets cannot be sent there, they are dropped; but those that only Linux may send there, as
// filters of the interface must see them, are left to it.
static enum verdict decide(const struct worker *w, struct burst *b, uint16_t i, uint32_t limits)
{
	const uint16_t most = longest(b, i, limits);
	const enum verdict verdict = judge(limits, most, datapath_sent_length(b, i), b->ttl[i]);

	if (b->linux_mask >> i & 1)
		return decide_for_linux(w->tap, verdict);
	if (b->flow_hop_mask >> i & 1 && limits_kind(limits) == FIB_HOP_STOP &&
		verdict != VERDICT_LINUX)
		return VERDICT_FLOW_UNRESOLVED;
	if (limits_kind(limits) == FIB_HOP_TUNNEL &&
		(!tunnel_carries(fib_template_load(b->view, b->hop[i]),
			 b->is_ip6 ? WIRE_ETHERTYPE_IP6 : WIRE_ETHERTYPE_IP4) ||
			offload_is_long(b->mbuf[i])))
		return VERDICT_TUNNEL_REFUSED;
	if (verdict == VERDICT_MTU_EXCEEDED && keep_long(b, i, most))
		return VERDICT_FORWARD;
	return verdict;
}

// Packets to an address of the router, of which some are of tunnels that end there. True: it is
// kept for decap.
static bool keep_tunnelled(struct worker *w, const struct burst *b, uint16_t i,
	enum verdict *verdict)
{
	if (!tunnel_may_end(b, i))
		return false;
	if (!w->is_in_tunnel) {
		tunnel_keep(w, b, i);
		return true;
	}
	*verdict = VERDICT_TUNNEL_NESTED;
	return false;
}

// Drops or punts packets that cannot be forwarded.
static __attribute__((noinline)) void drop_slow(struct worker *w, const uint32_t limits[],
	struct burst *b)
{
	uint64_t kept = 0, with_template = 0, to_bridge = 0;
	unsigned n_kept = 0;

	for (uint16_t i = 0; i < b->n; i++) {
		enum verdict verdict = decide(w, b, i, limits[i]);

		if (verdict == VERDICT_LOCAL && keep_tunnelled(w, b, i, &verdict))
			continue;
		if (verdict != VERDICT_FORWARD) {
			burst_drop(w, b, i, verdict);
			continue;
		}
		if (limits_kind(limits[i]) == FIB_HOP_TEMPLATE ||
			limits_kind(limits[i]) == FIB_HOP_TUNNEL)
			with_template |= 1ull << i;
		else if (limits_kind(limits[i]) == FIB_HOP_BRIDGE)
			to_bridge |= 1ull << n_kept;
		kept |= 1ull << i;
		n_kept++;
	}
	b->template_mask = with_template;
	b->bridge_mask = to_bridge; // where they will be
	b->has |= (with_template ? BURST_TEMPLATES : 0) | (to_bridge ? BURST_BRIDGES : 0);
	burst_keep(b, kept);
}

static inline bool has_one_hop(const struct burst *b, unsigned n)
{
	uint32_t differ = 0;

	for (unsigned i = 0; i < n; i++)
		differ |= b->hop[i] ^ b->hop[0];
	return !differ;
}

static inline bool check_one_hop(struct burst *b, unsigned n, uint32_t limits[])
{
	uint32_t same = limits_read(b->view, b->hop[0]);
	uint16_t longest = limits_frame_max(same);
	uint8_t is_slow = 0;

	for (unsigned i = 0; i < n; i++)
		is_slow |= (uint8_t)judge_is_expired(b->ttl[i]) |
		           (uint8_t)judge_is_too_long(b->length[i], longest);
	b->port[0] = limits_port(same);
	b->has_one_port = true;
	if (likely(!is_slow && judge_are_plain(limits_kind(same)) && !b->linux_mask))
		return true;
	for (unsigned i = 0; i < n; i++) {
		limits[i] = same;
		b->port[i] = limits_port(same);
	}
	return false;
}

bool all_plain_scalar(struct burst *b)
{
	return false;
}

void limits_scalar(const struct fib_view *view, const uint32_t hop[], uint32_t limits[], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		limits[i] = limits_read(view, hop[i]);
}

// Each loop does one kind of work on arrays that do not overlap, so that compilers can vectorise
// it.
static inline bool check_each_hop(struct burst *b, unsigned n, const uint32_t *restrict limits)
{
	const uint16_t *const length = b->length;
	const uint8_t *const ttl = b->ttl;
	uint8_t *restrict port = b->port;
	uint32_t all = 0, differ = 0, too_long = 0;
	uint8_t expired = 0;

	for (unsigned i = 0; i < n; i++) {
		all |= limits[i];
		differ |= limits[i] ^ limits[0];
		too_long |= judge_is_too_long(length[i], limits_frame_max(limits[i]));
	}
	for (unsigned i = 0; i < n; i++)
		expired |= judge_is_expired(ttl[i]);
	for (unsigned i = 0; i < n; i++)
		port[i] = limits_port(limits[i]);
	b->has_one_port = !limits_port(differ);
	return judge_are_plain(limits_kind(all)) && !(too_long | expired | !!b->linux_mask);
}

static inline __attribute__((always_inline)) bool check_first(struct burst *b, unsigned n,
	uint32_t limits[])
{
	return b->has_one_hop ? check_one_hop(b, n, limits) : check_each_hop(b, n, limits);
}

// Returns whether all packets may be forwarded as they are; if not, limits[] and port[] are filled.
// The loops of a full burst have a constant length, so they need no scalar remainder.
static bool check_all(const struct worker *w, struct burst *b, uint32_t limits[])
{
	const bool is_full = b->n == BURST_MAX;

	if (!b->linux_mask && w->variant->all_plain(b))
		return true;
	b->has_one_hop = is_full ? has_one_hop(b, BURST_MAX) : has_one_hop(b, b->n);
	if (!b->has_one_hop)
		w->variant->limits(b->view, b->hop, limits, b->n);
	return is_full ? check_first(b, BURST_MAX, limits) : check_first(b, b->n, limits);
}

void datapath_check(struct worker *w, struct burst *b)
{
	uint32_t limits[BURST_MAX] LINE_ALIGNED;
	bool all_pass = check_all(w, b, limits);

	if (unlikely(!all_pass) && datapath_ecmp(b))
		all_pass = check_all(w, b, limits);
	if (unlikely(!all_pass))
		drop_slow(w, limits, b);
}
