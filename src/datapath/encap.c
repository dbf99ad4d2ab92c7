// Writes the headers of next hops with a template (fib/template.h) in front of packets, over the
// MAC addresses, in place of which rewrite wrote the entry of the next hop; and the tags of those
// that are sent in a VLAN of a bridge. Called only for bursts with such packets, without the tags
// that they arrived with. Worker.
#include "datapath/steps.h"
#include "datapath/tunnel.h"

#include <rte_memcpy.h>

_Static_assert(FIB_TEMPLATE_MAX <= RTE_PKTMBUF_HEADROOM, "space for any header before a fragment");

enum { LABEL = 4, LABEL_TTL = 3 };

uint8_t *datapath_write_header(struct rte_mbuf *m, const struct fib_template *template, uint8_t ttl)
{
	const uint16_t more = template->length - template->replaced;
	uint8_t *start = (uint8_t *)rte_pktmbuf_prepend(m, more);

	if (unlikely(!start))
		return NULL;
	rte_memcpy(start, template->bytes, template->length);
	if (template->n_labels && !template->label_ttl) {
		uint8_t *label = start + template->length - LABEL * template->n_labels;

		for (unsigned i = 0; i < template->n_labels; i++)
			label[LABEL * i + LABEL_TTL] = ttl;
	}
	return start;
}

// The TTL of a packet has been decremented already; ttl[] has not. False: not enough headroom.
static bool write_header(struct burst *b, uint16_t i, const struct fib_template *template)
{
	uint8_t *start = datapath_write_header(b->mbuf[i], template, b->ttl[i] - 1);

	if (unlikely(!start))
		return false;
	b->frame[i] = start;
	b->length[i] += template->length - template->replaced;
	return true;
}

// Between the MAC addresses that rewrite wrote, and the EtherType. False: not enough headroom.
static bool write_tag(struct burst *b, uint16_t i)
{
	enum { MACS_BYTES = 12, TAG_BYTES = 4 };
	const uint32_t tag_be = rte_cpu_to_be_32(b->tag[i]);
	uint8_t *start = (uint8_t *)rte_pktmbuf_prepend(b->mbuf[i], TAG_BYTES);

	if (unlikely(!start))
		return false;
	memmove(start, start + TAG_BYTES, MACS_BYTES);
	memcpy(start + MACS_BYTES, &tag_be, TAG_BYTES);
	b->frame[i] = start;
	b->length[i] += TAG_BYTES;
	return true;
}

// The 802.1p priority of all tags; a header without tags has none.
static void write_priority(uint8_t *header, uint8_t priority)
{
	enum { TPID_AT = 12, TCI_AT = 14, TAG_BYTES = 4, SHIFT = 5, OTHERS = 0x1f };
	static const uint8_t tpids[][2] = {{0x81, 0x00}, {0x88, 0xa8}};

	while (!memcmp(header + TPID_AT, tpids[0], 2) || !memcmp(header + TPID_AT, tpids[1], 2)) {
		header[TCI_AT] = priority << SHIFT | (header[TCI_AT] & OTHERS);
		header += TAG_BYTES;
	}
}

static void set_ports(struct burst *b)
{
	uint8_t differ = 0;

	for (uint16_t i = 0; i < b->n; i++)
		differ |= b->port[i] ^ b->port[0];
	b->has_one_port = !differ;
}

static void spread_port(struct burst *b)
{
	for (uint16_t i = 1; b->has_one_port && i < b->n; i++)
		b->port[i] = b->port[0];
}

static bool write_template(struct worker *w, struct burst *b, uint16_t i, bool *has_tunnels)
{
	const struct fib_template *template = fib_template_load(b->view, b->hop[i]);

	if (!template->tunnel)
		return write_header(b, i, template);
	if (!*has_tunnels)
		spread_port(b);
	*has_tunnels = true;
	return tunnel_write(w, b, i, template);
}

// The output port of a packet into a tunnel is that of its header.
void datapath_encap(struct worker *w, struct burst *b)
{
	uint64_t kept = burst_all(b);
	bool has_tunnels = false;

	for (uint64_t rest = (b->template_mask | b->tag_mask) & kept; rest; rest &= rest - 1) {
		const uint16_t i = __builtin_ctzll(rest);

		if (likely(b->template_mask >> i & 1 ? write_template(w, b, i, &has_tunnels)
						     : write_tag(b, i))) {
			if (unlikely(b->priority_mask >> i & 1))
				write_priority(b->frame[i], b->priority[i]);
			continue;
		}
		burst_drop(w, b, i, VERDICT_NO_HEADROOM);
		kept &= ~(1ull << i);
	}
	b->has_one_port &= !has_tunnels;
	burst_keep(b, kept);
	if (has_tunnels)
		set_ports(b);
}
