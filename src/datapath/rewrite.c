// Rewrites the bytes that forwarding changes: TTL, checksum, MAC addresses. Counts the use of next
// hops in the same pass. Worker.
#include "datapath/hop_limits.h"
#include "datapath/variant.h"

#include <string.h>

_Static_assert(STATS_MAX_HOPS == 1 << 20, "a counter for each hop id");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	"decrease_ttl4 and the header comparisons count on it");

// A hop's entry, read by one 16-byte load: its MACs are consistent even while the control thread
// replaces the entry.
typedef uint32_t hop_words __attribute__((vector_size(16)));

static inline hop_words read_hop(const struct fib_view *view, uint32_t hop)
{
	word16 word = word16_load(&view->hops[hop]);
	hop_words words;

	memcpy(&words, &word, sizeof(words));
	return words;
}

static inline void write_macs(uint8_t *frame, hop_words hop)
{
	typedef uint64_t pair __attribute__((vector_size(16)));
	uint64_t first8 = ((pair)hop)[0];
	uint32_t last4 = hop[2];

	memcpy(frame, &first8, sizeof(first8));
	memcpy(frame + 8, &last4, sizeof(last4));
}

// Reads TTL, protocol and checksum as one word. RFC 1624: the TTL is the high byte of its 16-bit
// word, so decrementing it adds 0x0100 to the checksum, with end-around carry.
static inline void decrease_ttl4(uint8_t *frame)
{
	uint32_t word;

	memcpy(&word, frame + 22, sizeof(word));
	word += 0xffff + (word >= 0xfffe0000 ? 0x10000 : 0);
	memcpy(frame + 22, &word, sizeof(word));
}

static inline void decrease_ttl(uint8_t *frame, bool is_ip6)
{
	if (is_ip6)
		frame[21]--;
	else
		decrease_ttl4(frame);
}

static inline void rewrite(struct stats_worker *stat, struct burst *b, bool is_ip6)
{
	const struct fib_view *view = b->view;
	const unsigned n = b->n; // frames may alias anything

	if (b->has_one_hop) {
		hop_words hop = read_hop(view, b->hop[0]);

		for (unsigned i = 0; i < n; i++) {
			write_macs(b->frame[i], hop);
			decrease_ttl(b->frame[i], is_ip6);
		}
		stats_add(&stat->hop[b->hop[0]], n);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		write_macs(b->frame[i], read_hop(view, b->hop[i]));
		decrease_ttl(b->frame[i], is_ip6);
		stats_add(&stat->hop[b->hop[i]], 1);
	}
}

void rewrite4_scalar(struct stats_worker *stat, struct burst *b)
{
	rewrite(stat, b, false);
}

void rewrite6_scalar(struct stats_worker *stat, struct burst *b)
{
	rewrite(stat, b, true);
}

void datapath_rewrite(struct worker *w, struct burst *b)
{
	if (b->is_ip6)
		w->variant->rewrite6(w->stat, b);
	else
		w->variant->rewrite4(w->stat, b);
}

const struct datapath_variant datapath_scalar = {
	.parse = parse_scalar,
	.all_plain = all_plain_scalar,
	.limits = limits_scalar,
	.rewrite4 = rewrite4_scalar,
	.rewrite6 = rewrite6_scalar,
};
