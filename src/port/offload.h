// Selects the offloads that a port uses. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct offload_facts {
	uint64_t rx_offers, tx_offers, tx_queue_offers; // as in rte_eth_dev_info
	uint32_t frame_max; // longest frame of the port's MTU, without FCS
	uint32_t data_room; // of one mbuf, without headroom
	bool one_pool;      // all mbufs of the process come from one pool
	bool may_chain;     // some port may receive frames in several mbufs
};

struct offload {
	uint64_t rx, tx;
	bool tx_multi_segment;
};

// IPv4 checksums are verified by the device if it can; scatter only if a frame does not fit one
// mbuf; multi-segment transmit if the device supports it and such frames are possible, otherwise
// fast free. VLAN tags stay in the frame.
void offload_choose(struct offload *offload, const struct offload_facts *facts);
