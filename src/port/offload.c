// Selects offloads and the flow hash by a device's capabilities.
#include "port/offload.h"

#include <rte_ethdev.h>
#include <string.h>

void offload_choose(struct offload *offload, const struct offload_facts *facts)
{
	bool scatters = facts->frame_max > facts->data_room;
	uint64_t tx_offers = facts->tx_offers | facts->tx_queue_offers;

	memset(offload, 0, sizeof(*offload));
	offload->rx = facts->rx_offers & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
	if (facts->has_guest)
		offload->rx |= facts->rx_offers &
		               (RTE_ETH_RX_OFFLOAD_TCP_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM);
	if (scatters)
		offload->rx |= facts->rx_offers & RTE_ETH_RX_OFFLOAD_SCATTER;
	if (facts->may_chain || scatters)
		offload->tx |= tx_offers & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	else if (facts->one_pool)
		offload->tx |= tx_offers & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	offload->tx_multi_segment = offload->tx & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
}

// Fragments hash on addresses alone: later ones have no ports.
static const uint64_t ADDRESSES = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_FRAG_IPV4 |
                                  RTE_ETH_RSS_NONFRAG_IPV4_OTHER | RTE_ETH_RSS_IPV6 |
                                  RTE_ETH_RSS_FRAG_IPV6 | RTE_ETH_RSS_NONFRAG_IPV6_OTHER |
                                  RTE_ETH_RSS_IPV6_EX;
static const uint64_t PORTS = RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV4_UDP |
                              RTE_ETH_RSS_NONFRAG_IPV4_SCTP | RTE_ETH_RSS_NONFRAG_IPV6_TCP |
                              RTE_ETH_RSS_NONFRAG_IPV6_UDP | RTE_ETH_RSS_NONFRAG_IPV6_SCTP |
                              RTE_ETH_RSS_IPV6_TCP_EX | RTE_ETH_RSS_IPV6_UDP_EX;

bool rss_can_hash(uint64_t offers)
{
	return offers & (ADDRESSES | PORTS);
}

void rss_choose(struct rss *rss, uint64_t offers, unsigned key_bytes, unsigned n_queues)
{
	memset(rss, 0, sizeof(*rss));
	if (n_queues < 2 || !rss_can_hash(offers))
		return;
	rss->on = true;
	rss->fields = offers & (ADDRESSES | PORTS);
	if ((offers & RTE_ETH_RSS_LEVEL_MASK) >= RTE_ETH_RSS_LEVEL_INNERMOST)
		rss->fields |= RTE_ETH_RSS_LEVEL_INNERMOST;
	if (key_bytes > RSS_KEY_MAX)
		return;
	rss->key_bytes = key_bytes;
	// 0x6d5a repeated makes the Toeplitz hash symmetric (Woo and Park, 2012).
	for (unsigned i = 0; i < key_bytes; i++)
		rss->key[i] = i % 2 ? 0x5a : 0x6d;
}
