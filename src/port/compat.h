// All differences between the supported DPDK versions (22.11, 24.11, 25.11).
#pragma once

#include <rte_ethdev.h>
#include <rte_version.h>

#if RTE_VERSION < RTE_VERSION_NUM(22, 11, 0, 0)
#error "DPDK 22.11 or later is required"
#endif

// net_af_packet counts what Linux dropped for lack of a free slot since 25.03.
#if RTE_VERSION >= RTE_VERSION_NUM(25, 3, 0, 0)
#define COMPAT_PACKET_UNCOUNTED PORT_RX_ERRORS
#else
#define COMPAT_PACKET_UNCOUNTED (PORT_RX_MISSED | PORT_RX_NO_MBUF | PORT_RX_ERRORS)
#endif

// Our key is symmetric with Toeplitz only. Since 23.11 drivers list their algorithms, and one can
// be selected.
#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
static inline void compat_ask_for_toeplitz(struct rte_eth_rss_conf *conf,
	const struct rte_eth_dev_info *info)
{
	if (info->rss_algo_capa & RTE_ETH_HASH_ALGO_CAPA_MASK(TOEPLITZ))
		conf->algorithm = RTE_ETH_HASH_FUNCTION_TOEPLITZ;
}
#else
static inline void compat_ask_for_toeplitz(struct rte_eth_rss_conf *conf,
	const struct rte_eth_dev_info *info)
{
	(void)conf;
	(void)info;
}
#endif
