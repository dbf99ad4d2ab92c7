// How long turns of the control loop take: whatever one does, the next event waits for it. Control
// thread.
#include "api/inside.h"

#include "base/bits.h"
#include "base/clock.h"

#include <time.h>

enum { LEAST_NS = 5000000, MOST_MS = 1000000 };

static uint64_t cpu_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

void api_note_turn(struct api_ctx *ctx, uint64_t woke_ns)
{
	struct api_turns *turns = &ctx->turns;
	const uint64_t now_ns = clock_now_ns(), cpu_ns = cpu_now_ns();
	const struct api_turn turn = {.end_ns = now_ns,
		.ns = now_ns - woke_ns,
		.cpu_ns = cpu_ns - turns->cpu_ns};

	if (turn.ns >= LEAST_NS)
		turns->slot[turns->n_long++ % API_TURNS] = turn;
	// The first one has what was done before.
	if (turns->n++ && turn.cpu_ns > turns->most.cpu_ns)
		turns->most = turn;
	turns->cpu_ns = cpu_ns;
}

static json_t *turn_json(const struct api_turn *turn)
{
	return json_pack("{s:I, s:f, s:f}", "at_ns", (json_int_t)turn->end_ns, "ms", turn->ns / 1e6,
		"cpu_ms", turn->cpu_ns / 1e6);
}

json_t *method_turns(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_turns *turns = &((const struct api_ctx *)ctx_)->turns;
	const uint64_t first = turns->n_long - MIN_OF(turns->n_long, (uint64_t)API_TURNS);
	double min_ms = 0;
	const struct rpc_param rows[] = {{"min_ms", RPC_REAL, false, 0, MOST_MS, &min_ms}};

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error))
		return NULL;
	json_t *list = json_array();
	for (uint64_t i = first; i < turns->n_long; i++) {
		const struct api_turn *turn = &turns->slot[i % API_TURNS];
		if (turn->ns / 1e6 >= min_ms)
			json_array_append_new(list, turn_json(turn));
	}
	return json_pack("{s:I, s:o, s:I, s:o, s:I}", "turns", (json_int_t)turns->n, "long", list,
		"forgotten", (json_int_t)first, "most_cpu", turn_json(&turns->most), "now_ns",
		(json_int_t)clock_now_ns());
}
