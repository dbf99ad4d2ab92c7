// Longest-prefix match for IPv4 and IPv6: routes, next hops and neighbours. One thread (the control
// thread) writes; workers read through fib_fast.h under QSBR.
//
// A struct fib holds the routing tables of all VRFs, the next hops, neighbours and interfaces; a
// reload builds a second one and swaps it in with fib_live_swap. It consists of the RIB, which only
// the control thread reads (rib_ functions), and the lookup table that is generated from it for the
// workers (fib_fast.h). A "table" below is the routing table of one VRF. Interfaces
// are those of iface/iface.h.
#pragma once

#include "base/error.h"
#include "iface/iface.h"
#include "stats/verdict.h"
#include "wire/addr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FIB_MAX_VRFS = IFACE_MAX_VRFS, // number of tables including main (0)
	FIB_MAX_HOPS = (1 << 20) - 1,  // hop ids are 1 to 1,048,575; 0: no route
	FIB_MAX_HELD = FIB_MAX_HOPS,   // numbers of held next hops are 1 to FIB_MAX_HELD
	FIB_MAX_PUSHED = 3,            // MPLS labels in front of a packet
	FIB_MAX_LABEL = (1 << 20) - 1,
	FIB_FREE_LABEL = 16, // those below are reserved (RFC 3032, 2.1)
};

enum fib_kind {
	FIB_VIA,       // to the neighbour `via` on `iface`
	FIB_CONNECTED, // on-link: the destination itself is the neighbour; unresolved until
	               // fib_neighbour_set
	FIB_PEER,      // to the configured peer MAC of `iface` (routes given as ADDRESS MASK PORT)
	FIB_GROUP,     // ECMP group: one member per flow; created by fib_group()
	FIB_LOCAL,     // an address of the router, or a broadcast address
	FIB_BLACKHOLE,
	FIB_UNREACHABLE,
	FIB_PROHIBIT,
	FIB_MARTIAN, // never forwarded: built-in ranges
	FIB_LINK_LOCAL,
	FIB_MULTICAST,
	FIB_LINUX, // not representable in the fast path; punted to Linux
	N_FIB_KINDS
};

// The next hop of a route. Two hops are equal if all their fields are.
struct fib_hop {
	struct wire_addr via; // family 0 unless FIB_VIA; may differ from the route's (RFC 5549)
	uint8_t kind;         // enum fib_kind
	uint16_t iface;       // IFACE_NONE if this kind has no interface
	// MPLS, only VIA and PEER: the labels pushed in front of packets, the outermost one first,
	// and the TTL in all of them; 0: that of the packet.
	uint8_t n_labels, label_ttl;
	uint16_t unused; // 0: there is no padding
	uint32_t label[FIB_MAX_PUSHED];
};

struct fib_route {
	struct wire_prefix prefix; // host bits clear
	uint16_t vrf;              // its table; 16 bits, so that there is no padding
	struct fib_hop hop;
};

enum fib_op { FIB_ADD, FIB_REPLACE, FIB_DELETE };

// add: the prefix must be absent; replace: absent or present; delete: must be present (hop is
// ignored).
struct fib_change {
	uint8_t op; // enum fib_op
	struct fib_route route;
};

struct fib;
struct fib_live;

// Creates a fib with an empty main table: only the built-in routes required by RFC 1812 5.3.7, RFC
// 3927 and RFC 4291 (127/8, 0/8, 0.0.0.0, 240/4, 255.255.255.255 and ::, ::1 martian; 169.254/16
// and fe80::/10 link-local; 224/4 and ff00::/8 multicast). NULL with `error` set. Control thread;
// owner: caller.
struct fib *fib_create(struct error *error);
void fib_destroy(struct fib *fib);
// Removes the built-in routes that Linux does not have: it forwards packets to 0/8 except 0.0.0.0,
// 240/4 except 255.255.255.255, 169.254/16 and :: by its routes. VRFs do not get them either.
// Control thread; before a VRF is opened.
void fib_follow_linux(struct fib *fib);

// Creates an additional VRF table (1 to 4095) with the built-in routes; it shares next hops, groups
// and interfaces with the main table. With a few routes it takes at most half a MiB, mostly for an
// IPv6 default route, and 50 KiB without; the number of routes is not limited. -EINVAL, -EEXIST,
// -ENOMEM with `error` set. Control thread.
int fib_vrf_open(struct fib *fib, uint16_t vrf, struct error *error);
// Deletes all routes of a VRF table; workers then find no route in it. Its interfaces stay assigned
// to it, and their neighbours are reachable again when it is reopened. The main table cannot be
// closed. Control thread.
void fib_vrf_close(struct fib *fib, uint16_t vrf);
bool fib_vrf_is_open(const struct fib *fib, uint16_t vrf);

// Adds an interface or changes its settings. Next hops on it are rewritten at once, workers use the
// settings for received frames, and its neighbours become host routes (/32, /128) in its VRF where
// a CONNECTED route covers them. If the port or the tags differ from those previously set for this
// interface index, waits for an RCU grace period. On error nothing is changed. -EINVAL: an untagged
// interface whose index is not the port index, or a tagged one with that index; a port out of
// range; invalid tags, or tags of another interface of the port; a VRF that is not open; an MTU or
// a number of MAC addresses out of range. -ENOSPC: no memory for the host routes. Control thread.
int fib_iface_set(struct fib *fib, uint16_t iface, const struct iface *settings);
// Deletes an interface. A VLAN: frames with its tags are then dropped as unknown VLAN; a port: its
// frames are dropped as if it were down. Next hops on it become unresolved; its neighbours are
// kept. Control thread.
void fib_iface_delete(struct fib *fib, uint16_t iface);
// The current settings of an interface; NULL: there is no such interface. Control thread.
const struct iface *fib_iface(const struct fib *fib, uint16_t iface);
// The UDP ports (fib_fast.h) on which tunnels with IFACE_TUNNEL_LINUX are received; at most
// FIB_MAX_UDP_ENDS, the rest is left out. Waits for an RCU grace period if there are tunnels.
// Control thread.
struct fib_udp_end;
void fib_udp_ends_set(struct fib *fib, const struct fib_udp_end *ends, unsigned n);

// Applies a batch of changes, all or nothing: on error nothing is changed, `error` names the prefix
// and *bad (may be NULL) is its index. A batch may contain a prefix several times; changes apply in
// order. -EINVAL, -EEXIST, -ENOENT, -ENOSPC (the table is full); -ENOMEM (not with up to
// FIB_SMALL_BATCH changes, which need no memory; groups made for the batch stay valid). Workers see
// either the old or the new state of each route. Fast for one change and for millions. Control
// thread.
enum { FIB_SMALL_BATCH = 16 };
int fib_change(struct fib *fib, const struct fib_change *changes, size_t n, size_t *bad,
	struct error *error);

// Whether the tables are complete; a new fib's are. In incomplete tables, packets without a route
// get VERDICT_NOT_SYNCED instead of VERDICT_NO_ROUTE. Control thread.
void fib_set_synced(struct fib *fib, bool is_synced);
bool fib_is_synced(const struct fib *fib);

// Compacts the workers' IPv4 lookup table, which incremental updates fragment over more cache lines
// than necessary. Call it about 20 times a second: once at least a quarter of the routes have
// changed and there were no changes for half a second, or after four times as many changes as
// routes, it rebuilds the table contiguously (about 50 ms for a million routes). Control thread.
void fib_tidy(struct fib *fib);

// One next hop (VIA or PEER) of a route and its weight, 1 to 255.
struct fib_member {
	struct fib_hop hop;
	uint8_t weight;
};

// ECMP: creates the hop for a route with n next hops (1 to 64). Each gets its share of flows by
// weight, with a resolution of 1/1024. The mapping of flows to members is stable as long as the
// group is unchanged. It is not resilient: a route with other members has another group, in which
// some flows of the remaining members are moved as well (see fib_resilient_group). Groups are
// deduplicated; the order of members does not matter. `out` is valid until the end of the next
// fib_change, even if that fails or has no changes. -EINVAL, -ENOSPC (4096 groups) with `error`
// set. Control thread.
int fib_group(struct fib *fib, const struct fib_member *members, unsigned n, struct fib_hop *out,
	struct error *error);
// What makes a group resilient.
struct fib_resilience {
	uint64_t key;           // identifies the group, whatever its members; not 0
	uint64_t idle_ms;       // a bucket without packets for so long may be moved
	uint64_t unbalanced_ms; // after so long, buckets in use are moved too; 0: never
};
// The same for a resilient group: the first call with a key creates it; later ones change its
// members in place, so its hop stays the same. A changed group moves buckets as Linux does
// (nh_res_table_upkeep in net/ipv4/nexthop.c): those of removed members at once, and from members
// with too many buckets to those with too few only idle ones. Control thread.
int fib_resilient_group(struct fib *fib, const struct fib_resilience *resilience,
	const struct fib_member *members, unsigned n, struct fib_hop *out, struct error *error);
// Advances the clock of workers by which uses of buckets are noted, and moves those that have
// become idle, or whose group was unbalanced for too long. `now_ns` never decreases and counts from
// any start. Call it about 10 times a second. Control thread.
void fib_groups_poll(struct fib *fib, uint64_t now_ns);

// Writes at most `max` members of a hop of kind FIB_GROUP; returns the number of members. Control
// thread.
unsigned fib_group_members(const struct fib *fib, const struct fib_hop *hop, struct fib_member *out,
	unsigned max);

// Whether flows of a family (4 or 6) are distributed over the members of groups by layer 3 alone
// (IPv4: addresses; IPv6: addresses, flow label and next header; both of an ICMP error: those of
// the packet that it quotes), or by layer 4 (protocol and ports too), as in a new fib. Workers use
// it from their next burst on. Control thread.
void fib_set_layer3_hash(struct fib *fib, uint8_t family, bool is_layer3);

// Sets the MAC address of a neighbour on an interface. All next hops via it are resolved at once;
// if a CONNECTED route of that interface in the interface's VRF covers it, a host route to it is
// installed. -EINVAL, -ENOSPC with `error` set. Control thread.
int fib_neighbour_set(struct fib *fib, uint16_t iface, const struct wire_addr *addr,
	const struct wire_mac *mac, struct error *error);
// Deletes a neighbour: next hops via it become unresolved. -ENOENT: there is none. Control thread.
int fib_neighbour_delete(struct fib *fib, uint16_t iface, const struct wire_addr *addr);

// Holds a next hop of kind VIA or PEER for a user outside of the routing tables, whether or not a
// route has it, and gives it a number (1 to FIB_MAX_HELD) by which workers find its hop id:
// fib_held_load. While it is held, its hop id does not change, and it is resolved as the hops of
// routes are: it is unresolved without its neighbour or its interface. A hop that is held several
// times has one number, and is to be released as often. -EINVAL, -ENOSPC with `error` set. Control
// thread.
int fib_hold(struct fib *fib, const struct fib_hop *hop, uint32_t *held, struct error *error);
// Workers may use the number until a grace period has passed; only then it may get another meaning.
// Unreferenced groups become invalid, as by fib_change. Control thread.
void fib_release(struct fib *fib, uint32_t held);
// The hop of a number. False: it is not held. Control thread.
bool fib_held_hop(const struct fib *fib, uint32_t held, struct fib_hop *out);
// Holds in `to`, in which nothing was held yet, what is held in `from`, as often and with the same
// numbers; for a reload: until fib_live_swap nothing may be held or released in either of them.
// -ENOSPC with `error` set: `to` may only be destroyed. Control thread.
int fib_copy_held(struct fib *to, const struct fib *from, struct error *error);

// Holds the remote end of VXLAN devices at an address, in the VRF of outer packets, and gives it a
// number (1 to FIB_MAX_VTEPS), which a remote end of the MAC table has (struct mac_remote). It
// follows the routes to the address. One that is held several times has one number, and is to be
// released as often. -EINVAL (VRF, family), -ENOSPC with `error` set. Control thread.
int fib_vtep_hold(struct fib *fib, uint16_t vrf, const struct wire_addr *addr, uint32_t *vtep,
	struct error *error);
// The number that fib_vtep_hold would give; 0: it is not held. Control thread.
uint32_t fib_vtep_find(const struct fib *fib, uint16_t vrf, const struct wire_addr *addr);
// The same of a group of n others (1 to FIB_MAX_VTEP_GROUP), as a next hop with NHA_FDB is: a flow
// uses one of them. They are held as long as they are in it. Each call gives a new number. /
// Changes its members, in place. -EINVAL, -ENOSPC, -ENOMEM with `error` set: nothing is changed.
// Control thread.
enum { FIB_MAX_VTEP_GROUP = 64 };
int fib_vtep_hold_group(struct fib *fib, const uint32_t members[], unsigned n, uint32_t *vtep,
	struct error *error);
int fib_vtep_set_group(struct fib *fib, uint32_t vtep, const uint32_t members[], unsigned n,
	struct error *error);
// Nothing that workers read may have the number any more (mac_remote_release). Control thread.
void fib_vtep_release(struct fib *fib, uint32_t vtep);
// The held remote end with the lowest number above *number, which gets its own; groups are left
// out. False: there is none. Control thread.
bool fib_vtep_next(const struct fib *fib, uint32_t *number, uint16_t *vrf, struct wire_addr *addr);
// As fib_copy_held.
int fib_copy_vteps(struct fib *to, const struct fib *from, struct error *error);

// What workers do with a received MPLS label.
struct fib_label {
	uint32_t label; // 0 to FIB_MAX_LABEL
	uint8_t op;     // enum fib_label_op (fib_fast.h), not FIB_LABEL_NONE
	// TTL as in RFC 3443 where the last label is popped: the packet's own one is left (pipe),
	// or it is that of the label (uniform).
	bool is_pipe;
	bool loops;         // LOOKUP: the TTL is decremented once more, as Linux does through `lo`
	bool ends_stack;    // LOOKUP: packets that have labels below this one are Linux's
	uint16_t vrf;       // LOOKUP
	struct fib_hop hop; // FORWARD: its labels take the place of this one
};
// Adds or replaces a label. -EINVAL (label, operation, hop, VRF), -ENOSPC: no hop or no memory is
// left; `error` set, and nothing is changed. Control thread.
int fib_label_set(struct fib *fib, const struct fib_label *label, struct error *error);
// -ENOENT: there is no such label. Control thread.
int fib_label_delete(struct fib *fib, uint32_t label);
// The first label from `from` on; false: there is none. Control thread.
bool fib_label_next(const struct fib *fib, uint32_t from, struct fib_label *out);

// Result of rib_lookup.
struct fib_answer {
	bool found;             // a matching route exists
	struct fib_route route; // the longest matching prefix
	uint32_t hop_id;
	struct fib_hop hop;  // after a CONNECTED hop was resolved to the neighbour
	uint8_t verdict;     // VERDICT_FORWARD, or the drop or punt reason
	struct wire_mac mac; // destination MAC if resolved
};
// What workers do with a packet to `addr`, computed from the RIB, with all details. fib_lookup
// reads the lookup table of the workers instead; both must give the same hop id. Control thread.
void rib_lookup(const struct fib *fib, uint16_t vrf, const struct wire_addr *addr,
	struct fib_answer *answer);
// The hop id that workers find for `addr`, looked up with the same code as workers use. 0: no
// route, or the VRF is not open. Control thread.
uint32_t fib_lookup(const struct fib *fib, uint16_t vrf, const struct wire_addr *addr);

// Iterates over the routes of one VRF, except built-in ones, in order of address, then length:
// returns the first of `family` after `after` (NULL: the very first). False at the end. O(depth).
// Control thread.
struct fib_walk {
	const struct wire_prefix *after;
	uint8_t family;
	uint16_t vrf;
};
bool fib_next(const struct fib *fib, const struct fib_walk *walk, struct fib_route *out);

struct fib_hop_info {
	struct fib_hop hop;
	struct wire_mac mac; // destination MAC: the neighbour's, or for FIB_PEER the peer's
	bool is_neighbour;   // set by fib_neighbour_set; one with labels: the hop without them was
	bool is_held;        // by fib_hold
	uint8_t verdict; // VERDICT_FORWARD (members of a group have their own) or why its packets
	                 // are dropped
	uint16_t mtu;
	uint32_t n_routes;
	uint64_t counted_before; // baseline: packet counter of this id when it was assigned to this
	                         // hop
};
// Next hop by id. False: there is none; continue with the next id up to fib_usage.max_hop_id.
// Control thread.
bool fib_hop_info(const struct fib *fib, uint32_t id, struct fib_hop_info *out);

// Callback that returns the current packet counter of a hop id, summed over all workers. Its value
// is the baseline (counted_before) of a next hop: for existing hops it is read by
// fib_set_counter_baseline, for others when they get their id. Control thread.
struct fib_count {
	uint64_t (*counted)(const void *ctx, uint32_t id);
	const void *ctx;
};
void fib_set_counter_baseline(struct fib *fib, const struct fib_count *count);

struct fib_usage {
	uint32_t n_routes4, n_routes6, n_hops, n_neighbours;
	uint32_t n_held;   // different hops that are held
	uint32_t n_labels; // that are received
	uint32_t max_hop_id;
	size_t worker_bytes4, worker_bytes6, worker_bytes_hops; // memory that workers may read
	size_t worker_bytes_labels;
	size_t worker_bytes_vxlan; // of devices and remote ends
	size_t control_bytes;      // memory that only the control thread reads
	size_t pending_frees;      // blocks waiting for the end of a grace period
};
void fib_usage(const struct fib *fib, struct fib_usage *out);

// Publishes `fib` to the workers (NULL: none, after all workers have ended), waits for an RCU grace
// period and returns the old fib for fib_destroy. While published, what is replaced in it is freed
// by rcu_poll. Control thread.
struct fib *fib_live_swap(struct fib_live *live, struct fib *fib);
