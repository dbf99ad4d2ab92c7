// Selects the offloads that a port uses, and the hash that distributes flows over its queues. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct offload_facts {
	uint64_t rx_offers, tx_offers, tx_queue_offers; // as in rte_eth_dev_info
	uint32_t frame_max; // longest frame of the port's MTU, without FCS
	uint32_t data_room; // of one mbuf, without headroom
	bool one_pool;      // all mbufs of the process come from one pool
	bool may_chain;     // some port may receive frames in several mbufs
	bool has_guest;     // its peer may leave checksums and segmentation to us
};

struct offload {
	uint64_t rx, tx;
	bool tx_multi_segment;
};

// IPv4 checksums are verified by the device if it can; scatter only if a frame does not fit one
// mbuf; multi-segment transmit if the device supports it and such frames are possible, otherwise
// fast free. VLAN tags stay in the frame. The driver tells of checksums that a guest leaves open,
// rather than finishing them itself.
void offload_choose(struct offload *offload, const struct offload_facts *facts);

// The header fields that a device hashes to choose a receive queue.
enum { RSS_KEY_MAX = 64 };

struct rss {
	bool on;
	uint64_t fields;          // RTE_ETH_RSS_*
	uint8_t key[RSS_KEY_MAX]; // symmetric: both directions of a flow use the same queue
	uint8_t key_bytes;        // 0: keep the driver's own key
};

// `offers` and `key_bytes` as in rte_eth_dev_info. Selects the innermost L3 and L4 fields that are
// supported; off for one queue or if the device cannot hash.
void rss_choose(struct rss *rss, uint64_t offers, unsigned key_bytes, unsigned n_queues);

// True if the device can distribute IP packets over queues.
bool rss_can_hash(uint64_t offers);
