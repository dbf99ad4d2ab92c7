// VLAN tags, after rewrite has written the MAC addresses where they are without tags: removes the
// tags that packets arrived with and inserts those of the next hop. Called only for bursts with
// tags. Worker.
#include "datapath/steps.h"

#include <string.h>

enum { MACS = 12, TAG = 4 };

static uint16_t length_of(const struct iface_tags *tags)
{
	struct {
		uint32_t outer, inner;
	} tag;

	memcpy(&tag, tags->bytes, sizeof(tag));
	return tag.inner ? 2 * TAG : tag.outer ? TAG : 0;
}

// False: not enough headroom.
static bool write_tags(struct burst *b, uint16_t i, struct iface_tags tags)
{
	uint16_t n = length_of(&tags);
	uint8_t *frame = b->frame[i];

	if (!n)
		return true;
	uint8_t *start = (uint8_t *)rte_pktmbuf_prepend(b->mbuf[i], n);
	if (!start)
		return false;
	memmove(start, frame, MACS);
	memcpy(start + MACS, tags.bytes, n);
	b->frame[i] = start;
	b->length[i] += n;
	return true;
}

void datapath_tag(struct worker *w, struct burst *b)
{
	uint64_t kept = 0;

	for (uint16_t i = 0; i < b->n; i++) {
		rte_pktmbuf_adj(b->mbuf[i], burst_tag_bytes(b, i));
		if (write_tags(b, i, fib_tags_load(b->view, b->hop[i])))
			kept |= 1ull << i;
		else
			burst_drop(w, b, i, VERDICT_NO_HEADROOM);
	}
	burst_keep(b, kept);
}
