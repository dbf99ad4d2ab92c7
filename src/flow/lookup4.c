// IPv4 bulk lookup for any CPU. Worker.
#include "flow/stages4.h"

// Without branches, since the CPU could not predict them.
static inline __attribute__((always_inline)) struct probe4 probe(const struct line4 *line,
	const struct flow_key4 *key)
{
	const uint64_t care = ~(uint64_t)0 << 32 | KIND_MASK;
	const uint32_t state = state_load(&line->state);
	uint64_t wanted[2], half[2];
	unsigned match = 1 << LINE4_SLOTS;

	memcpy(wanted, key, sizeof(wanted));
	for (unsigned slot = 0; slot < LINE4_SLOTS; slot++) {
		const word16 word = word16_load(&line->key[slot]);

		memcpy(half, &word, sizeof(half));
		const uint64_t differ = ((half[0] ^ wanted[0]) & care) | (half[1] ^ wanted[1]);
		match |= (differ == 0) << slot;
	}
	const unsigned slot = __builtin_ctz(match);
	const uint32_t value = line4_value_load(line, slot);
	const uint32_t found = slot < LINE4_SLOTS ? ~0u : 0;

	return (struct probe4){
		.flow = value & VALUE_FLOW & found,
		.action = line4_action(line4_kind_load(line, slot), value, state, slot),
		.state = state,
		.is_sure = !(state & 1) & (state_load(&line->state) == state),
	};
}

void flow4_begin_scalar(const struct flow_view *view, const struct flow_key4 key[],
	struct flow_lookup *lookup)
{
	const struct line4 *lines = view->lines4;
	uint64_t hash[FLOW_BURST];

	view->hash4(view, key, hash, lookup->n);
	for (unsigned i = 0; i < lookup->n; i++) {
		lookup->line[0][i] = hash_line(hash[i], 0, view->n_lines4);
		lookup->line[1][i] = hash_line(hash[i], 1, view->n_lines4);
		rte_prefetch1(&lines[lookup->line[0][i]]);
	}
}

void flow4_continue_scalar(const struct flow_view *view, const struct flow_key4 key[],
	struct flow_lookup *lookup)
{
	continue4(view, key, lookup, probe);
}

void flow4_end_scalar(const struct flow_view *view, const struct flow_key4 key[],
	struct flow_lookup *lookup)
{
	end4(view, key, lookup, probe);
}
