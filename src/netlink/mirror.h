// Policy: what Linux says becomes what workers do. Holds Linux's state as it was told (links,
// addresses, neighbours, next hops, routes of all metrics) and brings the fib in line with it.
// Knows no socket: events come in, wishes go out. Control thread.
#pragma once

#include "base/error.h"
#include "fib/fib.h"
#include "netlink/event.h"
#include "netlink/netlink.h"

#include <stdbool.h>

// What the mirror wants done outside; handed in, so that tests can look at it.
struct mirror_ops {
	int (*port_set_admin)(void *ops, unsigned port, bool up);
	int (*port_set_mtu)(void *ops, unsigned port, uint16_t mtu);
	int (*port_set_mac)(void *ops, unsigned port, const struct wire_mac *mac);
	int (*port_set_promiscuous)(void *ops, unsigned port, bool promiscuous);
	bool (*sends_redirects)(void *ops, const char *interface, uint8_t family);
	bool (*disables_ipv6)(void *ops, const char *interface); // sysctl; NULL: no
	unsigned (*mtu6)(void *ops, const char *interface);      // sysctl; 0, NULL: as the link's
	uint8_t (*tcx)(void *ops, int ifindex);                  // enum event_side; NULL: 0
	bool (*has_old_tables)(void *ops, uint8_t family);       // of iptables; NULL: no
	void (*dump_again)(void *ops);                           // "what I know cannot be trusted"
	void *ops;
};

// A port as it was set last: the TAP interface's state is handed on only when it differs.
struct mirror_port {
	struct wire_mac mac;
	uint16_t mtu; // 0: not known
	bool up, promiscuous;
};

struct mirror;
struct mirror_settings {
	struct fib *fib;
	unsigned n_ports;
	int tap[PORT_MAX]; // interface index of each port's TAP interface, 0: it has none now
	struct mirror_port port[PORT_MAX];
	struct mirror_ops ops;
};
int mirror_open(struct mirror **out, const struct mirror_settings *settings, struct error *error);
void mirror_close(struct mirror *mirror);

// A TAP interface was deleted (0) or made anew.
void mirror_tap_changed(struct mirror *mirror, unsigned port, int ifindex);
// One thing that Linux said.
void mirror_event(struct mirror *mirror, const struct event *event);
// Mark and sweep around a dump; forwarding goes on meanwhile. Of the kinds that it told in part
// (event_kinds_have) nothing is swept.
void mirror_dump_begins(struct mirror *mirror);
void mirror_dump_lacks(struct mirror *mirror, enum event_kind kind); // in the middle of it
void mirror_dump_ends(struct mirror *mirror, uint32_t partial);
// Brings what was heard since the last call into the fib: one batch. Call after each round of
// events. True: there is more to do.
bool mirror_flush(struct mirror *mirror);

// Looks again at what nobody tells of: some sysctls, a few interfaces at a time; routes whose
// lifetime is over. Call it about ten times a second.
void mirror_poll(struct mirror *mirror);
// What workers cannot express, one by one; stops when `tell` returns false.
void mirror_unsupported(const struct mirror *mirror,
	bool (*tell)(void *arg, const struct netlink_unsupported *one), void *arg);
// Fills the fields that the mirror knows: links, neighbours, routes, memory.
void mirror_info(const struct mirror *mirror, struct netlink_info *out);

// What the parts of the mirror share; private to its files.
struct ifaces;
struct neighbours;
struct routes;
struct mirror {
	struct mirror_settings settings;
	struct ifaces *ifaces; // interfaces, VRFs, addresses, settings, rules, foreign things
	struct neighbours *neighbours; // and those that the kernel keeps alive for us
	struct routes *routes;         // and next hops
};
