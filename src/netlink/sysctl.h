// The settings of Linux's network in the TAP interfaces' namespace: set where it is our own, else
// compared with what workers do. Inside sync. Control thread; each call enters the namespace by
// itself.
#pragma once

#include "netlink/netlink.h"

// Settings for a router: in our own namespace only. What this kernel lacks is left alone.
void sysctl_prepare(struct tap_table *taps);
// Those of one TAP interface.
void sysctl_prepare_tap(struct tap_table *taps, const char *interface);
// Whether iptables of the old kind has tables: its rules are no nftables chains, and nobody tells
// of them.
bool sysctl_has_old_tables(struct tap_table *taps, uint8_t family);
// Each that workers do otherwise; stops when `tell` returns false.
void sysctl_unsupported(struct tap_table *taps,
	bool (*tell)(void *arg, const struct netlink_unsupported *one), void *arg);

// Whether Linux would send redirects for packets that leave by the interface that they came in by.
bool sysctl_sends_redirects(struct tap_table *taps, const char *interface, uint8_t family);
bool sysctl_disables_ipv6(struct tap_table *taps, const char *interface);
unsigned sysctl_mtu6(struct tap_table *taps, const char *interface); // 0: it has no IPv6
