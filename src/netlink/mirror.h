// Derives the forwarding state of the workers from kernel state. Stores the kernel's
// interfaces, addresses, neighbours, next hops and routes of all metrics, and keeps the fib
// consistent with them. Uses no sockets: events come in, changes go out through mirror_ops. Control
// thread.
#pragma once

#include "base/error.h"
#include "fib/fib.h"
#include "mac/mac.h"
#include "netlink/event.h"
#include "netlink/guard.h"
#include "netlink/netlink.h"
#include "netlink/tunnel_facts.h"

#include <stdbool.h>

// What acts on frames that Linux bridges without a notification: FILTERS_CALLS: br_netfilter has
// packets pass hooks of IP. FILTERS_TABLES: legacy ebtables or arptables.
enum mirror_filters { FILTERS_CALLS = 1, FILTERS_TABLES = 2 };

// A host behind a port of a bridge of Linux.
struct mirror_seen {
	int ifindex; // of the TAP interface, or the VXLAN device
	struct wire_mac mac;
	uint16_t vlan;        // 0: the bridge does not filter by VLAN
	bool is_alone;        // the VXLAN device is in no bridge
	bool is_new;          // `end` is another one than the device has, or the first
	struct wire_addr end; // where it is, for the device's own table; family 0: that is not told
};

// net.mpls: the number of labels that there may be; whether packets get the TTL of their labels and
// the reverse, else the TTL of labels.
struct mirror_mpls {
	uint32_t n_labels;
	bool propagates_ttl;
	uint8_t default_ttl;
};

// Actions outside the mirror; passed in, so that tests can record them.
struct mirror_ops {
	int (*port_set_admin)(void *ops, unsigned port, bool up);
	int (*port_set_mtu)(void *ops, unsigned port, uint16_t mtu, struct error *error);
	// Sets the MTU of the port's TAP interface from a refused one back to `mtu`.
	int (*tap_restore_mtu)(void *ops, unsigned port, uint32_t refused, uint16_t mtu);
	int (*port_set_mac)(void *ops, unsigned port, const struct wire_mac *mac);
	int (*port_set_promiscuous)(void *ops, unsigned port, bool promiscuous);
	void (*port_set_bridged)(void *ops, unsigned port, bool is_bridged);
	uint8_t (*bridge_filters)(void *ops); // enum mirror_filters; NULL: 0
	bool (*sends_redirects)(void *ops, const char *interface, uint8_t family);
	bool (*disables_ipv6)(void *ops, const char *interface); // sysctl; NULL: never
	unsigned (*mtu6)(void *ops, const char *interface);      // sysctl; 0, NULL: same as the
	                                                         // interface's
	uint8_t (*tcx)(void *ops, int ifindex);                  // enum event_side; NULL: 0
	bool (*hides_lost_routes)(void *ops); // sysctl skip_notify_on_dev_down; NULL: no
	bool (*has_old_tables)(void *ops, uint8_t family); // legacy iptables; NULL: none
	int (*hash_policy)(void *ops, uint8_t family);     // sysctl; -errno: unknown; NULL: 1
	void (*dump_again)(void *ops);                     // the mirror's state may be
	                                                   // inconsistent
	// There was no memory to store an object of this kind, which is now missing: the state is
	// incomplete until a dump without such a loss.
	void (*lost)(void *ops, enum event_kind kind);
	// Dumps the tc filters of a side (enum event_side) of an interface, and then calls
	// mirror_filters_dumped. False: not now. NULL: never.
	bool (*dump_filters)(void *ops, int ifindex, uint8_t side);
	// Has Linux tell of the classes of htb of an interface, and of the filters that choose
	// them, at once. 0 or -errno. NULL: it does not.
	int (*dump_classes)(void *ops, int ifindex,
		void (*take)(void *arg, const struct event *event), void *arg);
	// Tells Linux that these hosts were seen. NULL: never.
	void (*macs_seen)(void *ops, const struct mirror_seen seen[], unsigned n);
	// The sysctls of MPLS. False: this kernel has none. NULL: the same.
	bool (*mpls)(void *ops, struct mirror_mpls *out);
	// Has Linux flood nothing between these ports, as guard_set. NULL: it floods. / The
	// statement that would do that, as guard_statement. NULL: none.
	bool (*guard)(void *ops, const struct guard_port port[], unsigned n);
	void (*guard_statement)(void *ops, char *out, size_t bytes);
	bool (*is_judged)(void *ops, unsigned port); // by an access list; NULL: none is
	// Limits of storm control for frames from the port, in frames/s, 0: none. NULL: none.
	void (*storm)(void *ops, unsigned port, uint32_t pps[MAC_STORMS]);
	bool (*guard_follows)(void *ops); // whatever it is asked to; NULL: no
	// Have Linux tell of an interface, / of the groups of all bridges, at once. 0 or -errno.
	// NULL: it does not.
	int (*ask_link)(void *ops, int ifindex, void (*take)(void *arg, const struct event *event),
		void *arg);
	int (*dump_groups)(void *ops, void (*take)(void *arg, const struct event *event),
		void *arg);
	// As tunnel_facts_ports, / as tunnel_facts_mtu. NULL: there are none, / 0.
	int (*udp_ports)(void *ops, struct mirror_udp_port out[], unsigned most);
	uint32_t (*path_mtu)(void *ops, const struct wire_addr *addr, int ifindex);
	void *ops;
};

// Settings of a port as last applied. Changes of the TAP interface are applied to the port only if
// they differ from these.
struct mirror_port {
	struct wire_mac mac;
	uint16_t mtu; // 0: unknown
	bool up, promiscuous;
};

struct mirror;
struct mirror_settings {
	struct fib *fib;
	struct mac_table *macs; // NULL: workers forward for no bridge
	unsigned n_ports;
	bool is_removed[PORT_MAX]; // there is no such port any more
	int tap[PORT_MAX];         // ifindex of each port's TAP interface; 0: none at present
	struct mirror_port port[PORT_MAX];
	struct mirror_ops ops;
	bool (*is_vrf_used)(void *arg, uint16_t vrf);                     // as in netlink_ctx
	const char *(*iface_kept)(void *arg, uint16_t iface);             // same
	void (*iface_named)(void *arg, uint16_t iface, const char *name); // same
	int (*filters)(void *arg, const struct acl_set *change, struct error *error);        // same
	int (*shape)(void *arg, const char *name, const char *profile, struct error *error); // same
	void (*shape_iface)(void *arg, uint16_t iface, const char *name);                    // same
	void *arg;
};
int mirror_open(struct mirror **out, const struct mirror_settings *settings, struct error *error);
void mirror_close(struct mirror *mirror);

// A port was added with a TAP interface, / was removed.
void mirror_port_added(struct mirror *mirror, unsigned port, int ifindex,
	const struct mirror_port *added);
void mirror_port_removed(struct mirror *mirror, unsigned port);
// A TAP interface was deleted (0) or recreated.
void mirror_tap_changed(struct mirror *mirror, unsigned port, int ifindex);
// Handles one kernel event.
void mirror_event(struct mirror *mirror, const struct event *event);
// Mark and sweep around a dump: entries that the dump does not return are removed at its end,
// except those of kinds that were dumped only partially (event_kinds_have). Forwarding continues
// meanwhile.
void mirror_dump_begins(struct mirror *mirror);
void mirror_dump_lacks(struct mirror *mirror, enum event_kind kind); // during a dump
void mirror_dump_ends(struct mirror *mirror, uint32_t partial);
// Applies one batch of the pending changes to the fib. Call after processing events. Returns true
// if changes are still pending. Sets the fib synced (fib_set_synced) once it has all routes of a
// dump that contained all of them.
bool mirror_flush(struct mirror *mirror);

// Gives workers the lists of tc filters, and queues, that have changed, unless they may soon change
// again. Call
// when no event is pending. / Has the filters of an interface dumped if that is necessary. Returns
// true if it was begun. / The dump has ended, `whole` or not.
void mirror_apply_filters(struct mirror *mirror, uint64_t now_ns);
bool mirror_dump_filters(struct mirror *mirror);
void mirror_filters_dumped(struct mirror *mirror, bool whole);

// Workers have flooded a frame from a host that Linux does not have there: tells Linux, which
// learns.
void mirror_learn(struct mirror *mirror, const struct mac_info *info);

// Tells Linux that hosts behind ports of its bridges, whose frames workers forward, are still
// there. Call about ten times a second, while no dump is under way.
void mirror_refresh_macs(struct mirror *mirror, uint64_t now_ns);

// Re-reads state for which there are no notifications: some sysctls, a few interfaces at a time,
// and expired routes. Call about ten times a second.
void mirror_poll(struct mirror *mirror);
// Lists the kernel objects that workers do not support; stops when `cb` returns false.
void mirror_unsupported(const struct mirror *mirror,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg);
// Fills in the mirror's fields of *out: interfaces, neighbours, routes, memory.
void mirror_info(const struct mirror *mirror, struct netlink_info *out);
