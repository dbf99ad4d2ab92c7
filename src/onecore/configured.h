// When a plugin's own thread may query a port of its host program.
#pragma once

#include <rte_ethdev.h>

#include <stdbool.h>
#include <stdint.h>

// Whether the program has configured the port. Before that, its driver may still be probing: ethdev
// then reports the port as valid, but querying the driver would dereference a NULL pointer. Any
// thread.
static inline bool port_is_configured(uint16_t port)
{
	struct rte_eth_conf config;

	return rte_eth_dev_is_valid_port(port) && !rte_eth_dev_conf_get(port, &config) &&
	       config.rxmode.mtu;
}
