// Link ids: a port has its index, VLANs get one from n_ports up. One that was given up rests until
// neighbours and routes no longer speak of it. Inside links. Control thread.
#pragma once

#include "fib/fib.h"

struct link_ids {
	unsigned n_ports, next; // next: where the search begins; the longest unused comes first
	bool lacked;            // somebody got none
	uint8_t state[FIB_MAX_LINKS];
	int ifindex[FIB_MAX_LINKS]; // 0: not in use
};

void link_ids_open(struct link_ids *ids, unsigned n_ports);
uint16_t link_ids_take(struct link_ids *ids, int ifindex); // FIB_NO_LINK: none is free
void link_ids_give_up(struct link_ids *ids, uint16_t id);
// Those that rest are free. True: somebody lacked one, and now there is.
bool link_ids_settled(struct link_ids *ids);
