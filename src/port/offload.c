// Selects offloads by a device's capabilities.
#include "port/offload.h"

#include <rte_ethdev.h>
#include <string.h>

void offload_choose(struct offload *offload, const struct offload_facts *facts)
{
	bool scatters = facts->frame_max > facts->data_room;
	uint64_t tx_offers = facts->tx_offers | facts->tx_queue_offers;

	memset(offload, 0, sizeof(*offload));
	offload->rx = facts->rx_offers & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
	if (scatters)
		offload->rx |= facts->rx_offers & RTE_ETH_RX_OFFLOAD_SCATTER;
	if (facts->may_chain || scatters)
		offload->tx |= tx_offers & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	else if (facts->one_pool)
		offload->tx |= tx_offers & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	offload->tx_multi_segment = offload->tx & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
}
