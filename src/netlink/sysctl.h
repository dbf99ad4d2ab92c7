// Network sysctls in the namespace of the TAP interfaces: set if the namespace is our own,
// otherwise only compared with what workers do. Internal to netlink. Control thread; each call
// enters the namespace itself.
#pragma once

#include "netlink/netlink.h"

// Applies router settings; only in our own namespace. Settings that this kernel lacks are skipped.
void sysctl_prepare(struct tap_table *taps);
// Settings of one TAP interface.
void sysctl_prepare_tap(struct tap_table *taps, const char *interface);
// Whether legacy iptables tables exist: their rules are not nftables chains, and there are no
// notifications for them.
bool sysctl_has_old_tables(struct tap_table *taps, uint8_t family);
// Lists the settings that workers do not follow; stops when `cb` returns false.
void sysctl_unsupported(struct tap_table *taps,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg);

// Whether Linux would send redirects for packets forwarded out of their input interface.
bool sysctl_sends_redirects(struct tap_table *taps, const char *interface, uint8_t family);
bool sysctl_disables_ipv6(struct tap_table *taps, const char *interface);
unsigned sysctl_mtu6(struct tap_table *taps, const char *interface); // 0: IPv6 is not available
