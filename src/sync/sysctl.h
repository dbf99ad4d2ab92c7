// The settings of Linux's network in the twins' namespace: set where it is our own, else compared
// with what lanes do. Inside sync. Control thread; each call enters the namespace by itself.
#pragma once

#include "sync/sync.h"

// Settings for a router: in our own namespace only. What this kernel lacks is left alone.
void sysctl_prepare(struct tap_room *twins);
// Those of one twin.
void sysctl_prepare_twin(struct tap_room *twins, const char *interface);
// Whether iptables of the old kind has tables: its rules are no nftables chains, and nobody tells
// of them.
bool sysctl_has_old_tables(struct tap_room *twins, uint8_t family);
// Each that lanes do otherwise; stops when `tell` returns false.
void sysctl_unsupported(struct tap_room *twins,
	bool (*tell)(void *arg, const struct sync_unsupported *one), void *arg);

// Whether Linux would send redirects for packets that leave by the interface that they came in by.
bool sysctl_sends_redirects(struct tap_room *twins, const char *interface, uint8_t family);
bool sysctl_disables_ipv6(struct tap_room *twins, const char *interface);
unsigned sysctl_mtu6(struct tap_room *twins, const char *interface); // 0: it has no IPv6
