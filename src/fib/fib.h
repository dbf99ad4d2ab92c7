// Longest-prefix match for IPv4 and IPv6: routes, next hops and neighbours. One thread writes (the
// control thread), workers read through fib_fast.h, QSBR in between. A struct fib is a whole
// forwarding table; a reload builds a second one beside it and swaps it in at the door.
#pragma once

#include "base/error.h"
#include "stats/verdict.h"
#include "wire/addr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FIB_MAX_PORTS = 255,
	FIB_MAX_IFACES = 4096, // a link is a port (it has the port's index) or a VLAN on one
	FIB_MAX_VRFS = 64,     // tables; 0 is the main one
	FIB_MAX_TAGS = 2,      // VLAN tags of a link
	FIB_IFACE_MACS = 8,    // further MAC addresses of a link
	FIB_MAX_HOPS = 32767,  // ids 1 to 32767 in a 15-bit leaf; id 0 is "no route"
	FIB_NO_IFACE = 0xffff,
};

enum fib_kind {
	FIB_VIA,       // to the neighbour `via` on `link`
	FIB_CONNECTED, // on link: the destination itself is the neighbour; unresolved unless
	               // fib_neighbour_set knows it
	FIB_PEER,      // to the peer MAC of `link`, whoever it is (plain triples ADDRESS MASK PORT)
	FIB_GROUP,     // to one of several, by flow; made by fib_group
	FIB_LOCAL,     // ours or a broadcast address
	FIB_BLACKHOLE,
	FIB_UNREACHABLE,
	FIB_PROHIBIT,
	FIB_MARTIAN, // never forwarded: built-in ranges
	FIB_LINK_LOCAL,
	FIB_MULTICAST,
	FIB_LINUX, // what workers cannot express; Linux forwards it
	N_FIB_KINDS
};

// Where a route leads; two hops are the same when all fields are.
struct fib_hop {
	struct wire_addr via; // family 0 unless FIB_VIA; may differ from the route's (RFC 5549)
	uint8_t kind;         // enum fib_kind
	uint16_t iface;       // FIB_NO_IFACE where the kind has none
};

struct fib_route {
	struct wire_prefix prefix; // host bits clear
	uint16_t vrf;              // table that it stands in; 16 bits: no padding
	struct fib_hop hop;
};

enum fib_op { FIB_ADD, FIB_REPLACE, FIB_DELETE };

// add: the prefix must be absent; replace: absent or present; delete: must be present (hop is not
// looked at).
struct fib_change {
	uint8_t op; // enum fib_op
	struct fib_route route;
};

enum fib_iface_flag {
	FIB_IFACE_DOWN = 1, // set down in Linux: frames that come in are dropped
	FIB_IFACE_LINUX =
		2, // all its frames go to Linux: something is on it that workers do not know
	FIB_IFACE_LINUX4 =
		4, // the same for IPv4 packets to be forwarded (forwarding off, rp_filter)
	FIB_IFACE_LINUX6 = 8, // and for IPv6
	FIB_IFACE_REDIRECTS4 =
		16, // Linux would send redirects: see packets that leave as they came
	FIB_IFACE_REDIRECTS6 = 32,
	FIB_IFACE_DISCOVERY6 =
		64, // Linux may answer for others: all neighbour discovery goes there
};

// A VLAN tag on the wire, host order.
struct fib_tag {
	uint16_t tpid; // 0x8100, 0x88a8
	uint16_t vid;  // 1 to 4094
};

// What the tables must know of a link to take its frames in, to write headers and to judge lengths.
struct fib_iface {
	struct wire_mac mac;  // source MAC of frames that leave; unicast frames to it are ours
	struct wire_mac peer; // destination MAC for FIB_PEER
	bool has_peer;
	uint8_t port;                     // index
	uint8_t vrf;                      // table that answers for packets that come in
	uint8_t flags;                    // enum fib_iface_flag
	uint8_t n_tags;                   // 0: the port itself
	uint8_t n_macs;                   // further addresses that are ours (macvlan, VRRP)
	uint16_t mtu;                     // bytes of the IP packet, 68 to 9600
	uint16_t mtu6;                    // the same of IPv6 packets, if less; 0: not so
	struct fib_tag tag[FIB_MAX_TAGS]; // outer one first
	struct wire_mac macs[FIB_IFACE_MACS];
};

// Of packets of this family.
static inline uint16_t fib_iface_mtu(const struct fib_iface *iface, uint8_t family)
{
	return family == 6 && iface->mtu6 ? iface->mtu6 : iface->mtu;
}

struct fib;
struct fib_rcu;

// An empty table with the built-in routes that RFC 1812 5.3.7, RFC 3927 and RFC 4291 ask for
// (127/8, 0/8, 0.0.0.0, 240/4, 255.255.255.255 and ::, ::1 martian; 169.254/16 and fe80::/10
// link-local; 224/4 and ff00::/8 multicast). NULL with `error` set. Control thread; owner: caller.
struct fib *fib_create(struct error *error);
void fib_destroy(struct fib *fib);

// A further table, with the built-in routes, that shares next hops, groups and links with the main
// one. It takes at most half a MiB at first; any number of routes is possible, but an IPv4 lookup
// costs what an IPv6 one does. -EINVAL, -EEXIST, -ENOMEM with `error` set. / All its routes go;
// workers find no route in it. Links stay in it, and their neighbours are known again when it opens
// again. The main one cannot be closed. Control thread.
int fib_vrf_open(struct fib *fib, uint8_t vrf, struct error *error);
void fib_vrf_close(struct fib *fib, uint8_t vrf);
bool fib_vrf_is_open(const struct fib *fib, uint8_t vrf);

// Tells of a link or changes what was told; next hops on it are rewritten at once, and workers take
// its frames in by it; its neighbours are hosts of its VRF. When
// a link's port or tags are others than those last told under its number, waits until no worker
// knows the old ones. -EINVAL (another number than the port's and no tags; no such port; tags that
// another link of the port has, or that no VLAN can have; a VRF that is not open; an MTU or a
// number of MAC addresses out of range) or -ENOSPC, and nothing is changed. / Frames with its tags
// are unknown from now on, those of a port are dropped as if it were down; next hops on it are
// unresolved, its neighbours stay known. Control thread.
int fib_iface_set(struct fib *fib, uint16_t iface, const struct fib_iface *settings);
void fib_iface_delete(struct fib *fib, uint16_t iface);
// What was told of it; NULL: nothing.
const struct fib_iface *fib_iface(const struct fib *fib, uint16_t iface);

// A batch, all or nothing: on error nothing is changed, `error` names the prefix and *bad (may be
// NULL) is its index. A batch may name a prefix several times; changes count in order. -EINVAL,
// -EEXIST, -ENOENT, -ENOSPC (hops, or memory). Workers see each route either old or new. Fast for
// one change and for millions. Control thread.
int fib_change(struct fib *fib, const struct fib_change *changes, size_t n, size_t *bad,
	struct error *error);

// Many small changes scatter what workers read over more cache lines than one large batch needs.
// Call it now and then, some 20 times a second: when a good part of the IPv4 routes has changed and
// no more are coming, it moves all of it together (some 50 ms for a million routes). Control
// thread.
void fib_tidy(struct fib *fib);

// One of a route's next hops (VIA or PEER) and its share, 1 to 255.
struct fib_member {
	struct fib_hop hop;
	uint8_t weight;
};

// Equal-cost multipath: the hop for a route that leads to n next hops (1 to 64), each taking its
// share of flows by weight, to one part in 1024. A flow stays with its member while the group
// stands. The same members in any order are the same group. `out` is good for the next fib_change,
// also when that fails or has no changes. -EINVAL, -ENOSPC (4096 groups) with `error` set. Control
// thread.
int fib_group(struct fib *fib, const struct fib_member *members, unsigned n, struct fib_hop *out,
	struct error *error);
// Members of a hop of kind FIB_GROUP, at most `max` written; returns how many there are. Control
// thread.
unsigned fib_group_members(const struct fib *fib, const struct fib_hop *hop, struct fib_member *out,
	unsigned max);

// The MAC address of a neighbour on a link. All next hops via it are resolved at once; where it
// lies in a CONNECTED route of that link, in the link's VRF, it is reachable as a host of its own.
// Delete: back to unresolved. Control thread.
int fib_neighbour_set(struct fib *fib, uint16_t iface, const struct wire_addr *addr,
	const struct wire_mac *mac, struct error *error);
int fib_neighbour_delete(struct fib *fib, uint16_t iface, const struct wire_addr *addr);

// What workers would do with a packet to `addr`, from the routes (not from the workers' copy, which
// fib_lookup tells). Control thread.
struct fib_answer {
	bool found;             // a route covers it
	struct fib_route route; // the longest prefix that covers it
	uint16_t hop_id;
	struct fib_hop hop;  // after CONNECTED was resolved to the neighbour
	uint8_t verdict;     // VERDICT_FORWARD, or why not
	struct wire_mac mac; // destination MAC when resolved
};
void rib_lookup(const struct fib *fib, uint8_t vrf, const struct wire_addr *addr,
	struct fib_answer *answer);
// The hop id that workers read for `addr`, through the same code as workers. 0 in a VRF that is not
// open.
uint16_t fib_lookup(const struct fib *fib, uint8_t vrf, const struct wire_addr *addr);

// Routes of one VRF in order of address, then length, without built-in ones: the first after
// `after` (NULL: the very first) of `family`. False at the end. O(depth). Control thread.
struct fib_walk {
	const struct wire_prefix *after;
	uint8_t family, vrf;
};
bool fib_next(const struct fib *fib, const struct fib_walk *walk, struct fib_route *out);

struct fib_hop_info {
	struct fib_hop hop;
	struct wire_mac mac; // of a neighbour, or where packets are forwarded to
	bool is_neighbour;   // fib_neighbour_set has told of it
	uint8_t verdict; // VERDICT_FORWARD (groups: each member has its own) or why packets to it
	                 // are dropped
	uint16_t mtu;
	uint32_t n_routes;
	uint64_t counted_before; // what workers had counted under its id until it got that
};
// Next hop by id. False: no such one; go on to the next id up to fib_usage.max_hop_id. Control
// thread.
bool fib_hop_info(const struct fib *fib, uint16_t id, struct fib_hop_info *out);

// How to ask for the packets that workers have counted under an id until now. Next hops start
// there: those of the table now, others when they get their id. Control thread.
struct fib_count {
	uint64_t (*counted)(const void *ctx, uint16_t id);
	const void *ctx;
};
void fib_count_from_now(struct fib *fib, const struct fib_count *count);

struct fib_usage {
	uint32_t n_routes4, n_routes6, n_hops, n_neighbours;
	uint16_t max_hop_id;
	size_t worker_bytes4, worker_bytes6, worker_bytes_hops; // what workers may read
	size_t control_bytes; // what only the control thread reads
	size_t pending_frees; // blocks waiting for workers to pass by
};
void fib_usage(const struct fib *fib, struct fib_usage *out);

// The door between the writer and workers. `n_workers` up to STATS_MAX_WORKERS. Control thread;
// owner: caller.
struct fib_rcu *fib_rcu_create(unsigned n_workers, struct error *error);
void fib_rcu_destroy(struct fib_rcu *rcu); // all workers offline, nothing attached
// Makes `fib` what workers read (NULL: nothing, once all workers have ended), waits until no worker
// reads the old one, returns the old one for fib_destroy.
struct fib *fib_rcu_swap(struct fib_rcu *rcu, struct fib *fib);
// Frees what no worker can read any more; cheap, call it often. Names a worker that has been silent
// for a second (returns its id, else -1).
int fib_rcu_poll(struct fib_rcu *rcu);
