// Bridges and their MAC tables: one table for all, shared by all workers. The control thread is the
// only writer: it learns what workers tell it, ages, and keeps limits. Control thread.
#pragma once

#include "base/error.h"
#include "mac/mac_fast.h"
#include "rcu/rcu.h"
#include "wire/addr.h"

#include <stddef.h>

enum {
	MAC_MAX = 1000000, // addresses of all bridges
	MAC_DEFAULT_MAX = 8192,
	MAC_DEFAULT_AGEING_S = 300,
	MAC_GROUPS = 16384,       // groups of all bridges
	MAC_BRIDGES_BY_VLAN = 15, // of them filter by VLAN
	MAC_NAME_MAX = 16,        // including the final 0
	MAC_AT_REMOTE = 1 << 20,
	MAC_MOVES = 5, // more of them within MAC_MOVES_S, and the address is held for MAC_HOLD_S
	MAC_MOVES_S = 3,
	MAC_HOLD_S = 30,
	MAC_TURN = 1024,      // reports of workers that one call of mac_poll handles
	MAC_TURN_LINUX = 128, // of these, those of which it tells Linux
};

// A port, or a VXLAN device, of which a bridge, or each VLAN of it, has one at most.
struct mac_member {
	uint16_t port; // or MAC_FIRST_TUNNEL plus the number of the device
	uint8_t flags; // enum mac_port_flag
	uint32_t max;  // learnt addresses; 0: no limit of its own
	// Of a bridge that filters by VLAN, else NULL; its `domain` and `tag` are not read.
	const struct mac_vlans *vlans;
	uint32_t storm_pps[MAC_STORMS]; // 0: as the bridge says
};

struct mac_fixed {
	struct wire_mac mac;
	uint32_t port;  // a member; or MAC_AT_REMOTE plus the number of a remote end, of a member
	uint16_t vlan;  // 1 to 4094; 0: the bridge does not filter by VLAN
	bool is_pinned; // mac_follow: MAC_PINNED
};

struct mac_group {
	uint8_t family;     // enum mac_family
	uint16_t vlan;      // 1 to 4094; 0: the bridge does not filter by VLAN
	uint8_t addr[16];   // in memory order, then zeros
	struct mac_out out; // without routers
};

// How a bridge of Linux snoops.
struct mac_snooping {
	bool has_querier[MAC_FAMILIES]; // as in struct mac_snoop
	struct mac_out routers[MAC_FAMILIES];
	const struct mac_group *group; // different
	uint32_t n_groups;             // of all bridges at most MAC_GROUPS
};

// A VLAN interface on a bridge.
struct mac_vlan_iface {
	uint16_t iface;    // which no other has
	uint16_t tag, vid; // its EtherType, which is vlan_tag if the bridge filters by VLAN
};

// A bridge as configured. It keeps what it has learnt as long as it keeps its name and `linux_id`.
struct mac_bridge {
	char name[MAC_NAME_MAX];
	uint32_t linux_id;              // the interface of a bridge of Linux; 0: not Linux's
	uint32_t ageing_s, max;         // from 1 on
	uint32_t storm_pps[MAC_STORMS]; // of each port; 0: no limit
	uint16_t vlan_tag; // it filters by VLAN, with tags of this EtherType; 0: it does not
	struct mac_member *member; // ports that are in no other bridge; not written
	unsigned n_members;
	struct mac_fixed *fixed; // unicast, different, behind members; at most `max`
	uint32_t n_fixed;
	bool is_routed;      // frames to its own address are: they come in on its interface
	uint16_t iface;      // which no other bridge has
	struct wire_mac mac; // its own address
	// If it is routed: its own VLANs if it filters by VLAN, / and interfaces on it.
	const struct mac_vlans *own_vlans; // as those of a member
	const struct mac_vlan_iface *vlan_iface;
	unsigned n_vlan_ifaces;
	// Of a bridge of Linux: kinds (bits of enum mac_storm) of frames that workers do not flood,
	// / those of which Linux gets the frame itself, too.
	uint8_t linuxs, linux_too;
	const struct mac_snooping *snooping; // NULL: it does not snoop
};

// One address, for display.
struct mac_info {
	struct wire_mac mac;
	uint16_t domain, port; // port: member
	uint32_t remote;       // 0: it is behind no VXLAN device
	struct wire_addr end;  // only for `unknown`: the remote end; family 0: none
	uint16_t vlan;         // 0: the bridge does not filter by VLAN
	bool is_static, is_held, is_linux;
	bool is_unseen;  // Linux has told of it, and workers have seen no frame from there
	uint32_t idle_s; // since its latest frame
};

struct mac_settings {
	uint64_t hz; // of the TSC
	unsigned n_workers;
	struct rcu *rcu;
	// Called when an address is held: it is behind info->port and has come from `other`, too.
	void (*held)(void *ctx, const struct mac_info *info, uint16_t other);
	// Called for an address behind a port of a bridge of Linux, which does not have it there:
	// workers have flooded a frame from it. NULL: Linux is not told. From a VXLAN device that
	// learns remote ends, info->end is where the frame came from.
	void (*unknown)(void *ctx, const struct mac_info *info);
	// The remote end (number) of the VXLAN device `member` at an address; 0: none may be learnt
	// there. NULL: none is.
	uint32_t (*remote)(void *ctx, uint16_t member, const struct wire_addr *end);
	void *ctx;
};

struct mac_table;

// A table without bridges. -ENOMEM with `error` set. Owner: caller, mac_close once workers have
// ended.
int mac_open(struct mac_table **out, const struct mac_settings *settings, struct error *error);
void mac_close(struct mac_table *table);
const struct mac_live *mac_live(const struct mac_table *table);

// Prepares a change to these bridges, of which the table keeps no pointer, and of which at most
// MAC_BRIDGES_BY_VLAN filter by VLAN. -errno with `error` set:
// there is not enough memory. / Applies it: workers use it when the function returns, and nothing
// of what was before. Learnt addresses remain if their bridge and port do, and the bridge filters
// by VLAN as before. Cannot fail. `now`: TSC.
// / Drops it instead.
struct mac_pending;
int mac_prepare(struct mac_table *table, const struct mac_bridge bridges[], unsigned n,
	struct mac_pending **out, struct error *error);
void mac_commit(struct mac_table *table, struct mac_pending *pending, uint64_t now);
void mac_drop(struct mac_pending *pending);
// Replaces how all bridges snoop, and their groups; nothing else of `bridges` is read but the
// names. Workers use it when the function returns, and nothing of what was before. 0, or -ENOMEM
// with `error` set: nothing has changed.
int mac_set_groups(struct mac_table *table, const struct mac_bridge bridges[], unsigned n,
	struct error *error);
// The next group from *place on, which is 0 at first, with the ports of routers, and its bridge's
// domain. False: there are no more.
bool mac_group_page(const struct mac_table *table, uint32_t *place, struct mac_group *out,
	uint16_t *domain);
// The bytes that workers read of a table for so many addresses.
uint64_t mac_bytes(uint32_t max);
// Those that they read of this one: addresses, ports and VXLAN devices, remote ends, flood lists.
uint64_t mac_worker_bytes(const struct mac_table *table);

// Learns, ages, ends holds. Returns whether workers had told anything: then it should be called
// again in some milliseconds. `now`: TSC.
bool mac_poll(struct mac_table *table, uint64_t now);

// Holds a remote end of a VXLAN device, and gives it a number, by which struct mac_fixed and flood
// lists name it. One that is held several times has one number, and is to be released as often.
// -ENOSPC with `error` set. / Before the last hold is released, it must be gone from the table and
// from flood lists; its number is given again only when no worker can have it any more.
int mac_remote_hold(struct mac_table *table, const struct mac_remote *remote, uint32_t *number,
	struct error *error);
void mac_remote_release(struct mac_table *table, uint32_t number);
// 0: it is not held.
uint32_t mac_remote_find(const struct mac_table *table, const struct mac_remote *remote);
// False: it is not held.
bool mac_remote_at(const struct mac_table *table, uint32_t number, struct mac_remote *out);
// The remote ends that get frames that are flooded by a VXLAN device: those of the address 0 in
// Linux's table of it. It is kept over commits, whether the device is in a bridge or not. When this
// returns, workers use it, and not the one before. -ENOMEM with `error` set: the old one remains.
int mac_set_flood(struct mac_table *table, uint16_t member, const uint32_t remotes[], unsigned n,
	struct error *error);

// Linux has an address of the bridge behind the port or the remote end, which is in it, or, with
// port MAC_PORTS, elsewhere: then no function below tells of it. `now`: TSC. False: it is new, and
// the bridge has `max` addresses, or there is no space. / Linux has it no more.
bool mac_follow(struct mac_table *table, uint16_t domain, const struct mac_fixed *at, uint64_t now);
void mac_unfollow(struct mac_table *table, uint16_t domain, const struct mac_fixed *at);
// Counts an address of Linux's that workers will not know, because of a limit.
void mac_refuse(struct mac_table *table, uint16_t domain);
// Whether Linux may have addresses of which mac_follow was not told; at first it has none.
void mac_set_partial(struct mac_table *table, bool is_partial);

// Which addresses: of a bridge's domain (0: of all) and a port (MAC_PORTS: of all).
struct mac_choice {
	uint16_t domain, port;
};
// Forgets learnt addresses, except those of Linux. Returns how many.
uint32_t mac_flush(struct mac_table *table, const struct mac_choice *choice);

// Up to n addresses from place *place on, which is 0 at first and then where to go on; *place is 0
// after the last one. One that moves in the table between two calls may be missing, or come twice.
// Returns how many.
unsigned mac_page(const struct mac_table *table, const struct mac_choice *choice, uint64_t now,
	uint32_t *place, struct mac_info out[], unsigned n);
// A page looks at so many places at most, and may be shorter than n.
enum { MAC_PAGE_PLACES = 1 << 16 };

// A bridge in use and what happened in it since it was added.
struct mac_usage {
	const char *name; // valid until the next commit
	bool is_linux, filters_vlans;
	uint32_t ageing_s, max, n_static, n_learnt;
	uint32_t storm_pps[MAC_STORMS];
	uint64_t n_added, n_moved, n_aged, n_held; // n_held: times that an address was held
	uint64_t n_refused; // reports of addresses that were not learnt because of a limit
	uint64_t n_evicted; // forgotten to make room for those of other ports
};
// How workers send to a neighbour on an interface of a bridge: the member, and the tag, as
// mac_tag_of, which is 0 for one that is no port. False: they do not.
struct mac_way {
	uint16_t port;
	uint32_t tag;
};
bool mac_way_to(const struct mac_table *table, uint16_t iface, const struct wire_mac *mac,
	struct mac_way *out);
// The own VLANs of a bridge, by its domain; NULL: it has none. Valid until the next commit.
const struct mac_vlans *mac_own_vlans(const struct mac_table *table, uint16_t domain);
// The bridge of a domain, from 1 to MAC_BRIDGES. False: there is none.
bool mac_usage(const struct mac_table *table, uint16_t domain, struct mac_usage *out);
// 0: there is none of this name.
uint16_t mac_domain(const struct mac_table *table, const char *name);
// A member of a bridge, and how many addresses were learnt behind it; its VLANs are valid until the
// next commit. False: it is in no bridge.
bool mac_member(const struct mac_table *table, uint16_t port, struct mac_member *out,
	uint16_t *domain, uint32_t *n_learnt);
