// Fib interface ids: a port's id is its index; VLANs get ids from n_ports up. A released id is
// quarantined until no neighbour or route refers to it. Internal to ifaces. Control thread.
#pragma once

#include "fib/fib.h"

struct iface_ids {
	unsigned n_ports, next; // next: where the search starts; the least recently used id is
	                        // taken first
	bool lacked;            // an allocation failed
	uint8_t state[FIB_MAX_IFACES];
	int ifindex[FIB_MAX_IFACES]; // 0: free
};

void iface_ids_open(struct iface_ids *ids, unsigned n_ports);
uint16_t iface_ids_take(struct iface_ids *ids, int ifindex); // FIB_NO_IFACE: none free
void iface_ids_give_up(struct iface_ids *ids, uint16_t id);
// Frees the quarantined ids. Returns true if an allocation had failed and an id is now available.
bool iface_ids_settled(struct iface_ids *ids);
