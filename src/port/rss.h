// Which header fields a device hashes to choose a receive queue. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { RSS_KEY_MAX = 64 };

struct rss {
	bool on;
	uint64_t fields;          // RTE_ETH_RSS_*
	uint8_t key[RSS_KEY_MAX]; // symmetric: both directions of a flow give the same queue
	uint8_t key_bytes;        // 0: leave the driver's own key
};

// `offers` and `key_bytes` as rte_eth_dev_info gives them. Chooses the innermost L3 and L4 fields
// on offer; off for one queue or a device that hashes nothing.
void rss_choose(struct rss *rss, uint64_t offers, unsigned key_bytes, unsigned n_queues);

// True when the device can spread IP packets over queues at all.
bool rss_can_hash(uint64_t offers);
