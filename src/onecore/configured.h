// When a plugin's own thread may ask for a port of the program that it sits in.
#pragma once

#include <rte_ethdev.h>

#include <stdbool.h>
#include <stdint.h>

// Whether the program has configured the port. Before that its driver may still be probing: then
// ethdev calls the port valid, but asking the driver about it would follow a NULL pointer. Any
// thread.
static inline bool port_is_configured(uint16_t port)
{
	struct rte_eth_conf config;

	return rte_eth_dev_is_valid_port(port) && !rte_eth_dev_conf_get(port, &config) &&
	       config.rxmode.mtu;
}
