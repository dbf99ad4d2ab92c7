// IPv4 bulk lookup for any CPU: a node, for some destinations a leaf outside it, and for a few a
// tail. Worker.
#include "fib/lookup.h"

#include "fib/tails.h"

// Where to look: in the main table, in the VRF of the view, or in the VRF of each destination.
enum where { IN_MAIN, IN_VRF, IN_SEVERAL };

// Number of destinations, whether the table is too large for a core's own caches, and the lookup's
// state.
struct pass {
	unsigned n;
	bool is_far;
	enum where where;
	const uint16_t *vrf; // IN_SEVERAL
	struct fib_lookup4_state *state;
};

// The node of destination `i`.
static inline __attribute__((always_inline)) const struct fib_node4 *
node_of(const struct fib_view *view, const struct pass *pass, const uint32_t dst[], unsigned i)
{
	const uint32_t *root = view->root4;

	if (pass->where == IN_MAIN)
		return &view->node4[dst[i] >> 13];
	if (pass->where == IN_SEVERAL)
		root += (size_t)pass->vrf[i] << ROOT4_BITS;
	uint32_t first = __atomic_load_n(&root[dst[i] >> (32 - ROOT4_BITS)], __ATOMIC_ACQUIRE);
	return &view->node4[first + (dst[i] >> 13) % PAGE4_NODES];
}

// A node as two words, and the number of the run that contains the destination.
struct piece {
	uint64_t half[2];
	uint32_t run;
};

static inline struct piece piece_of(const struct fib_node4 *node, uint32_t dst)
{
	word16 word = word16_load(node);
	struct piece piece;

	memcpy(piece.half, &word, sizeof(piece.half));
	// A shift by (31 - slot), of which the CPU uses the lowest five bits, keeps the bits up to
	// and including the slot.
	piece.run = __builtin_popcount((uint32_t)piece.half[0] << (~(dst >> 8) & 31));
	return piece;
}

static inline uint32_t piece_tail(const struct piece *piece)
{
	return piece->half[1] >> 32;
}

// The number of a leaf outside the node.
static inline uint32_t piece_number(const struct piece *piece)
{
	return (piece->half[0] >> 33) + piece->run;
}

static inline uint32_t piece_is_narrow(const struct piece *piece)
{
	return piece->half[0] & piece->half[0] >> 32 & 1;
}

static inline uint32_t piece_is_outside(const struct piece *piece)
{
	return piece->half[0] & ~(piece->half[0] >> 32) & 1;
}

// The leaf of a node that contains its leaves, narrow or not. Computed without branches, since the
// CPU could not predict them.
static inline uint16_t piece_leaf_inside(const struct piece *piece)
{
	uint32_t narrow = piece_is_narrow(piece);
	uint32_t place = offsetof(struct fib_node4, leaf) + (piece->run << (1 - narrow));
	uint32_t leaf = piece->half[place >> 3 & 1] >> 8 * (place & 7) & 0xffff >> 8 * narrow;

	return leaf + FIB_NARROW_AFTER * (narrow & (leaf != 0));
}

// The same as piece_leaf_inside() for a node that is not narrow: a quarter faster with a single
// route.
static inline uint16_t leaf_plain(const struct piece *piece)
{
	uint16_t word[8];

	memcpy(word, piece->half, sizeof(word));
	return word[(offsetof(struct fib_node4, leaf) / sizeof(word[0]) + piece->run) % 8];
}

static uint64_t find_tails(const uint32_t leaf[], unsigned n)
{
	uint64_t found = 0;

	for (unsigned i = 0; i < n; i++)
		found |= (uint64_t)(leaf[i] >> 15) << i;
	return found;
}

static inline __attribute__((always_inline)) void begin(const struct fib_view *view,
	const uint32_t dst[], uint32_t leaf[], struct pass pass)
{
	struct fib_lookup4_state *const state = pass.state;
	uint32_t any = 0;

	state->outside = state->tails = 0;
	for (unsigned i = 0; i < state->n; i++) {
		const struct piece piece = piece_of(node_of(view, &pass, dst, i), dst[i]);
		uint32_t is_outside = piece_is_outside(&piece);

		if (pass.is_far || unlikely(piece.half[0] & 1))
			leaf[i] = piece_leaf_inside(&piece) & (is_outside - 1);
		else
			leaf[i] = leaf_plain(&piece);
		any |= leaf[i];
		state->outside |= (uint64_t)is_outside << i;
		state->number[i] = piece_number(&piece) & -is_outside;
		state->tail[i] = piece_tail(&piece);
	}
	if (any & LEAF_TAIL)
		state->tails = find_tails(leaf, state->n);
	if (pass.is_far)
		fetch_later(view, leaf, state);
}

void lookup4_begin_scalar(const struct fib_view *view, const uint32_t dst[], uint32_t leaf[],
	struct fib_lookup4_state *state)
{
	begin(view, dst, leaf, (struct pass){.state = state, .is_far = true});
}

void lookup4_vrf_begin_scalar(const struct fib_view *view, const uint32_t dst[], uint32_t leaf[],
	struct fib_lookup4_state *state)
{
	begin(view, dst, leaf, (struct pass){.state = state, .is_far = true, .where = IN_VRF});
}

void fib_lookup4_continue(const struct fib_view *view, uint32_t leaf[],
	struct fib_lookup4_state *state)
{
	take_leaves(view, leaf, state);
}

void fib_lookup4_end(const struct fib_view *view, const uint32_t dst[], uint32_t leaf[],
	const struct fib_lookup4_state *state)
{
	take_tails(view, dst, leaf, state);
}

static inline __attribute__((always_inline)) void lookup(const struct fib_view *view,
	const uint32_t dst[], uint32_t hop[], struct pass pass)
{
	struct fib_lookup4_state state;

	pass.state = &state;
	for (unsigned left = pass.n; left; left -= state.n, dst += state.n, hop += state.n) {
		state.n = MIN_OF(left, FIB_BURST4);
		for (unsigned i = 0; pass.is_far && i < state.n; i++)
			rte_prefetch1(node_of(view, &pass, dst, i));
		begin(view, dst, hop, pass);
		take_leaves(view, hop, &state);
		take_tails(view, dst, hop, &state);
		pass.vrf += pass.where == IN_SEVERAL ? state.n : 0;
	}
}

void lookup4_near_scalar(const struct fib_view *view, const uint32_t dst[], uint32_t hop[],
	unsigned n)
{
	lookup(view, dst, hop, (struct pass){.n = n});
}

void lookup4_far_scalar(const struct fib_view *view, const uint32_t dst[], uint32_t hop[],
	unsigned n)
{
	lookup(view, dst, hop, (struct pass){.n = n, .is_far = true});
}

void lookup4_vrf_scalar(const struct fib_view *view, const uint32_t dst[], uint32_t hop[],
	unsigned n)
{
	lookup(view, dst, hop, (struct pass){.n = n, .is_far = true, .where = IN_VRF});
}

void lookup4_mixed_scalar(const struct fib_view *view, const uint16_t vrf[], const uint32_t dst[],
	uint32_t hop[], unsigned n)
{
	lookup(view, dst, hop,
		(struct pass){.n = n, .is_far = true, .where = IN_SEVERAL, .vrf = vrf});
}
