// Shared by the files of ifaces: interfaces, their addresses, VRFs, foreign objects, fib ids and
// verdicts. Control thread.
#pragma once

#include "base/hash_table.h"
#include "fib/fib.h"
#include "netlink/mirror_inside.h"

#include <string.h>

struct ifaces;

// All interfaces of the namespace by index, each with its kernel state and the result of its
// verdict.

// Settings of one interface, or of "all", for one family.
struct interface_conf {
	bool is_known;
	uint32_t seen; // the last dump that contained it
	int forwarding, rp_filter, ignore_linkdown, proxy_neigh, mc_forwarding;
};

// Sysctls for which there are no netlink notifications.
enum interface_sysctl {
	SYSCTL_IPV6 = 1, // not disabled
	SYSCTL_REDIRECTS = IFACE_REDIRECTS4 | IFACE_REDIRECTS6,
};

// Upper devices of an interface, recomputed before each verdict.
struct interface_above {
	uint32_t reasons; // enum iface_reason, one bit each
	bool has_vlans;
	unsigned n_macs; // of macvlans that are up; may exceed IFACE_MACS
	struct wire_mac macs[IFACE_MACS];
};

// A tc filter of an interface and a side.
struct filter {
	uint32_t seen;       // the last dump of that side that contained it
	const char *trouble; // why it is not understood among its neighbours; NULL: it is
	struct event_filter what;
};

// The tc filters of one side of an interface. Workers judge by them if all are understood; if not,
// and until workers have them, Linux gets the frames of that side.
struct filter_side {
	struct filter **filter; // by priority, then handle
	uint32_t n;
	size_t capacity;
	uint32_t dump;      // counts dumps of this side
	uint32_t version;   // counts changes
	uint32_t judged;    // the version of n_strange, n_rules and sees_tags
	uint32_t applied;   // the version of the list that workers have
	uint32_t refused;   // a version of which workers could not get a list; 0: none
	uint64_t retry_ns;  // clock_now_ns; 0: its last dump did not fail
	uint32_t n_strange; // filters that are not understood
	uint32_t n_rules;
	bool sees_tags;             // a filter may match frames with a VLAN tag
	bool is_active;             // there is a qdisc for it
	bool is_whole;              // a dump has returned all, and nothing is in doubt since
	bool wants_dump;            // as soon as possible, but not before retry_ns
	bool has_list;              // workers have a list of it
	char named[EVENT_NAME_MAX]; // the interface's name in that list
};

enum { QUEUES_PROFILE = 256, QUEUES_REFUSAL = 160 };

// The VLANs of a port of a bridge, or of a bridge.
struct port_vlans {
	uint64_t told[EVENT_VIDS / 64]; // those told of since dump `dump` began
	uint32_t dump;
	uint32_t version; // no other version of any port has the same number
	unsigned n, n_odd;
	struct event_vlans has; // as Linux has them
	struct mac_vlans workers;
};

// How Linux shapes what an interface sends: tbf, or htb with one class, and the queue below it.
// Other qdiscs are here only so that they can be named.
struct queues {
	struct event_queue root, class, leaf; // what: QUEUE_NONE: there is none
	uint32_t root_seen, leaf_seen;        // the last dumps that contained them
	bool has_more;                        // classes or qdiscs that workers do not follow
	bool has_filters;                     // that choose a class
	bool is_cut;                          // Linux drops all: the queue below it was removed
	bool wants_dump;                      // classes and filters are to be dumped
	// What workers have: a subscriber for it, until it is taken back.
	bool is_given;
	uint32_t serial;                                 // no other one has the same
	char named[EVENT_NAME_MAX], old[EVENT_NAME_MAX]; // old: to be taken back; "": nothing is
	char profile[QUEUES_PROFILE];                    // of subscribers, as workers have it
	char wanted[QUEUES_PROFILE];                     // as they should; valid if not is_stale
	bool is_stale;
	char refused[QUEUES_PROFILE]; // one that could not be given, "": none
	bool may_be_tried;            // again, after a while
	char refusal[QUEUES_REFUSAL];
};

struct interface {
	struct hash_node node; // first: see hash_table.h
	int ifindex;
	uint32_t seen; // the last dump that contained it
	bool is_known; // the interface itself was reported, not only its settings
	struct event_link iface;
	struct port_vlans *vlans;      // NULL: there never were any
	struct interface_conf conf[2]; // IPv4, IPv6
	struct interface_above above;
	uint32_t n_addresses, n_addresses4; // of both families, of IPv4
	uint16_t id;                        // fib interface id; IFACE_NONE: none
	uint8_t tc;         // enum event_side: tc is active there, which workers leave to Linux
	uint8_t tc_above;   // same, for VLANs on it
	uint8_t sysctls;    // enum interface_sysctl, as last read
	uint8_t tcx;        // enum event_side; read together with them
	uint8_t holders;    // enum event_side: qdiscs that are there for filters
	bool takes_labels;  // frames with MPLS labels (net.mpls.conf.IF.input)
	bool sysctls_read;  // and need not be read again before the next flush
	bool sysctls_known; // they have been read at least once
	unsigned mtu6;      // read with them; 0: unknown
	uint32_t reasons;   // of the current verdict
	uint8_t trouble;    // enum tunnel_trouble, as judged
	uint16_t vxlan;     // of a VXLAN device: its number + 1; 0: it has none
	uint16_t path_mtu;  // of a tunnel's outer packets, read with the sysctls; 0: unknown
	uint16_t mtu;       // of its fib interface; routes depend on it and on the VRF
	uint16_t vrf;
	bool carries_labels;                     // it is a tunnel of MPLS; routes depend on that
	struct ifaces_state reported;            // what routes were last notified of
	struct filter_side side[ACL_DIRECTIONS]; // of tc
	struct queues *queues;                   // its own; NULL: Linux's usual ones
	uint16_t queue_id;     // the fib interface id with which workers have its queue, or one's
	                       // below it; IFACE_NONE: none
	uint32_t queue_serial; // that queue
};

struct interfaces {
	struct hash_table by_index;
};

int interfaces_open(struct interfaces *all);
void interfaces_close(struct interfaces *all);
struct interface *interfaces_find(const struct interfaces *all, int ifindex); // NULL: none
// Created empty if it does not exist. NULL: out of memory.
struct interface *interfaces_get(struct interfaces *all, int ifindex);
void interfaces_remove(struct interfaces *all, int ifindex);
// Iterates in no particular order; nothing may be added or removed during the iteration. Pass NULL
// to start; returns NULL at the end.
struct interface *interfaces_next(const struct interfaces *all, const struct interface *after);

// Addresses of all interfaces. Local routes define which addresses belong to the host; this table
// shows which source addresses have been removed, and with them the routes that the kernel drops
// without a notification.
struct addresses {
	struct hash_table by_local; // hashed by local address
};

int addresses_open(struct addresses *all);
void addresses_close(struct addresses *all);
void addresses_event(struct ifaces *ifaces, const struct event *event);
void addresses_iface_gone(struct ifaces *ifaces, int ifindex);
// Writes at most `max` addresses of an interface, with their prefix lengths; returns how many.
unsigned addresses_of(const struct addresses *all, int ifindex, struct wire_prefix out[],
	unsigned max);
// Whether any interface has this address.
bool addresses_have(const struct addresses *all, const struct wire_addr *local);
void addresses_sweep(struct ifaces *ifaces); // removes what the latest dump did not contain

// Kernel objects that act on packets but are not supported by workers: rules, nftables, iptables,
// xfrm, tc, multicast routes. Only their location matters: interfaces they apply to leave their
// packets to Linux, and all interfaces do if the kernel cannot report whether any exist.
struct foreign_thing {
	uint8_t kind;              // enum event_kind
	uint32_t seen;             // the last dump that contained it
	uint32_t n;                // number of rules that we cannot tell apart
	uint32_t name;             // hash of the name
	struct event_foreign what; // for a rule, only the family
	struct event_rule rule;
};

struct foreign {
	struct foreign_thing *thing;
	uint32_t n;
	size_t capacity;
	uint32_t reported, lacking; // kinds dumped completely so far; kinds never dumped completely
	uint8_t old_tables;         // IFACE_LINUX4, 6: families with legacy iptables rules
	uint8_t bridge_filters;     // enum mirror_filters
	uint8_t iface_flags;        // IFACE_LINUX4, 6: set on all interfaces because of these
	                            // objects
	uint8_t vrf_flags;          // set on interfaces in VRFs, because the l3mdev rule is missing
};

void foreign_close(struct foreign *foreign);
void foreign_event(struct ifaces *ifaces, const struct event *event);
void foreign_iface_gone(struct ifaces *ifaces, int ifindex);
// A dump could not return this kind completely. If no dump ever has, assume that objects exist.
void foreign_lacks(struct ifaces *ifaces, enum event_kind kind);
// Re-reads state for which there are no notifications.
void foreign_poll(struct ifaces *ifaces);
// Removes what the latest dump did not contain, except kinds that were dumped partially.
void foreign_sweep(struct ifaces *ifaces, uint32_t partial);
// Recomputes iface_flags, vrf_flags and the tc state of each interface.
void foreign_check(struct ifaces *ifaces);
// IFACE_LINUX4, 6: the flags that this object sets on all interfaces.
uint8_t foreign_flags(const struct foreign_thing *thing);
// Whether there is a hook that frames pass which Linux bridges, or, with `calls`, packets in them.
bool foreign_hooks_bridges(const struct foreign *foreign, bool calls);
// Which of the default rules are present.
enum usual_rule { RULE_LOCAL = 1, RULE_MAIN = 2, RULE_L3MDEV = 4 };
unsigned foreign_usual_rules(const struct foreign *foreign, uint8_t family);
// Whether there are other rules than these, or one of these is missing.
bool foreign_has_own_rules(const struct foreign *foreign, uint8_t family, bool in_vrf);
// Lists the objects. Returns false if `cb` stopped the iteration.
bool foreign_unsupported(const struct ifaces *ifaces,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg);

// tc filters: filters.c has them, filter_lists.c makes lists of them.

enum { FILTERS_MOST_RULES = 4096 }; // of one side; building more would take too long

// Lists of interfaces that are gone, or have another name.
struct filter_grave {
	char named[EVENT_NAME_MAX];
	uint8_t direction; // enum acl_direction
};

struct filters {
	struct filter_grave *grave;
	size_t n_graves, grave_capacity;
	int dumped;         // the interface whose filters are being dumped; 0: none
	int last;           // the interface whose filters were dumped last
	uint8_t dumped_way; // of `dumped`: enum acl_direction
	bool wants_dump;    // some side does
	bool is_changed;    // since filters_apply
	uint64_t changed_ns, applied_ns;
	struct error error; // why a list could not be built last
};

// The enum event_side of an enum acl_direction.
static inline uint8_t filters_side(unsigned way)
{
	return way == ACL_IN ? EVENT_INGRESS : EVENT_EGRESS;
}

void filters_close(struct ifaces *ifaces);
// EVENT_FILTER, EVENT_ACTION. / A qdisc that is there for filters.
void filters_event(struct ifaces *ifaces, const struct event *event);
void filters_qdisc(struct ifaces *ifaces, const struct event *event);
// An interface goes with its filters. / Its lists go with its old name.
void filters_iface_gone(struct ifaces *ifaces, struct interface *one);
void filters_iface_renamed(struct ifaces *ifaces, struct interface *one);
// Which sides have a qdisc for filters.
void filters_follow(struct ifaces *ifaces, struct interface *one);
// All filters may be others: their dumps are repeated.
void filters_doubt(struct ifaces *ifaces);
// enum event_side: those whose frames are left to Linux, on the interface / on VLANs on it.
uint8_t filters_left(struct interface *one);
uint8_t filters_left_above(const struct interface *one);
// Takes the lists of names that are gone away from workers; call it before another interface can
// have their names, and when interfaces that were renamed are left to Linux.
void filters_bury(struct ifaces *ifaces);
// Names what is not understood on a side. *told: something was named. Returns false if `cb` stopped
// the iteration.
bool filters_tell(const struct ifaces *ifaces, const struct interface *one, uint8_t side,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg, bool *told);

// The queues of interfaces: queues.c, queues_apply.c.
struct queues_of_linux {
	unsigned n;      // interfaces that have one
	uint32_t serial; // the last one
	bool is_changed; // since queues_apply
	uint64_t changed_ns, applied_ns, tried_ns;
	unsigned n_given;             // changes of the latest queues_apply
	bool wants_dump;              // some interface does
	char (*gone)[EVENT_NAME_MAX]; // names of interfaces that are gone, with their queues
	size_t n_gone, gone_capacity;
};

void queues_close(struct ifaces *ifaces);
// EVENT_QDISC, EVENT_CLASS.
void queues_event(struct ifaces *ifaces, const struct event *event);
// Removes what the latest dump did not contain.
void queues_sweep(struct ifaces *ifaces);
void queues_iface_gone(struct ifaces *ifaces, struct interface *one);
void queues_note(struct ifaces *ifaces);
// An interface has other settings / another id, or no more.
void queues_iface_changed(struct ifaces *ifaces, struct interface *one);
void queues_id_changed(struct ifaces *ifaces, struct interface *one);
// Adds to tc of all interfaces: what leaves by them is left to Linux because of a queue. After
// tunnels_check.
void queues_check(struct ifaces *ifaces);
// Names why, unless workers are about to get it. *told: something was named. Returns false if `cb`
// stopped the iteration.
bool queues_tell(const struct ifaces *ifaces, const struct interface *one,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg, bool *told);

// VRF devices: their tables get an id in the fib, 1 to 4095.
struct vrfs {
	uint32_t table[FIB_MAX_VRFS];            // by id; 0: free
	char name[FIB_MAX_VRFS][EVENT_NAME_MAX]; // of the device, also after it was removed
	int device[FIB_MAX_VRFS];       // a VRF device with this table, when it was last seen
	bool rests[FIB_MAX_VRFS];       // released; its fib table stays open until routes have been
	                                // removed from it
	bool wanted[FIB_MAX_VRFS];      // scratch: set while scanning VRF devices
	uint16_t of_hash[FIB_MAX_VRFS]; // by the last bits of the table: first id, 0: none
	uint16_t chain[FIB_MAX_VRFS];   // next id with the same bits
	unsigned end;                   // ids from here on were never used
	uint32_t refused;               // a table for which the fib had no space
};

// Opens tables of new VRF devices, closes those of removed devices and notifies routes.
void vrfs_follow(struct ifaces *ifaces);
void vrfs_settled(struct ifaces *ifaces);
// The VRF of the interface's master: 0 without one, IFACES_NO_VRF if workers have no such table.
uint16_t vrfs_of_interface(const struct ifaces *ifaces, const struct interface *one);
// The VRF device among its masters; NULL: none.
const struct interface *vrfs_master(const struct ifaces *ifaces, const struct interface *one);

// Fib interface ids: a port's id is its index; VLANs, bridges and tunnels get ids from n_ports
// (PORT_MAX) up. A released id is quarantined until no neighbour or route refers to it.
struct iface_ids {
	unsigned n_ports, next; // next: where the search starts; the least recently used id is
	                        // taken first
	unsigned end;           // ids from here on were never used
	unsigned n_kept;        // released ones that wait for an interface of the same name
	bool lacked;            // an allocation failed
	uint8_t state[IFACE_MAX];
	int ifindex[IFACE_MAX]; // 0: free
};

void iface_ids_open(struct iface_ids *ids, unsigned n_ports);
uint16_t iface_ids_take(struct iface_ids *ids, int ifindex); // IFACE_NONE: none free
// Whether it is kept: then the interface for which it is may take it; IFACE_NONE: not yet.
bool iface_ids_keeps(const struct iface_ids *ids, uint16_t id);
uint16_t iface_ids_take_kept(struct iface_ids *ids, uint16_t id, int ifindex);
void iface_ids_give_up(struct iface_ids *ids, uint16_t id, bool is_kept);
// Frees the quarantined ids. Returns true if an allocation had failed and an id is now available.
bool iface_ids_settled(struct iface_ids *ids);

// Tunnel devices: tunnels.c.
enum { TUNNELS_PORTS = 64 };
struct tunnels_of_linux {
	unsigned n_devices, n_served; // tunnel devices; those that workers serve
	struct mirror_udp_port port[TUNNELS_PORTS];
	unsigned n_ports;
	unsigned n_vxlans;              // devices of frames (VXLAN, gretap), not in n_served
	unsigned n_of_frames;           // of these, those that workers serve
	int vxlan[IFACE_MAX_VXLANS];    // by number: the device; 0: free
	unsigned end_vxlan, next_vxlan; // numbers from here on were never used; the next one
};

// A VXLAN device, whether workers serve it or not. / Gives numbers to those that they do.
static inline bool tunnels_carry_frames(const struct interface *one)
{
	return !strcmp(one->iface.kind, "vxlan") || !strcmp(one->iface.kind, "gretap") ||
	       !strcmp(one->iface.kind, "ip6gretap");
}
void vxlans_check(struct ifaces *ifaces);

// Call before a round of verdicts: judges all of them.
void tunnels_check(struct ifaces *ifaces);
// Whether workers serve it; the settings of its tunnel.
bool tunnels_decide(const struct ifaces *ifaces, const struct interface *one,
	struct iface_tunnel *out);
// Re-reads the UDP ports, / the MTU of a path.
void tunnels_poll(struct ifaces *ifaces);
uint16_t tunnels_path_mtu(const struct ifaces *ifaces, const struct interface *one);
// Names why workers do not serve a device, / do not receive on UDP ports. Return false if `cb`
// stopped the iteration.
bool tunnels_tell(const struct interface *one,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg);
bool tunnels_tell_ports(const struct ifaces *ifaces,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg);

// Applies the administrative state, MTU, MAC address and promiscuity requirements of a TAP
// interface to its port.
struct taps {
	struct mirror_port has[PORT_MAX];   // actual settings of the port
	struct mirror_port asked[PORT_MAX]; // last requested settings, including refused ones
};

void taps_open(struct ifaces *ifaces);
void taps_follow(struct ifaces *ifaces);
// Call after judging interfaces: a port is promiscuous if one of its interfaces needs frames to
// other MAC addresses.
void taps_follow_filters(struct ifaces *ifaces);
// NULL: the port currently has no TAP interface.
struct interface *taps_find(const struct ifaces *ifaces, unsigned port);
int taps_port(const struct ifaces *ifaces, int ifindex); // -1: not a TAP interface

struct ifaces {
	struct mirror *mirror;
	struct interfaces all;
	struct interface_conf conf_all[2]; // settings of "all": IPv4, IPv6
	struct addresses addresses;
	struct foreign foreign;
	struct filters filters;
	struct queues_of_linux queues;
	struct vrfs vrfs;
	struct iface_ids ids;
	struct taps taps;
	struct tunnels_of_linux tunnels;
	uint32_t dump;   // dump counter: entries not seen in the latest dump are swept
	uint32_t judged; // counts the rounds in which interfaces were judged
	uint32_t n_vlan_changes;
	uint16_t polled; // the fib interface whose sysctls were read last
	bool is_dirty;   // an input of the verdict has changed
};

// port_vlans.c: EVENT_VLANS. / Removes what the latest dump did not contain.
void port_vlans_event(struct ifaces *ifaces, const struct event *event);
void port_vlans_sweep(struct ifaces *ifaces);

// There was no memory for an object of this kind: another dump will cure that.
void ifaces_lost(const struct ifaces *ifaces, enum event_kind kind);
// Notifies routes if the state they use has changed. Returns false if it has not.
bool ifaces_tell(struct ifaces *ifaces, struct interface *one);
// Drops all state of an interface.
void ifaces_forget(struct ifaces *ifaces, struct interface *one);

// Judges how workers have to treat an interface: a pure function of kernel state.

// Why workers cannot fully handle an interface; one bit each.
enum iface_reason {
	REASON_MASTER,
	REASON_UPPER,
	REASON_MANY_MACS,
	REASON_ELSEWHERE, // a macvlan in another VRF
	REASON_XDP,
	REASON_INGRESS,
	REASON_EGRESS,
	REASON_PRIORITIES, // priorities in VLAN tags, by DSCP: workers send priority 0 only
	REASON_NO_TABLE,   // its VRF has no table in the fib
	REASON_VRF_DOWN,
	REASON_FORWARDING4,
	REASON_FORWARDING6,
	REASON_RP_FILTER,
	REASON_NO_IPV6,
	REASON_PROXY_NDP,
	REASON_MTU,
	REASON_NO_ID,
	REASON_TAGS,        // more VLAN tags than workers support
	REASON_BRIDGE_TAGS, // on a bridge: more than one, or another than it filters by
	N_IFACE_REASONS
};

struct iface_reason_row {
	uint8_t flags; // the resulting enum iface_flag bits
	const char *what, *effect;
};
extern const struct iface_reason_row iface_reason[N_IFACE_REASONS];

struct iface_verdict {
	// a port's TAP interface, a bridge with one, a VLAN on one of both, or a tunnel
	bool is_ours;
	struct iface iface;
	uint32_t reasons;
};
void decide(const struct ifaces *ifaces, const struct interface *one, struct iface_verdict *out);

// Names why workers do not serve a port of a bridge. *told: it is one, so that no other reason need
// be given for its master. Returns false if `cb` stopped the iteration.
bool bridges_tell(const struct ifaces *ifaces, const struct interface *one,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg, bool *told);
// Tells how the guard is installed, if it is missing. Returns false likewise.
bool floods_tell(const struct ifaces *ifaces,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg);

// Call before a round of verdicts: collects the upper devices of each interface.
void check_above(struct ifaces *ifaces);

// Whether workers may send by this interface, given these reasons.
bool check_lets_out(uint32_t reasons);

// Publishes judged interfaces to the fib.

// Takes the fib interface id away from the interface, and from VLANs on it if it is a bridge, and
// deletes these from the fib. The ids are quarantined until ifaces_settled.
void assign_take_back(struct ifaces *ifaces, struct interface *one);
