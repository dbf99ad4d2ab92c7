// Selects the header fields that a device hashes to choose a receive queue. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
