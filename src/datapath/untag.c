// Removes the VLAN tags that packets arrived with, after rewrite has written the MAC addresses
// where they are without tags. Called only for bursts with such packets. Worker.
#include "datapath/steps.h"

void datapath_untag(struct worker *w, struct burst *b)
{
	for (uint16_t i = 0; i < b->n; i++)
		rte_pktmbuf_adj(b->mbuf[i], burst_tag_bytes(b, i));
}
