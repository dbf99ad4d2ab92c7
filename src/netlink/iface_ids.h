// Link ids: a port has its index, VLANs get one from n_ports up. One that was given up rests until
// neighbours and routes no longer speak of it. Inside links. Control thread.
#pragma once

#include "fib/fib.h"

struct iface_ids {
	unsigned n_ports, next; // next: where the search begins; the longest unused comes first
	bool lacked;            // somebody got none
	uint8_t state[FIB_MAX_IFACES];
	int ifindex[FIB_MAX_IFACES]; // 0: not in use
};

void iface_ids_open(struct iface_ids *ids, unsigned n_ports);
uint16_t iface_ids_take(struct iface_ids *ids, int ifindex); // FIB_NO_IFACE: none is free
void iface_ids_give_up(struct iface_ids *ids, uint16_t id);
// Those that rest are free. True: somebody lacked one, and now there is.
bool iface_ids_settled(struct iface_ids *ids);
