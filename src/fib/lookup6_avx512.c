// IPv6 bulk lookup: root and wide blocks for sixteen packets at a time, then line by line,
// comparing a line's 14 ends at once. Worker.
#include "fib/lookup.h"

#include "base/fetch_avx512.h"
#include "fib/layout.h"

#include <immintrin.h>

enum { BURST = 64, WORKERS = 16 };

// Packets in progress: the line to resolve next, and the byte offset of its 16 bits in the burst's
// keys (16 bytes per key).
struct steps {
	uint32_t line[BURST + WORKERS];
	uint32_t at[BURST + WORKERS];
};

// Entries after 16 bits, and the leaf numbers of those that are wide blocks.
struct standing {
	uint32_t entry[BURST];
	uint32_t leaf[BURST]; // undefined if the entry is not a wide block
};

// Offsets in bytes of the 16 bits of levels 0, 1, ... in a key: 6 4 2 0 14 12 10 8.
static inline __m512i next_level(__m512i at)
{
	const __m512i within = _mm512_set1_epi32(15);
	__m512i next = _mm512_sub_epi32(at, _mm512_set1_epi32(2));

	// Not one ternary operation: clang 14 folds that to a wrong constant.
	return _mm512_or_si512(_mm512_and_si512(within, next), _mm512_andnot_si512(within, at));
}

static inline unsigned slot_at(const struct fib_key6 dst[], uint32_t at)
{
	uint16_t slot;

	memcpy(&slot, (const uint8_t *)dst + at, sizeof(slot));
	return slot;
}

static inline __m512i slots_at(const struct fib_key6 dst[], __m512i at)
{
	__m512i word = _mm512_i32gather_epi32(_mm512_srli_epi32(at, 2), dst, 4);
	__m512i shift = _mm512_slli_epi32(_mm512_and_si512(at, _mm512_set1_epi32(2)), 3);

	return _mm512_and_si512(_mm512_srlv_epi32(word, shift), _mm512_set1_epi32(0xffff));
}

static inline __m512i nodes_load4(const struct fib_node6 *nodes, const uint32_t number[])
{
	// Each node is one 16-byte load: a gather could tear it.
	__m512i four = _mm512_castsi128_si512(word16_load(&nodes[number[0]]));

	four = _mm512_inserti32x4(four, word16_load(&nodes[number[2]]), 1);
	four = _mm512_inserti32x4(four, word16_load(&nodes[number[4]]), 2);
	return _mm512_inserti32x4(four, word16_load(&nodes[number[6]]), 3);
}

// Leaf numbers of eight nodes. `slot`: the lowest six bits of each count. A shift by (63 - slot)
// keeps the bits up to and including the slot.
static inline __m256i nodes_resolve8(const struct fib_node6 *nodes, const uint32_t number[8],
	__m256i slot)
{
	__m512i even = nodes_load4(nodes, number), odd = nodes_load4(nodes, number + 1);
	__m512i runs = _mm512_unpacklo_epi64(even, odd), base = _mm512_unpackhi_epi64(even, odd);
	__m256i shift = _mm256_andnot_si256(slot, _mm256_set1_epi32(63));
	__m512i run = _mm512_popcnt_epi64(_mm512_sllv_epi64(runs, _mm512_cvtepu32_epi64(shift)));

	return _mm256_add_epi32(_mm512_cvtepi64_epi32(base), _mm512_cvtepi64_epi32(run));
}

static inline void leaves_of_wide(const struct fib_view *view, __m512i entry, __m512i slot,
	uint32_t leaf[WORKERS])
{
	__mmask16 is_wide = _mm512_movepi32_mask(entry);
	__m512i block = _mm512_maskz_and_epi32(is_wide, entry, _mm512_set1_epi32(ENTRY_INDEX));
	__m512i number = _mm512_add_epi32(_mm512_slli_epi32(block, 10), _mm512_srli_epi32(slot, 6));
	uint32_t numbers[WORKERS];

	_mm512_storeu_si512(numbers, number);
	_mm256_storeu_si256((__m256i *)leaf,
		nodes_resolve8(view->node6, numbers, _mm512_castsi512_si256(slot)));
	_mm256_storeu_si256((__m256i *)(leaf + 8),
		nodes_resolve8(view->node6, numbers + 8, _mm512_extracti64x4_epi64(slot, 1)));
}

// Offsets of the 16 bits of level 1 in the keys of sixteen packets from number `first` on.
static inline __m512i keys_at_level1(unsigned first)
{
	const __m512i at = _mm512_setr_epi32(4, 20, 36, 52, 68, 84, 100, 116, 132, 148, 164, 180,
		196, 212, 228, 244);

	return _mm512_add_epi32(at, _mm512_set1_epi32(16 * first));
}

// Looks up sixteen packets in wide blocks, up to their leaf numbers.
static inline void pass_wide(const struct fib_view *view, const struct fib_key6 dst[],
	struct standing *at, unsigned i)
{
	leaves_of_wide(view, _mm512_loadu_si512(at->entry + i), slots_at(dst, keys_at_level1(i)),
		at->leaf + i);
}

// Reads the entries of sixteen packets from their leaves; packets without a wide block keep their
// entry. Prefetches the lines that the entries lead to. All in registers: a vector load from words
// that were just stored one by one would stall (ADR 0002).
static inline __m512i entries_in(const struct fib_view *view, __m512i leaf, __m512i before)
{
	__m512i entry = _mm512_mask_i32gather_epi32(before, _mm512_movepi32_mask(before), leaf,
		view->leaf6, 4);
	__m512i line =
		_mm512_maskz_and_epi32(_mm512_test_epi32_mask(entry, _mm512_set1_epi32(ENTRY_LINE)),
			entry, _mm512_set1_epi32(ENTRY_INDEX));

	fetch_sixteen(view->line6, _mm512_slli_epi32(line, 3)); // a line is eight 8-byte words
	return entry;
}

// Wide blocks below wide blocks: few tables have any.
static __attribute__((noinline)) __m512i pass_deeper(const struct fib_view *view,
	const struct fib_key6 dst[], __m512i entry, __m512i *at)
{
	uint32_t leaf[WORKERS];

	for (__mmask16 is_wide = _mm512_movepi32_mask(entry); is_wide;
		is_wide = _mm512_movepi32_mask(entry)) {
		leaves_of_wide(view, entry, slots_at(dst, *at), leaf);
		entry = entries_in(view, _mm512_loadu_si512(leaf), entry);
		*at = _mm512_mask_mov_epi32(*at, is_wide, next_level(*at));
	}
	return entry;
}

// Continues from wide blocks, reading leaf numbers sixteen packets ahead of the leaves, so that the
// first lines are prefetched while the next wide blocks are read; packets that reach a line form
// the list. Writes the hops of the others.
static inline unsigned pass_leaves(const struct fib_view *view, const struct burst6 *burst,
	struct standing *stand, struct steps *steps)
{
	unsigned n = 0;

	pass_wide(view, burst->dst, stand, 0);
	for (unsigned i = 0; i < BURST; i += WORKERS) {
		if (i + WORKERS < BURST)
			pass_wide(view, burst->dst, stand, i + WORKERS);
		__m512i before = _mm512_loadu_si512(stand->entry + i);
		__m512i entry = entries_in(view, _mm512_loadu_si512(stand->leaf + i), before);
		__mmask16 was_wide = _mm512_movepi32_mask(before);
		__m512i at = keys_at_level1(i);
		at = _mm512_mask_mov_epi32(at, was_wide, next_level(at));
		if (unlikely(_mm512_movepi32_mask(entry)))
			entry = pass_deeper(view, burst->dst, entry, &at);
		__mmask16 is_line = _mm512_test_epi32_mask(entry, _mm512_set1_epi32(ENTRY_LINE));
		__m512i line = _mm512_and_si512(entry, _mm512_set1_epi32(ENTRY_INDEX));
		_mm512_storeu_si512(burst->hop + i, entry);
		_mm512_storeu_si512(steps->line + n, _mm512_maskz_compress_epi32(is_line, line));
		_mm512_storeu_si512(steps->at + n, _mm512_maskz_compress_epi32(is_line, at));
		n += __builtin_popcount(is_line);
	}
	return n;
}

// The run of a slot: the number of runs that end before it, of at most `most`.
static inline unsigned line_run(const struct line6 *line, unsigned slot, unsigned most)
{
	uint32_t before = _mm512_cmplt_epu16_mask(_mm512_load_si512(line), _mm512_set1_epi16(slot));

	return __builtin_popcount(before & ((1u << most) - 1));
}

// Resolves a line of wide hops for the packet whose slot is at `at`; returns the run.
static __attribute__((noinline)) unsigned take_wide(const struct burst6 *burst,
	const struct line6 *line, uint32_t at)
{
	const unsigned run = line_run(line, slot_at(burst->dst, at), LINE_WIDE_RUNS);

	burst->hop[at / 16] = line->wide_hop[run];
	return run;
}

// Resolves one line for each packet; the list of n shrinks in place.
static inline unsigned pass_lines(const struct fib_view *view, const struct burst6 *burst,
	struct steps *steps, unsigned n)
{
	const struct line6 *lines = view->line6;
	unsigned n_left = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct line6 *line = &lines[steps->line[i]];
		uint32_t at = steps->at[i];
		unsigned run = line_run(line, slot_at(burst->dst, at), LINE_RUNS);
		burst->hop[at / 16] = line->hop[run];
		unsigned below = line->below;
		if (likely(!(below >> run & 1)))
			continue;
		if (unlikely(line->flags & LINE_WIDE)) {
			run = take_wide(burst, line, at);
			below = line->wide_below;
			if (!(below >> run & 1))
				continue;
		}
		steps->line[n_left] = line_next(line, below, run);
		steps->at[n_left] = line->flags & LINE_SPLIT ? at : (at & ~15u) | ((at - 2) & 15);
		rte_prefetch1(&lines[steps->line[n_left++]]);
	}
	return n_left;
}

// Looks up the first 16 bits of each packet. True if all get the same entry.
static inline __attribute__((always_inline)) bool pass_root(const struct fib_view *view,
	const struct burst6 *burst, uint32_t entry[])
{
	uint32_t differ = 0;

	entry[0] = root6_entry(view, burst, 0);
	for (unsigned i = 1; i < BURST; i++) {
		entry[i] = root6_entry(view, burst, i);
		differ |= entry[i] ^ entry[0];
	}
	return !differ;
}

// A burst whose packets all have the same entry, as with few routes: resolves them in one line.
// False if one line is not enough.
static inline bool descend_together(const struct fib_view *view, uint32_t entry,
	const struct fib_key6 dst[], uint32_t hop[])
{
	const struct line6 *line = (const struct line6 *)view->line6 + (entry & ENTRY_INDEX);

	if (!(entry & ENTRY_LINE) || line->below)
		return false;
	for (unsigned i = 0; i < BURST; i++)
		hop[i] = line->hop[line_run(line, key_slot(&dst[i], 1), LINE_RUNS)];
	return true;
}

static inline __attribute__((always_inline)) void lookup_burst(const struct fib_view *view,
	const struct burst6 *burst)
{
	struct standing stand;
	struct steps steps;

	if (pass_root(view, burst, stand.entry) &&
		descend_together(view, stand.entry[0], burst->dst, burst->hop))
		return;
	unsigned n = pass_leaves(view, burst, &stand, &steps);
	while (n)
		n = pass_lines(view, burst, &steps, n);
}

// A burst of fewer destinations is filled up with its first one.
static inline __attribute__((always_inline)) void lookup(const struct fib_view *view,
	const struct burst6 *burst)
{
	const unsigned n = burst->n;
	struct fib_key6 dst[BURST];
	uint32_t hop[BURST];
	uint16_t vrf[BURST];

	if (likely(n == BURST)) {
		lookup_burst(view, burst);
		return;
	}
	if (!n)
		return;
	memcpy(dst, burst->dst, n * sizeof(*dst));
	for (unsigned i = n; i < BURST; i++)
		dst[i] = dst[0];
	for (unsigned i = 0; burst->vrf && i < BURST; i++)
		vrf[i] = burst->vrf[i < n ? i : 0];
	lookup_burst(view, &(struct burst6){dst, hop, BURST, burst->vrf ? vrf : NULL});
	memcpy(burst->hop, hop, n * sizeof(*hop));
}

void lookup6_avx512(const struct fib_view *view, const struct fib_key6 dst[], uint32_t hop[],
	unsigned n)
{
	lookup(view, &(struct burst6){dst, hop, n, NULL});
}

void lookup6_mixed_avx512(const struct fib_view *view, const uint16_t vrf[],
	const struct fib_key6 dst[], uint32_t hop[], unsigned n)
{
	lookup(view, &(struct burst6){dst, hop, n, vrf});
}
