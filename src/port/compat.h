// Everything that differs between the DPDK versions this builds with (22.11, 24.11, 25.11).
#pragma once

#include <rte_ethdev.h>
#include <rte_version.h>

#if RTE_VERSION < RTE_VERSION_NUM(22, 11, 0, 0)
#error "DPDK 22.11 or later is wanted"
#endif

// The default algorithm became a field of its own in 23.11; before that the driver's default was
// all there was.
#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
static inline void compat_choose_toeplitz(struct rte_eth_rss_conf *conf)
{
	conf->algorithm = RTE_ETH_HASH_FUNCTION_DEFAULT;
}
#else
static inline void compat_choose_toeplitz(struct rte_eth_rss_conf *conf)
{
	(void)conf;
}
#endif
