// IPv6 bulk lookup for any CPU. Worker.
#include "flow/stages6.h"

static inline uint32_t record_of(const struct line6 *line, unsigned slot)
{
	const word16 word = word16_load(&line->record[slot / 4 * 4]);
	uint32_t four[4];

	memcpy(four, &word, sizeof(four));
	return four[slot % 4];
}

static inline __attribute__((always_inline)) struct probe6 probe(const struct line6 *line,
	uint16_t tag)
{
	struct probe6 found = {.state = state_load(&line->state)};

	for (unsigned slot = 0; slot < LINE6_SLOTS; slot++)
		if (__atomic_load_n(&line->tag[slot], __ATOMIC_ACQUIRE) == tag) {
			found.record = record_of(line, slot);
			break;
		}
	found.is_sure = !(found.state & 1) && state_load(&line->state) == found.state;
	return found;
}

void flow6_begin_scalar(const struct flow_view *view, const struct flow_key6 key[],
	struct flow_lookup *lookup)
{
	const struct line6 *lines = view->lines6;
	uint64_t hash[FLOW_BURST];

	view->hash6(view, key, hash, lookup->n);
	for (unsigned i = 0; i < lookup->n; i++) {
		lookup->line[0][i] = hash_line(hash[i], 0, view->n_lines6);
		lookup->line[1][i] = hash_line(hash[i], 1, view->n_lines6);
		lookup->tag[i] = hash_tag(hash[i]);
		rte_prefetch1(&lines[lookup->line[0][i]]);
	}
}

void flow6_continue_scalar(const struct flow_view *view, const struct flow_key6 key[],
	struct flow_lookup *lookup)
{
	continue6(view, lookup, probe);
}

void flow6_end_scalar(const struct flow_view *view, const struct flow_key6 key[],
	struct flow_lookup *lookup)
{
	end6(view, key, lookup, probe);
}
