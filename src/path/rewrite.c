// The bytes that change on the way through: TTL, checksum, MAC addresses. Lane.
#include "path/steps.h"

#include <string.h>

// The 12 bytes of MACs, taken from the hop's entry by one 16-byte load: they are of one moment,
// even while the control thread replaces the entry.
struct macs {
	uint64_t first8;
	uint32_t last4;
};

static inline struct macs read_macs(const struct fib_view *view, uint16_t hop)
{
	typedef uint32_t word __attribute__((vector_size(16)));
	word entry = *(const word *)&view->hops[hop];

	return (struct macs){.first8 = entry[0] | (uint64_t)entry[1] << 32, .last4 = entry[2]};
}

static inline void write_macs(uint8_t *frame, struct macs macs)
{
	memcpy(frame, &macs.first8, sizeof(macs.first8));
	memcpy(frame + 8, &macs.last4, sizeof(macs.last4));
}

// TTL, protocol and checksum as one word. RFC 1624: the TTL is the high byte of its 16-bit word, so
// one less there is 0x0100 more in the sum, with the carry brought around.
static inline void decrease_ttl4(uint8_t *frame)
{
	uint32_t word;

	memcpy(&word, frame + 22, sizeof(word));
	word += 0xffff + (word >= 0xfffe0000 ? 0x10000 : 0);
	memcpy(frame + 22, &word, sizeof(word));
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	"decrease_ttl4 and the header comparisons count on it");

void path_rewrite4(const struct fib_view *view, struct burst *b)
{
	if (b->has_one_hop) {
		struct macs macs = read_macs(view, b->hop[0]);

		for (uint16_t i = 0; i < b->n; i++) {
			write_macs(b->frame[i], macs);
			decrease_ttl4(b->frame[i]);
		}
		return;
	}
	for (uint16_t i = 0; i < b->n; i++) {
		write_macs(b->frame[i], read_macs(view, b->hop[i]));
		decrease_ttl4(b->frame[i]);
	}
}

void path_rewrite6(const struct fib_view *view, struct burst *b)
{
	if (b->has_one_hop) {
		struct macs macs = read_macs(view, b->hop[0]);

		for (uint16_t i = 0; i < b->n; i++) {
			write_macs(b->frame[i], macs);
			b->frame[i][21]--;
		}
		return;
	}
	for (uint16_t i = 0; i < b->n; i++) {
		write_macs(b->frame[i], read_macs(view, b->hop[i]));
		b->frame[i][21]--;
	}
}
