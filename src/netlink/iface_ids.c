// Who has which link id. Control thread.
#include "netlink/iface_ids.h"

#include <string.h>

enum { ID_FREE, ID_USED, ID_RESTS };

void iface_ids_open(struct iface_ids *ids, unsigned n_ports)
{
	*ids = (struct iface_ids){.n_ports = n_ports, .next = n_ports};
	memset(ids->state, ID_USED, n_ports);
}

uint16_t iface_ids_take(struct iface_ids *ids, int ifindex)
{
	for (unsigned tries = ids->n_ports; tries < FIB_MAX_IFACES; tries++) {
		unsigned id = ids->next;

		ids->next = id + 1 < FIB_MAX_IFACES ? id + 1 : ids->n_ports;
		if (ids->state[id] != ID_FREE)
			continue;
		ids->state[id] = ID_USED;
		ids->ifindex[id] = ifindex;
		return (uint16_t)id;
	}
	ids->lacked = true;
	return FIB_NO_IFACE;
}

void iface_ids_give_up(struct iface_ids *ids, uint16_t id)
{
	ids->ifindex[id] = 0;
	if (id >= ids->n_ports)
		ids->state[id] = ID_RESTS;
}

bool iface_ids_settled(struct iface_ids *ids)
{
	bool were_lacked = false;

	for (unsigned id = ids->n_ports; id < FIB_MAX_IFACES; id++)
		if (ids->state[id] == ID_RESTS) {
			ids->state[id] = ID_FREE;
			were_lacked = ids->lacked;
		}
	ids->lacked &= !were_lacked;
	return were_lacked;
}
