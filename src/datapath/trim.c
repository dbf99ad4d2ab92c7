// Trims what follows a packet in its frame, as Linux does when it receives one (ip_rcv_core,
// ip6_rcv_core). Called only for bursts with trailers, after check: Linux gets frames as they were
// received. Worker.
#include "datapath/steps.h"

// Buffers with none of the bytes are freed.
void datapath_cut(struct rte_mbuf *m, uint32_t length)
{
	struct rte_mbuf *last = m;
	uint32_t left = length;

	for (m->nb_segs = 1; left > last->data_len; m->nb_segs++) {
		left -= last->data_len;
		last = last->next;
	}
	rte_pktmbuf_free(last->next);
	last->next = NULL;
	last->data_len = left;
	m->pkt_len = length;
}

void datapath_trim(struct worker *w, struct burst *b)
{
	for (uint16_t i = 0; i < b->n; i++) {
		uint32_t length = b->length[i] + burst_tag_bytes(b, i);

		if (length < b->mbuf[i]->pkt_len && b->length[i] < UINT16_MAX)
			datapath_cut(b->mbuf[i], length);
	}
}
