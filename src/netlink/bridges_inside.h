// Bridges of Linux, and the part of them that workers serve. Control thread.
#pragma once

#include "base/hash_table.h"
#include "mac/mac.h"
#include "netlink/ifaces_inside.h"

// A VXLAN device that workers serve: a port of a bridge, or, in none, a bridge of its own.
struct served_tunnel {
	struct mac_member member;
	uint32_t vlans; // the version of its VLANs; 0: it has none
	int ifindex;
	uint32_t ageing_s; // after which it forgets what it has learnt
	uint16_t vrf;      // of outer packets
	uint16_t of;       // index of the bridge
};
enum { SERVED_TUNNELS = 1024 };

// A bridge with the ports of it that workers serve.
struct served {
	int ifindex;    // of the bridge
	bool is_tunnel; // it is a VXLAN device that is in no bridge
	bool runs_stp, snoops;
	struct mac_bridge is;
	uint32_t wants; // addresses for which it should have space, from is.max on
	struct mac_member member[PORT_MAX];
	uint32_t vlans[PORT_MAX];         // the version of each member's VLANs; 0: it has none
	uint32_t own_vlans;               // likewise, of its own
	unsigned first_iface;             // of its VLAN interfaces, in those of all bridges
	unsigned first_tunnel, n_tunnels; // likewise
};

struct served_set {
	unsigned n;
	struct served *bridge;        // MAC_BRIDGES of them
	uint8_t of_port[PORT_MAX];    // index into `bridge` + 1; 0: the port is not served
	struct mac_vlan_iface *iface; // those on each bridge are side by side
	size_t n_ifaces, iface_capacity;
	struct served_tunnel *tunnel; // SERVED_TUNNELS of them; those of each bridge are side by
	                              // side
	unsigned n_tunnels;
	uint16_t of_number[IFACE_MAX_VXLANS]; // index into `tunnel` + 1; 0: it is not served
};

// NULL: it has no port that is served.
static inline struct served *served_find(const struct served_set *set, int ifindex)
{
	for (unsigned i = 0; i < set->n; i++)
		if (set->bridge[i].ifindex == ifindex)
			return &set->bridge[i];
	return NULL;
}

// A remote end that workers have; 0: none.
struct held_remote {
	uint32_t remote, vtep;
};

// Where frames to one address go.
struct remote_entry {
	struct hash_node node; // first: see hash_table.h
	struct event_remote is;
	uint32_t seen; // the last dump that contained it
};

// The remote ends of all VXLAN devices: by device and MAC address, and those that get floods.
struct remotes {
	struct hash_table table, devices;
	uint32_t most;                     // entries that are stored
	bool is_dirty;                     // a device is
	bool is_known;                     // a dump has contained all
	bool is_short;                     // Linux may have more than are stored
	uint32_t n_buckets, left;          // of a walk over `table`: its size, and what is to come
	uint32_t n_held[IFACE_MAX_VXLANS]; // remote ends that workers have, by device
};

// The MAC addresses of all bridges, by bridge, VLAN and address.
struct fdb {
	struct hash_table table, bridges;
	uint64_t secret[2]; // of the hash
	uint32_t most;      // addresses of a bridge that are stored
	struct fdb_entry *dirty,
		**end;        // those that have changed, in order; where the next one goes
	uint32_t dump, swept; // what was not seen since dump `swept` is gone
	uint32_t n_buckets, at,
		left;    // of a walk over `table`: its size, place, and what is to come
	bool lacks;      // since the walk began, workers have not got all
	unsigned n_over; // bridges that have more than are stored
};

// Who wants a group: a port, or the bridge itself; from anybody, or from a source.
struct mdb_member {
	int ifindex;
	uint32_t seen; // the last dump that contained it
	bool has_source, is_odd;
	uint8_t source[16];
};

struct mdb_group {
	struct hash_node node; // first: see hash_table.h
	int bridge;
	uint16_t vlan;
	uint8_t family; // as in struct event_group
	uint8_t addr[16];
	struct mdb_member *member; // at least one
	size_t n, capacity;
};

struct mdb_router {
	int bridge, ifindex;
	bool for4, for6;
};
struct mdb_routers {
	struct mdb_router *list;
	size_t n, capacity;
	bool is_short; // there was no memory for more
};

// The groups of all bridges, by bridge, VLAN and address.
struct mdb {
	struct hash_table table;
	uint64_t secret[2]; // of the hash
	uint32_t n, most;   // memberships; those that are stored
	uint32_t dump;
	bool is_whole;   // as of the latest dump
	bool is_over;    // Linux has more than are stored
	bool is_short;   // workers could not get them for lack of memory
	bool is_changed; // since workers got them
	bool routers_known;
	bool routers_told;                        // of a change, since they were read
	struct mdb_routers routers, next_routers; // next: scratch
	uint64_t polled_ns, took_ns;              // when routers were read; 0: to be read again
};

// What a bridge that snoops does with packets to groups, of a family.
enum snooped {
	SNOOPED_NONE,     // it floods them, as there is no querier
	SNOOPED_BY_TABLE, // it sends them where they are wanted
	SNOOPED_UNCLEAR,  // one of both
};

// Those who ask hosts of a bridge for groups. Index 0: IPv4, 1: IPv6.
struct querier {
	int ifindex; // of the bridge; 0: none
	uint8_t who[2];
	uint64_t since_ns[2], wait_ns[2]; // the latest of them came then; Linux floods so long
	bool is_settled[2];               // this time is over
	enum snooped is[2];               // when it was last looked at
};

// How bridges snoop, as workers have it.
struct snooping {
	struct mac_snooping of[MAC_BRIDGES]; // of those of the set
	struct mac_group *group;
	size_t n;
};

// Ports between which the guard keeps Linux from flooding.
struct guarded {
	unsigned n;
	struct guard_port port[GUARD_MAX];
};

struct floods {
	struct guarded now, next, wanted; // wanted: were there a guard
	bool is_guarded;                  // `wanted`, when the guard was last asked
	// Of served ports, when they were last looked at: whether an access list judges them, and
	// their limits of storm control.
	bool is_judged[PORT_MAX];
	uint32_t storm_pps[PORT_MAX][MAC_STORMS];
};

struct bridges {
	struct mirror *mirror;
	struct served_set now, next; // what workers have; scratch
	struct mac_pending *none; // no bridge: for when there is no memory; set while any is served
	struct floods floods;
	uint16_t domain[MAC_BRIDGES]; // of those of `now` in the MAC table
	struct fdb fdb;
	struct remotes remotes;
	struct mdb mdb;
	struct querier querier[MAC_BRIDGES];
	uint64_t asked_ns; // when bridges were last asked for them; 0: never
	struct snooping snooping;
	uint64_t publish_ns; // not before, workers get other groups
	uint32_t judged;     // ifaces->judged when they were chosen last
	bool is_stale;       // they are to be chosen again
	bool is_short;       // logged: there was no memory for them, or for more of their addresses
	uint64_t tried_ns;   // when there was none; 0: not known yet
	uint64_t began_ns;   // when the latest round of refreshes began; 0: never
	uint64_t recent_s;   // it reports those seen since the one before began
	uint32_t place;      // where it is in the MAC table; 0: it has ended
};

// The EtherType of the tags of a bridge that filters by VLAN; 0: it does not.
uint16_t bridges_vlan_tag(const struct event_bridge *bridge);
// bridges_routed.c. Whether workers route on a bridge: those of its neighbours that are behind
// ports they serve. / Says so of one that they serve, with its VLAN interfaces. / The VLANs of a
// port or a bridge; there may be none.
bool bridges_route_on(const struct interface *bridge);
void bridges_set_routed(struct bridges *bridges, struct served *served,
	const struct interface *bridge);
const struct mac_vlans *bridges_vlans_of(const struct interface *one);
// Chooses the ports that workers serve, and gives them to workers.
void bridges_choose(struct bridges *bridges);
// Some time after there was not enough memory, has it tried again. Call about ten times a second.
void bridges_retry(struct bridges *bridges, uint64_t now_ns);

// floods.c. Decides which frames workers flood for the bridges of `next`, and has these guarded.
// / Once workers have them: nothing else is guarded. / Re-reads what nobody tells of.
void floods_choose(struct bridges *bridges);
void floods_settle(struct bridges *bridges);
void floods_poll(struct bridges *bridges);
void floods_limits(const struct bridges *bridges, unsigned port, uint32_t pps[MAC_STORMS]);
// What Linux floods for a bridge, and why; "": nothing.
void floods_describe(struct bridges *bridges, const struct served *served, char *out, size_t bytes);

// mdb.c. 0, or -ENOMEM, -EIO: it may only be closed.
int mdb_open(struct mdb *mdb);
void mdb_close(struct mdb *mdb);
uint64_t mdb_bytes(const struct mdb *mdb);
void mdb_event(struct bridges *bridges, const struct event *event);
void mdb_bridge_gone(struct bridges *bridges, int ifindex);
void mdb_dump_begins(struct mdb *mdb);
void mdb_dump_ends(struct bridges *bridges); // removes what it did not contain
// Reads which ports have routers, if it is time to.
void mdb_poll(struct bridges *bridges, uint64_t now_ns);

// queriers.c. NULL: there is no space for it. / Looks at what the bridge does. / Asks
// bridges again, if it is time to, and marks them stale if one does something else. Returns whether
// some bridge snoops.
struct querier *queriers_find(struct bridges *bridges, int ifindex);
void queriers_look(struct bridges *bridges, const struct interface *bridge, uint64_t now_ns);
bool queriers_poll(struct bridges *bridges, uint64_t now_ns);

// snooping.c. Why frames to groups of a bridge that snoops are Linux's; NULL: workers know what to
// do. / How the bridges of a set snoop, which is set in `list`, too; -ENOMEM: `out` may only be
// freed. / Gives workers what has changed; / whether it is time to; / it was done.
const char *snooping_refuse(struct bridges *bridges, const struct served *served);
int snooping_build(struct bridges *bridges, const struct served_set *set, struct snooping *out,
	struct mac_bridge list[]);
void snooping_free(struct snooping *snooping);
void snooping_publish(struct bridges *bridges);
bool snooping_is_due(struct bridges *bridges, uint64_t now_ns);
void snooping_done(struct bridges *bridges, uint64_t began_ns);

int fdb_open(struct fdb *fdb); // 0, or -ENOMEM, -EIO: it may only be closed
void fdb_close(struct fdb *fdb);
uint64_t fdb_bytes(const struct fdb *fdb); // memory of the addresses
void fdb_event(struct bridges *bridges, const struct event_fdb *at, bool is_delete);
// A VXLAN device in no bridge has a remote end, or has it no more.
void fdb_remote_seen(struct bridges *bridges, const struct event_remote *at, bool is_gone);
// Looks at an address of a bridge; with `is_shadow` it becomes one of the bridge if there is none,
// as a VXLAN device of it has the address: Linux sends there what the bridge floods.
void fdb_look_at(struct bridges *bridges, const struct event_fdb *at, bool is_shadow);
void fdb_sweep(struct fdb *fdb);                     // removes what the latest dump did not contain
void fdb_doubt(struct fdb *fdb);                     // workers may lack any of them
bool fdb_is_over(const struct fdb *fdb, int bridge); // whether Linux has more than are stored
// Tells workers of some of those that have changed, or that they may lack. Returns true if there
// are more.
bool fdb_flush(struct bridges *bridges);

// remotes.c. 0, or -ENOMEM: it may only be closed.
int remotes_create(struct remotes *remotes);
void remotes_destroy(struct remotes *remotes);
uint64_t remotes_bytes(const struct remotes *remotes);
void remotes_event(struct bridges *bridges, const struct event_remote *at, bool is_delete);
void remotes_dump_ends(struct bridges *bridges); // removes what it did not contain
void remotes_device_gone(struct bridges *bridges, int ifindex);
// The only remote end of a device without a table; NULL: the device is none, or has a table.
void remotes_set_only(struct bridges *bridges, int ifindex, const struct wire_addr *end);
// Gives workers what has changed of floods. `judged`: interfaces may have changed, too.
void remotes_flush(struct bridges *bridges, bool judged);
// Where a device sends frames to an address; NULL: to several, or nowhere. / Whether the device has
// learnt that itself, / has an
// entry for the address.
const struct event_remote *remotes_find(const struct bridges *bridges, int ifindex,
	const struct wire_mac *mac);
bool remotes_has_learnt(const struct bridges *bridges, int ifindex, const struct wire_mac *mac);
bool remotes_knows(const struct bridges *bridges, int ifindex, const struct wire_mac *mac);
// Why workers do not flood by a device; NULL: they do. / Whether it sends frames to some groups
// elsewhere.
const char *remotes_refuse(const struct bridges *bridges, int ifindex);
bool remotes_has_groups(const struct bridges *bridges, int ifindex);
// Has all addresses that devices have looked at in their bridges, which may be others. / Goes on
// with that, for about n of them. Returns whether there are more.
void remotes_doubt(struct remotes *remotes);
bool remotes_walk(struct bridges *bridges, unsigned n);
// remotes_bridged.c. The remote end of an address of a device has changed: looks at the address in
// each VLAN of the device's bridge. / Whether a device of a bridge that workers serve has an entry
// for an address of it. / Whether one drops frames of it, unless they are from that remote end.
void remotes_look_at(struct bridges *bridges, const struct event_remote *at, bool is_gone);
bool remotes_have(const struct bridges *bridges, const struct event_fdb *at);
bool remotes_pin(const struct bridges *bridges, const struct event_fdb *at);
// remotes_held.c. The tunnel of a VXLAN device as workers have it; NULL: they have none.
const struct iface_tunnel *remotes_tunnel(const struct bridges *bridges, int ifindex);
// Holds a remote end in the tables of workers. False: they cannot send there, and it is 0. /
// Whether they could. / Releases it; it must be gone from the tables.
bool remotes_hold(struct bridges *bridges, const struct event_remote *from,
	struct held_remote *out);
bool remotes_can_hold(const struct bridges *bridges, const struct event_remote *from);
void remotes_release(struct bridges *bridges, struct held_remote *held);

// bridges_tunnels.c. The VXLAN devices that workers serve, once the ports of bridges are chosen. /
// The interface of a member; NULL: there is none.
void bridges_choose_tunnels(struct bridges *bridges);
// All members of the bridges, side by side, which are set in `list`, too. NULL: there is not enough
// memory. Owner: caller, free.
struct mac_member *bridges_list_members(const struct served_set *set, struct mac_bridge list[]);
// Names why a VXLAN device in a bridge is not served. Returns false if `cb` stopped the iteration.
bool bridges_tell_tunnel(const struct ifaces *ifaces, const struct interface *one,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg);
const struct interface *bridges_member(const struct mirror *mirror, uint16_t member);
// Of a bridge of `now`: the member that is a VXLAN device; 0: it is not served there.
uint16_t bridges_tunnel_member(const struct bridges *bridges, const struct served *served,
	int ifindex);

// bridges.c, for those. The bridge in `next`, which is added; NULL: there are too many. / The
// bridge that has the interface; NULL: none. / Why workers do not serve a port of it; NULL: they
// do. / The flags of a port.
struct served *bridges_get(struct bridges *bridges, const struct interface *bridge);
const struct interface *bridges_of(const struct ifaces *ifaces, const struct interface *one);
const char *bridges_check(const struct ifaces *ifaces, const struct interface *one,
	const struct interface *bridge);
uint8_t bridges_flags(const struct event_bridge_port *port);
