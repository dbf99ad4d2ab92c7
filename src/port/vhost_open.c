// DPDK's vhost-user library, as of 22.11.11 and later, finishes a checksum that a guest leaves open
// where the guest says, unless the packet is TCP or UDP; at the end of a full buffer it writes one
// byte too many. Before that it asks this function of rte_net for the headers, so in both programs
// it is overridden (meson.build): the checksum of a frame that fills its first buffer, which is
// none within the MTU, is left to the datapath, which checks it (datapath/offload.c). Workers.
#include "port/vhost_open.h"

#include "base/bits.h"

#include <dlfcn.h>
#include <rte_mbuf.h>
#include <rte_net.h>

typedef uint32_t get_ptype(const struct rte_mbuf *m, struct rte_net_hdr_lens *lengths,
	uint32_t layers);

static get_ptype *found; // atomic, relaxed

void vhost_open_find(void)
{
	__atomic_store_n(&found, (get_ptype *)dlsym(RTLD_NEXT, "rte_net_get_ptype"),
		__ATOMIC_RELAXED);
}

static bool is_finished_by_us(uint32_t type)
{
	type &= RTE_PTYPE_L4_MASK;
	return type == RTE_PTYPE_L4_TCP || type == RTE_PTYPE_L4_UDP || type == RTE_PTYPE_L4_SCTP;
}

uint32_t rte_net_get_ptype(const struct rte_mbuf *m, struct rte_net_hdr_lens *lengths,
	uint32_t layers)
{
	if (unlikely(!__atomic_load_n(&found, __ATOMIC_RELAXED)))
		vhost_open_find(); // there is no vhost, but another driver that asks
	uint32_t type = __atomic_load_n(&found, __ATOMIC_RELAXED)(m, lengths, layers);

	if (likely(!lengths || rte_pktmbuf_tailroom(m)))
		return type;
	lengths->l3_len = UINT16_MAX; // no offset of the guest's is behind the headers
	return is_finished_by_us(type) ? type : (type & ~RTE_PTYPE_L4_MASK) | RTE_PTYPE_L4_SCTP;
}
