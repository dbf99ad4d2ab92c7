// Flows that are learnt: workers tell of packets without a flow, and each gets the flow that its
// route gives at that time. How much is done in a turn is bounded, whatever workers tell. Control
// thread.
#include "api/flows.h"

#include "base/bits.h"
#include "base/clock.h"
#include "base/pages.h"

#include <errno.h>
#include <netinet/in.h>
#include <rte_cycles.h>
#include <stdlib.h>

// TURN_NS: after which a turn ends. TURN_MOST: packets in a turn. BATCH: packets between two looks
// at the clock. TURN_ACTIONS: whose next hops are looked at in a turn.
enum { TURN_NS = 2 * 1000 * 1000, TURN_MOST = 16384, BATCH = 32, TURN_ACTIONS = 1024 };
// The bucket of the limit has the tokens of a tenth of a second.
enum { DEPTH_OF = 10 };
static const uint64_t SECOND_NS = 1000000000;

struct flow_learning {
	struct flow_learn *rings;
	struct config_learn config; // timeout_s 0: off
	enum flow_life life;
	unsigned n_workers, next; // next: the worker that is asked first
	uint64_t tokens;          // one for each flow, times SECOND_NS
	uint64_t filled_ns;
	bool is_fast;    // rings would overflow before the usual next turn
	uint16_t *iface; // by number of a flow: 1 + that by which it was learnt; 0: it was not
	uint32_t n_numbers;
	uint32_t action_hand;
	uint32_t n; // flows that were learnt and live
	uint32_t n_of_vrf[FIB_MAX_VRFS], n_of_iface[IFACE_MAX];
	// How many were learnt, / were not: by which limit, for want of a route or of space, or as
	// no flow can have their key.
	uint64_t n_learnt;
	uint64_t n_over_rate, n_over_vrf, n_over_iface, n_unroutable, n_full, n_invalid;
};

struct flow_learning *flow_learning_open(const struct flow_settings *settings, struct error *error)
{
	struct flow_learning *learning = calloc(1, sizeof(*learning));

	if (!learning)
		goto no_memory;
	learning->n_workers = settings->n_workers;
	learning->n_numbers = settings->max4 + settings->max6 + 1;
	learning->iface = pages_alloc(learning->n_numbers * sizeof(*learning->iface));
	learning->rings = flow_learn_open(settings->n_workers, error);
	if (learning->iface && learning->rings)
		return learning;
no_memory:
	flow_learning_close(learning);
	error_set(error, -ENOMEM, "not enough memory to learn flows");
	return NULL;
}

// Both are taken as they are used.
uint64_t flow_learning_bytes(const struct flow_settings *settings, const struct config_flow *config)
{
	const uint64_t numbers = (uint64_t)settings->max4 + settings->max6 + 1;

	if (!config->learn.timeout_s)
		return 0;
	return numbers * sizeof(*((struct flow_learning *)NULL)->iface) +
	       flow_learn_bytes(settings->n_workers);
}

void flow_learning_close(struct flow_learning *learning)
{
	if (!learning)
		return;
	flow_learn_close(learning->rings);
	pages_free(learning->iface, learning->n_numbers * sizeof(*learning->iface));
	free(learning);
}

const struct flow_learn *flow_learning_rings(const struct flow_learning *learning)
{
	return learning->rings;
}

// Tells workers whether others may be learnt.
static void show_limits(struct flow_learning *learning, uint16_t vrf, uint16_t iface)
{
	const struct config_learn *config = &learning->config;

	flow_learn_set_vrf_full(learning->rings, vrf,
		config->per_vrf && learning->n_of_vrf[vrf] >= config->per_vrf);
	flow_learn_set_iface_full(learning->rings, iface,
		config->per_interface && learning->n_of_iface[iface] >= config->per_interface);
}

static void set_rate(const struct api_ctx *ctx)
{
	struct flow_learning *learning = ctx->flows->learning;
	const bool is_on = learning->config.timeout_s && flow_job_has_loaded_at_start(ctx);

	flow_learn_set_rate(learning->rings, is_on ? learning->config.rate : 0);
}

void flow_learning_set(struct api_ctx *ctx, const struct config_flow *config)
{
	struct flow_learning *learning = ctx->flows->learning;

	learning->config = config->learn;
	for (unsigned i = 0; i < FLOW_TIMEOUTS; i++)
		if (config->timeout_s[i] && config->timeout_s[i] == config->learn.timeout_s)
			learning->life = i + 1;
	for (unsigned i = 0; i < IFACE_MAX; i++)
		show_limits(learning, i % FIB_MAX_VRFS, i);
	set_rate(ctx);
}

static void fill_bucket(struct flow_learning *learning, uint64_t now_ns)
{
	const uint64_t rate = learning->config.rate;
	const uint64_t depth = MAX_OF(rate / DEPTH_OF, 1) * SECOND_NS;
	const uint64_t passed_ns = MIN_OF(now_ns - learning->filled_ns, SECOND_NS);

	learning->filled_ns = now_ns;
	learning->tokens = MIN_OF(learning->tokens + passed_ns * rate, depth);
}

// Whether one more is allowed; counts it otherwise.
static bool is_allowed(struct flow_learning *learning, uint16_t vrf, uint16_t iface)
{
	const struct config_learn *config = &learning->config;

	if (config->per_vrf && learning->n_of_vrf[vrf] >= config->per_vrf)
		learning->n_over_vrf++;
	else if (config->per_interface && learning->n_of_iface[iface] >= config->per_interface)
		learning->n_over_iface++;
	else if (learning->tokens < SECOND_NS)
		learning->n_over_rate++;
	else
		return true;
	return false;
}

// Whether a hop that a worker selected is one of the group's: its number may be another hop's now.
static bool is_member(const struct fib *fib, const struct fib_hop *group, const struct fib_hop *hop)
{
	enum { MOST = 64 };
	struct fib_member member[MOST];
	const unsigned n = MIN_OF(fib_group_members(fib, group, member, MOST), (unsigned)MOST);

	for (unsigned i = 0; i < n; i++)
		if (member[i].hop.kind == hop->kind && member[i].hop.iface == hop->iface &&
			wire_addr_equal(&member[i].hop.via, &hop->via))
			return true;
	return false;
}

// ICMP errors and others without an identifier have one key, whatever packets they quote: their
// routes, which may select the next hop of the packet that is quoted, remain.
static bool is_message_of_many(const struct flow_tuple *tuple)
{
	return (tuple->proto == IPPROTO_ICMP || tuple->proto == IPPROTO_ICMPV6) && !tuple->src_port;
}

// The next hop of the route, if it has one now; "by route" otherwise. False: there is no route by
// which workers forward.
static bool choose_action(const struct api_ctx *ctx, const struct flow_unknown *unknown,
	const struct flow_tuple *tuple, struct flow_spec *out)
{
	struct fib_answer answer;
	struct fib_hop_info info;

	*out = (struct flow_spec){.action = {.mirror = FLOW_NO_MIRROR,
					  .effect = FLOW_BY_ROUTE,
					  .dscp = FLOW_KEEP_DSCP}};
	rib_lookup(ctx->fib, tuple->vrf, &tuple->dst, &answer);
	if (!answer.found)
		return false;
	if (is_message_of_many(tuple))
		return answer.verdict == VERDICT_FORWARD || answer.hop.kind == FIB_GROUP;
	out->hop = answer.hop;
	if (answer.hop.kind == FIB_GROUP) {
		if (!fib_hop_info(ctx->fib, unknown->hop, &info) ||
			info.verdict != VERDICT_FORWARD ||
			!is_member(ctx->fib, &answer.hop, &info.hop))
			return true;
		out->hop = info.hop;
	} else if (answer.verdict != VERDICT_FORWARD) {
		return answer.verdict == VERDICT_NEIGHBOUR_UNRESOLVED;
	}
	const struct iface *oif = fib_iface(ctx->fib, out->hop.iface);
	if (oif && (out->hop.kind == FIB_VIA || out->hop.kind == FIB_PEER)) {
		out->action.effect = FLOW_TO_HOP;
		out->action.learnt = 1 + oif->vrf;
	}
	return true;
}

static void note(struct flow_learning *learning, uint32_t number, uint16_t vrf, uint16_t iface)
{
	learning->iface[number] = iface + 1;
	learning->n_of_vrf[vrf]++;
	learning->n_of_iface[iface]++;
	learning->n++;
	learning->n_learnt++;
	show_limits(learning, vrf, iface);
}

void flow_learning_forget(void *ctx_, uint32_t number, const struct flow_key *key)
{
	const struct api_ctx *ctx = ctx_;
	struct flow_learning *learning = ctx->flows->learning;
	const uint16_t iface = learning->iface[number];
	struct flow_tuple tuple;

	if (!iface)
		return;
	flow_key_tuple(key, &tuple);
	learning->iface[number] = 0;
	learning->n_of_vrf[tuple.vrf]--;
	learning->n_of_iface[iface - 1]--;
	learning->n--;
	show_limits(learning, tuple.vrf, iface - 1);
}

static void add(struct api_ctx *ctx, const struct flow_unknown *unknown, const struct flow_key *key,
	const struct flow_tuple *tuple, uint32_t action)
{
	struct flow_learning *learning = ctx->flows->learning;
	struct flow_table *table = ctx->flows->table;
	const struct flow_change change = {.op = FLOW_ADD,
		.life = learning->life,
		.key = *key,
		.is_learnt = true,
		.action = action};
	const uint64_t now = rte_rdtsc();
	struct flow_info info;
	int result;

	if (flow_change(table, &change, 1, now, &result) && flow_find(table, key, now, &info)) {
		note(learning, info.number, tuple->vrf, unknown->iface);
		learning->tokens -= SECOND_NS;
	} else if (result != -EEXIST) { // several workers may tell of one
		learning->n_full++;
	}
}

// Packets may have what no flow has, such as ICMPv6 in IPv4: users could neither find such a flow,
// nor load a file with it. False: it has.
static bool read_key(const struct flow_unknown *unknown, struct flow_key *key,
	struct flow_tuple *tuple)
{
	*key = (struct flow_key){.family = unknown->family};
	if (unknown->family == 6)
		key->six = unknown->six;
	else
		key->four = unknown->four;
	flow_key_tuple(key, tuple);
	return !flow_key_set(key, tuple, NULL);
}

static void learn(struct api_ctx *ctx, const struct flow_unknown *unknown)
{
	struct flow_learning *learning = ctx->flows->learning;
	struct flow_tuple tuple;
	struct flow_info info;
	struct flow_spec spec;
	struct flow_key key;
	uint32_t action;

	if (!read_key(unknown, &key, &tuple)) {
		learning->n_invalid++;
		return;
	}
	if (!is_allowed(learning, tuple.vrf, unknown->iface) ||
		flow_find(ctx->flows->table, &key, rte_rdtsc(), &info))
		return;
	if (!choose_action(ctx, unknown, &tuple, &spec)) {
		learning->n_unroutable++;
		return;
	}
	// Otherwise it would wait for workers, which is not bounded.
	if (!flow_has_space(ctx->flows->table, key.family)) {
		learning->n_full++;
		return;
	}
	if (flow_spec_use(ctx, &spec, &action, NULL)) {
		learning->n_full++;
		return;
	}
	add(ctx, unknown, &key, &tuple, action);
	flow_action_unuse(ctx->flows->table, action);
}

// Whether packets cannot be sent to the next hop that was learnt, or would get into another VRF.
static bool is_gone(const struct api_ctx *ctx, const struct flow_action *action)
{
	const struct fib_view *view = __atomic_load_n(&ctx->live.view, __ATOMIC_RELAXED);
	struct fib_hop hop;

	if (!fib_held_hop(ctx->fib, action->held, &hop))
		return false;
	const struct iface *oif = fib_iface(ctx->fib, hop.iface);
	return !oif || 1 + oif->vrf != action->learnt ||
	       fib_verdict_load(view, fib_held_load(view, action->held)) != VERDICT_FORWARD;
}

bool flow_learning_end_gone(struct api_ctx *ctx)
{
	struct flow_learning *learning = ctx->flows->learning;
	struct flow_table *table = ctx->flows->table;
	const uint32_t end = flow_actions_end(table);

	for (uint32_t n = MIN_OF(end, TURN_ACTIONS); n; n--) {
		const uint32_t number = learning->action_hand++ % end;
		const struct flow_action *action = flow_action_of(table, number);

		if (action && action->learnt && !action->withdrawn && is_gone(ctx, action))
			flow_action_withdraw(table, number);
	}
	return flow_end_withdrawn(table, rte_rdtsc());
}

// Workers take turns, so that one of them cannot use all the time.
bool flow_learning_step(struct api_ctx *ctx)
{
	struct flow_learning *learning = ctx->flows->learning;
	const uint64_t from_ns = clock_now_ns(), n_before = learning->n_learnt;
	struct flow_unknown unknown[BATCH];
	unsigned n_idle = 0;

	set_rate(ctx);
	learning->is_fast = false;
	fill_bucket(learning, from_ns);
	for (unsigned n = 0; n_idle < learning->n_workers;) {
		if (n >= TURN_MOST || (n && clock_now_ns() - from_ns >= (uint64_t)TURN_NS)) {
			learning->is_fast = true; // there may be more
			return learning->n_learnt > n_before;
		}
		const unsigned worker = learning->next++ % learning->n_workers;
		const unsigned n_taken = flow_learn_take(learning->rings, worker, unknown, BATCH);
		n_idle = n_taken ? 0 : n_idle + 1;
		learning->is_fast |= n + n_taken > FLOW_LEARN_RING / 4;
		n += n_taken;
		for (unsigned i = 0; learning->config.timeout_s && i < n_taken; i++)
			learn(ctx, &unknown[i]);
	}
	return false;
}

bool flow_learning_is_fast(const struct api_ctx *ctx)
{
	return ctx->flows->learning->is_fast;
}

// Packets of which workers did not tell: for want of space, / since nothing may be learnt of them.
static void count_untold(const struct api_ctx *ctx, uint64_t *lost, uint64_t *at_limit)
{
	unsigned n;
	struct stats_worker *const *workers = datapath_stats(ctx->path, &n);

	*lost = *at_limit = 0;
	for (unsigned i = 0; i < n; i++) {
		*lost += stats_read(&workers[i]->flow_learn_lost);
		*at_limit += stats_read(&workers[i]->flow_learn_over);
	}
}

json_t *flow_learning_json(const struct api_ctx *ctx)
{
	const struct flow_learning *learning = ctx->flows->learning;
	const struct config_learn *config = &learning->config;
	uint64_t lost, at_limit;
	json_t *json = json_pack("{s:b, s:I, s:I}", "on", config->timeout_s > 0, "flows",
		(json_int_t)learning->n, "learnt", (json_int_t)learning->n_learnt);

	json_object_set_new(json, "timeout_s", number_json(config->timeout_s));
	json_object_set_new(json, "rate", number_json(config->rate));
	json_object_set_new(json, "per_vrf", number_json(config->per_vrf));
	json_object_set_new(json, "per_interface", number_json(config->per_interface));
	json_object_set_new(json, "over_rate", number_json(learning->n_over_rate));
	json_object_set_new(json, "over_vrf", number_json(learning->n_over_vrf));
	json_object_set_new(json, "over_interface", number_json(learning->n_over_iface));
	json_object_set_new(json, "unroutable", number_json(learning->n_unroutable));
	json_object_set_new(json, "full", number_json(learning->n_full));
	json_object_set_new(json, "invalid", number_json(learning->n_invalid));
	count_untold(ctx, &lost, &at_limit);
	json_object_set_new(json, "at_limit", number_json(at_limit));
	json_object_set_new(json, "lost", number_json(lost));
	return json;
}
