// The MAC tables of bridges as workers use them: which bridge a port is in, where a MAC address is,
// and what to tell the control thread. Nothing here allocates, locks or makes system calls. Worker.
#pragma once

#include "base/bits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MAC_BURST = 64,  // addresses of one lookup
	MAC_SLOTS = 4,   // of a bucket, which is a cache line
	MAC_PORTS = 256, // ports are interfaces; those of static bridges have ids below
	// A member of a bridge that is no port, but a VXLAN device: its number is this one plus
	// that of the device (struct iface_tunnel).
	MAC_FIRST_TUNNEL = MAC_PORTS + 1,
	MAC_TUNNELS = 4096,
	MAC_MEMBERS = MAC_FIRST_TUNNEL + MAC_TUNNELS,
	MAC_MAX_REMOTES = (1 << 17) - 1, // numbers are 1 to this
	MAC_WORKERS = 128,
	MAC_RING = 1024, // reports of a worker that wait for the control thread
	MAC_MARKS = 256, // reports that a worker remembers
	MAC_BRIDGES = 64,
	MAC_VIDS = 4096, // VLANs, of which 0 and 4095 are none
};

// STATIC: configured, stays where it is. HELD: learnt, and moved too often; stays for a while.
// LINUX: of a bridge of Linux, which alone moves and forgets it. ELSEWHERE: so is this one, but it
// is behind no port that workers serve, or the bridge's own; its `port` is MAC_PORTS. REMOTE: it is
// behind a VXLAN device; its `port` is the number of a remote end. TUNNEL: no address, but the
// member by which floods of the domain of its key, whose address is 0, leave by VXLAN. PINNED: of
// Linux, whose VXLAN device drops frames of it unless they come from the remote end of the entry.
enum mac_flag {
	MAC_STATIC = 1 << 0,
	MAC_HELD = 1 << 1,
	MAC_LINUX = 1 << 2,
	MAC_ELSEWHERE = 1 << 3,
	MAC_REMOTE = 1 << 4,
	MAC_TUNNEL = 1 << 5,
	MAC_PINNED = 1 << 6
};
enum mac_port_flag {
	MAC_LEARNS = 1 << 0,   // source addresses are learnt
	MAC_FLOODS = 1 << 1,   // gets frames to unknown addresses
	MAC_ISOLATED = 1 << 2, // exchanges no frames with other isolated ports
	MAC_HAIRPIN = 1 << 3,  // frames may leave by the port on which they came in
	MAC_OF_LINUX = 1 << 4, // of a bridge of Linux, which gets all frames but those between two
	                       // addresses that it knows behind such ports, and those of the
	                       // kinds that workers flood
	MAC_NO_BROADCASTS = 1 << 5,  // gets no frames to all
	MAC_NO_MULTICASTS = 1 << 6,  // nor to other groups
	MAC_LEARNS_REMOTES = 1 << 7, // VXLAN: with source addresses, the remote end is learnt, too:
	                             // with MAC_OF_LINUX, Linux is told of both (mac_info.end)
};
// The kinds of frames that are flooded, which storm control distinguishes.
enum mac_storm { MAC_BROADCAST, MAC_MULTICAST, MAC_UNKNOWN, MAC_STORMS };
enum { MAC_ALL_STORMS = (1 << MAC_STORMS) - 1 }; // a bit of each

// One address, replaced as a whole by the control thread (base/word16.h), except for `seen`, which
// workers write.
struct mac_slot {
	uint64_t key;        // mac_key(); 0: free
	uint32_t port : 20;  // behind which it is: a member, or a remote end
	uint32_t flags : 12; // enum mac_flag
	uint32_t seen;       // tick of its latest frame; atomic, relaxed
} __attribute__((aligned(16)));

struct mac_bucket {
	struct mac_slot slot[MAC_SLOTS];
} LINE_ALIGNED;
_Static_assert(sizeof(struct mac_bucket) == CACHE_LINE_BYTES, "a bucket is a line");

// An address is in one of two buckets. Entries move between theirs: a copy is made first, then
// `version` changes, then the original goes, so that who finds nothing twice under one version
// knows that there is nothing.
struct mac_slots {
	struct mac_bucket *bucket;
	uint32_t n_buckets;
	uint32_t version; // atomic, release; partner: mac_find
	uint64_t secret[4];
} LINE_ALIGNED;

// The VLANs of a port whose bridge filters by them, or of the bridge's own interface. The sets have
// a bit for each VLAN.
struct mac_vlans {
	uint16_t domain;             // of VLAN 0: those of the other VLANs of the bridge follow
	uint16_t tag;                // EtherType of the bridge's tags, host order
	uint16_t pvid;               // the VLAN of frames that have none; 0: these are not let in
	uint64_t has[MAC_VIDS / 64]; // frames are let in and out
	uint64_t untagged[MAC_VIDS / 64]; // these leave without a tag
};

static inline bool mac_vlans_has(const uint64_t set[], uint16_t vid)
{
	return set[vid / 64] >> vid % 64 & 1;
}

// A remote end of a VXLAN device: where frames to a MAC address behind it go. Immutable.
struct mac_remote {
	uint32_t vtep;     // number of fib_vtep_hold
	uint32_t vni;      // other than the device's, with has_vni
	uint16_t member;   // of the device, from MAC_FIRST_TUNNEL on
	uint16_t udp_port; // 0: the device's
	bool has_vni;
} __attribute__((aligned(16)));

// The remote ends of a device that get its floods. Immutable.
struct mac_flood {
	uint32_t n;
	uint32_t remote[]; // numbers
};

// A member of a bridge: a port or a VXLAN device. The sets of `copies` have a bit for each port
// that gets a copy of a frame from this one, by the frame's kind; whether a VXLAN device does is in
// MAC_FLOODS and the like of that. None gets a frame of another one, or of itself.
struct mac_port {
	uint16_t domain;                   // of the bridge; 0: in no bridge
	uint8_t flags;                     // enum mac_port_flag
	uint8_t linuxs;                    // kinds that only Linux floods; a bit of each
	uint8_t linux_too;                 // kinds of which Linux gets the frame itself, too
	const struct mac_vlans *vlans;     // NULL: the bridge does not filter by VLAN
	const struct mac_vlans *own_vlans; // its bridge's own; NULL: likewise, or without `own`
	uint16_t iface;                    // its bridge's; only with `own`
	uint64_t own;                      // key of its bridge's address: frames to it are routed,
	                                   // if they are in one of its VLANs; 0: they are not
	uint64_t storm_cycles[MAC_STORMS]; // between frames; 0: no limit
	uint64_t copies[MAC_STORMS][MAC_PORTS / 64];
	uint64_t others[MAC_PORTS / 64]; // those that may get frames from this one
} LINE_ALIGNED;

// Groups of a bridge of Linux that snoops: of MAC addresses, for packets that are not IP, of IPv4
// and of IPv6.
enum mac_family { MAC_OF_MACS, MAC_OF_IP4, MAC_OF_IP6, MAC_FAMILIES };

// `of`: the domain of the bridge or the VLAN, and the family; 0: none. `addr`: in memory order,
// then zeros.
struct mac_group_key {
	uint64_t of, addr[2];
};

// Where frames to a group go.
struct mac_out {
	uint64_t ports[MAC_PORTS / 64]; // a bit of each
	bool linux_too;                 // Linux gets the frame itself, too
};

struct mac_group_slot {
	struct mac_group_key key;
	struct mac_out out;
} LINE_ALIGNED;
_Static_assert(sizeof(struct mac_group_slot) == CACHE_LINE_BYTES, "a group is a line");

// A bridge that snoops.
struct mac_snoop {
	bool snoops;
	bool has_querier[MAC_FAMILIES]; // frames to groups that nobody is known to want go to
	                                // `routers`; else they are flooded, and of IP all are
	uint32_t n_groups;
	struct mac_out routers[MAC_FAMILIES];
};
struct mac_groups;

// An interface of a bridge that workers route on: its own, or that of a VLAN. Its place is the
// first free one from `iface` on.
struct mac_iface {
	uint16_t iface;
	uint16_t domain;   // where its neighbours are; 0: the place is free
	uint16_t tag, vid; // of what it sends; `tag` 0: none, or, if the bridge filters by VLAN,
	                   // that of the port
};

// Replaced as a whole (RCU).
struct mac_view {
	struct mac_slots *slots;
	unsigned tick_shift; // a tick is 1 << tick_shift cycles of the TSC: 0.5 to 1 s
	uint64_t storm_burst_cycles;
	struct mac_groups *groups; // atomic; NULL: no bridge snoops
	struct mac_iface *iface;   // in last_iface + 1 places, a power of two
	unsigned last_iface;
	uint32_t n_members;     // of `port`; at least MAC_FIRST_TUNNEL
	struct mac_port port[]; // by member
};

// The interface of a bridge; NULL: workers do not route on it. Worker and control thread.
static inline const struct mac_iface *mac_iface_of(const struct mac_view *view, uint16_t iface)
{
	unsigned at = iface & view->last_iface;

	while (view->iface[at].domain && view->iface[at].iface != iface)
		at = (at + 1) & view->last_iface;
	return view->iface[at].domain ? &view->iface[at] : NULL;
}

// The tag of what leaves on an interface of a bridge by one of its ports: its EtherType << 16, and
// the VLAN; 0: none. False: the port is not in the VLAN. Worker and control thread.
static inline bool mac_tag_of(const struct mac_view *view, const struct mac_iface *iface,
	uint16_t port, uint32_t *tag)
{
	const struct mac_vlans *vlans = view->port[port].vlans;
	const uint16_t type = vlans ? vlans->tag : iface->tag;

	*tag = 0;
	if (vlans && !mac_vlans_has(vlans->has, iface->vid))
		return false;
	if (type && !(vlans && mac_vlans_has(vlans->untagged, iface->vid)))
		*tag = (uint32_t)type << 16 | iface->vid;
	return true;
}

// An address that is unknown, or known behind another port.
struct mac_told {
	uint64_t key;
	uint16_t port;      // member
	uint16_t n_flushes; // set by mac_tell
	uint32_t tick;
	uint8_t end[16]; // of a VXLAN device: the address of the remote end
	uint8_t family;  // of that; 0: it is none
};

// `read` is written by the control thread, all else by the worker.
struct mac_ring {
	uint32_t read LINE_ALIGNED;
	uint32_t written LINE_ALIGNED;
	struct mac_told mark[MAC_MARKS]; // told in this tick
	struct mac_told item[MAC_RING];
};

// Theoretical arrival times of a port's storm control (GCRA); atomic, relaxed: all workers of the
// port share a limit.
struct mac_due {
	uint64_t at[MAC_STORMS];
} LINE_ALIGNED;

// What workers hold.
struct mac_live {
	struct mac_view *view; // atomic; partner: mac_commit
	struct mac_ring *ring[MAC_WORKERS];
	uint16_t n_flushes; // atomic, relaxed: what was told before is to be told again
	bool is_partial;    // atomic, relaxed: Linux may have addresses that are not in the view:
	                    // it floods frames to unknown ones itself
	struct mac_due due[MAC_PORTS];   // not of VXLAN devices, which have no storm control
	const struct mac_remote *remote; // by number
	const struct mac_flood *flood[MAC_TUNNELS]; // by device; atomic; NULL: none
};

// The remote end of an entry with MAC_REMOTE, and those that get floods of a VXLAN device; NULL:
// none. Valid until the worker reports a quiescent state.
static inline const struct mac_remote *mac_live_remote(const struct mac_live *live, uint32_t number)
{
	return &live->remote[number];
}

static inline const struct mac_flood *mac_live_flood(const struct mac_live *live, uint16_t member)
{
	return __atomic_load_n(&live->flood[member - MAC_FIRST_TUNNEL], __ATOMIC_ACQUIRE);
}

static inline const struct mac_view *mac_live_view(const struct mac_live *live)
{
	return __atomic_load_n(&live->view, __ATOMIC_ACQUIRE);
}

static inline const struct mac_groups *mac_view_groups(const struct mac_view *view)
{
	return __atomic_load_n(&view->groups, __ATOMIC_ACQUIRE); // pairs with mac_set_groups
}

static inline struct mac_group_key mac_group_key(uint16_t domain, enum mac_family family,
	const uint8_t addr[16])
{
	return (struct mac_group_key){(uint64_t)domain << 16 | family,
		{load64(addr), load64(addr + 8)}};
}

// How the bridge of a domain from 1 to MAC_BRIDGES snoops. NULL: it does not, or frames to groups
// are Linux's. / Where frames to a group go. NULL: nobody is known to want it. Both are valid until
// the worker reports a quiescent state. Worker.
const struct mac_snoop *mac_snoop_of(const struct mac_view *view, uint16_t domain);
const struct mac_out *mac_group_find(const struct mac_view *view, const struct mac_group_key *key);

// The key of an address in a domain, which is not 0. Two bytes after the address are read, too.
static inline uint64_t mac_key(uint16_t domain, const uint8_t *mac)
{
	return (load64(mac) & ((1ull << 48) - 1)) | (uint64_t)domain << 48;
}

static inline uint32_t mac_tick(const struct mac_view *view, uint64_t tsc)
{
	return tsc >> view->tick_shift;
}

// What a lookup found. `slot` is NULL: nothing.
struct mac_found {
	struct mac_slot *slot;
	uint32_t port; // as in struct mac_slot
	uint16_t flags;
	uint32_t seen;
};

// Looks up n keys, at most MAC_BURST: prefetches, then compares. The slots are valid until the
// worker reports a quiescent state; what one holds may change at any time. Worker and control
// thread.
void mac_lookup(const struct mac_slots *slots, const uint64_t key[], unsigned n,
	struct mac_found found[]);

// Marks an address as used: at most one write per tick and address. Worker.
static inline void mac_mark(const struct mac_found *found, uint32_t tick)
{
	if (unlikely(found->seen != tick))
		__atomic_store_n(&found->slot->seen, tick, __ATOMIC_RELAXED);
}

// Tells the control thread of an address, unless it was told in this tick. False: there is no
// space, so that it is not learnt now. Worker.
bool mac_tell(const struct mac_live *live, unsigned worker, const struct mac_told *told);

// Whether storm control lets a frame of this kind from the port pass; counts it if so. `now`: TSC.
// Worker.
bool mac_storm_passes(const struct mac_live *live, const struct mac_view *view, uint16_t port,
	enum mac_storm kind, uint64_t now);
