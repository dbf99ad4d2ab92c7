// Compares the table with a plain list of routes, in one VRF. Tests only.
#include "fib/churn.h"

#include "fib/lookup.h"
#include "fib/table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

unsigned churn_rounds(unsigned all)
{
	return getenv("DL3_LONG") ? all : all / 4;
}

// Built-in routes are routes of the model unless an explicit one overrides them.
static const char *const builtin_text[] = {"0.0.0.0/8", "0.0.0.0/32", "127.0.0.0/8", "240.0.0.0/4",
	"255.255.255.255/32", "169.254.0.0/16", "224.0.0.0/4", "::/128", "::1/128", "fe80::/10",
	"ff00::/8"};
static const uint8_t builtin_kind[] = {FIB_MARTIAN, FIB_MARTIAN, FIB_MARTIAN, FIB_MARTIAN,
	FIB_MARTIAN, FIB_LINK_LOCAL, FIB_MULTICAST, FIB_MARTIAN, FIB_MARTIAN, FIB_LINK_LOCAL,
	FIB_MULTICAST};

static struct fib_route builtin_route(size_t i, uint16_t vrf)
{
	struct fib_route route = {.vrf = vrf,
		.hop = {.iface = IFACE_NONE, .kind = builtin_kind[i]}};

	assert_int_equal(wire_prefix_parse(builtin_text[i], &route.prefix), 0);
	return route;
}

int churn_builtin(const struct wire_prefix *prefix)
{
	for (size_t i = 0; i < ARRAY_LEN(builtin_text); i++) {
		struct fib_route route = builtin_route(i, 0);
		if (!memcmp(&route.prefix, prefix, sizeof(*prefix)))
			return i;
	}
	return -1;
}

void churn_reset(struct model *model, uint16_t vrf)
{
	model->n = 0;
	model->vrf = vrf;
	for (size_t i = 0; i < ARRAY_LEN(builtin_text); i++) {
		struct fib_route route = builtin_route(i, vrf);
		model_set(model, &route);
	}
}

const uint16_t churn_vrf[CHURN_VRFS] = {0, 1, 4095};

struct fib *churn_fib(struct model model[CHURN_VRFS])
{
	struct fib *fib = fib_create(NULL);

	for (unsigned i = 0; i < CHURN_VRFS; i++) {
		if (churn_vrf[i])
			assert_int_equal(fib_vrf_open(fib, churn_vrf[i], NULL), 0);
		churn_reset(&model[i], churn_vrf[i]);
	}
	return fib;
}

struct fib_hop churn_hop(void)
{
	struct fib_hop hop = {.iface = model_random(3), .kind = FIB_PEER};

	if (model_random(2))
		hop = (struct fib_hop){.via = {.bytes = {10, 9, 9, model_random(40)}, .family = 4},
			.iface = 1,
			.kind = FIB_VIA};
	return hop;
}

static void take_id(struct fib *fib, struct fib_hop hop)
{
	assert_int_not_equal(change_acquire_hop(fib, &hop), 0);
}

void churn_take_narrow_ids(struct fib *fib)
{
	struct fib_hop hop = {.via = {.bytes = {10, 9, 9}, .family = 4}, .iface = 1};

	take_id(fib, (struct fib_hop){.iface = 1, .kind = FIB_PEER});
	for (hop.via.bytes[3] = 0; hop.via.bytes[3] < 40; hop.via.bytes[3] += 3)
		take_id(fib, hop);
	hop.via.bytes[0] = 12;
	for (uint32_t i = 0; fib->hops.max_id < HOP_WIDE - 1; i++) {
		memcpy(hop.via.bytes + 1, &i, 3);
		take_id(fib, hop);
	}
}

// One IPv4 lookup: the address alone, last in a full burst of others, and in two bursts.
static void lookup4_agrees(lookup4_fn *lookup, const struct fib_view *view, uint32_t addr,
	uint32_t hop)
{
	static uint32_t dst[2 * 64];
	static unsigned at;
	uint32_t other[2 * 64];

	at = (at + 1) % ARRAY_LEN(dst);
	dst[at] = addr;
	const unsigned count[] = {at + 1, 64, ARRAY_LEN(dst)};

	for (unsigned i = 0; i < ARRAY_LEN(count); i++) {
		if (count[i] <= at)
			continue;
		lookup(view, dst, other, count[i]);
		assert_int_equal(other[at], hop);
	}
}

// The same with a pipelined lookup: the address last, and in a full burst.
static void parts_agree(lookup4_begin_fn *begin, const struct fib_view *view, uint32_t addr,
	uint32_t hop)
{
	static uint32_t dst[FIB_BURST4];
	static unsigned at;
	uint32_t other[FIB_BURST4];

	at = (at + 1) % ARRAY_LEN(dst);
	dst[at] = addr;
	for (unsigned n = at + 1; n <= FIB_BURST4; n += FIB_BURST4 - n ? FIB_BURST4 - n : 1) {
		memset(other, 0xff, sizeof(other));
		struct fib_lookup4_state lookup = {.n = n};
		begin(view, dst, other, &lookup);
		fib_lookup4_continue(view, other, &lookup);
		fib_lookup4_end(view, dst, other, &lookup);
		assert_int_equal(other[at], hop);
	}
}

// The address between others in the main VRF, which is looked up at the same time.
static void mixed_agrees(const struct lookups *lookups, const struct fib *fib,
	const struct rib_prefix *host, uint32_t hop)
{
	static uint32_t dst4[64];
	static struct fib_key6 dst6[64];
	static unsigned at;
	uint16_t vrf[64];
	uint32_t other[64];

	at = (at + 1) % ARRAY_LEN(vrf);
	dst4[at] = host->key.high >> 32;
	dst6[at] = host->key;
	for (unsigned i = 0; i < ARRAY_LEN(vrf); i++)
		vrf[i] = (i ^ at) & 1 ? 0 : rib_tree_vrf(host->tree);
	for (unsigned n = at + 1; n <= ARRAY_LEN(vrf); n += 64 - n ? 64 - n : 1) {
		if (rib_tree_is4(host->tree))
			lookups->mixed4(&fib->view, vrf, dst4, other, n);
		else
			lookups->mixed6(&fib->view, vrf, dst6, other, n);
		assert_int_equal(other[at], hop);
	}
}

// All variants.
static void variants_agree(const struct fib *fib, uint16_t vrf, const struct wire_addr *addr,
	uint32_t hop)
{
	static struct fib_key6 dst[64];
	static unsigned at;
	struct wire_prefix whole = {.addr = *addr, .len = addr->family == 4 ? 32 : 128};
	const struct fib_view *view = vrf_view_of(fib, vrf);
	uint32_t dst4 = rib_prefix_of(&whole).key.high >> 32;
	uint32_t other[64];
	unsigned n_variants;
	const struct lookups *variants = lookup_variants(&n_variants);

	at = (at + 1) % 64;
	dst[at] = rib_prefix_of(&whole).key;
	for (unsigned i = 0; i < n_variants; i++) {
		const struct rib_prefix host = rib_prefix_in(vrf, &whole);

		mixed_agrees(&variants[i], fib, &host, hop);
		for (unsigned n = 1 + at; n <= 64; n += 63 - at ? 63 - at : 1) {
			variants[i].six(view, dst, other, n);
			assert_true(addr->family == 4 || other[at] == hop);
		}
		if (addr->family == 6)
			continue;
		lookup4_agrees(vrf ? variants[i].vrf4 : variants[i].near4, view, dst4, hop);
		lookup4_agrees(vrf ? variants[i].vrf4 : variants[i].far4, view, dst4, hop);
		parts_agree(vrf ? variants[i].vrf_begin4 : variants[i].begin4, view, dst4, hop);
	}
}

static void check_addr(const struct fib *fib, const struct model *model,
	const struct wire_addr *addr)
{
	int best = model_longest(model, addr);
	uint32_t hop = fib_lookup(fib, model->vrf, addr);
	struct fib_answer answer;
	struct fib_hop_info info;

	variants_agree(fib, model->vrf, addr, hop);
	rib_lookup(fib, model->vrf, addr, &answer);
	assert_int_equal(answer.found, best >= 0);
	assert_int_equal(answer.hop_id, hop);
	if (best < 0) {
		assert_int_equal(hop, 0);
		return;
	}
	assert_memory_equal(&answer.route, &model->route[best], sizeof(answer.route));
	assert_true(fib_hop_info(fib, hop, &info));
	assert_memory_equal(&info.hop, &model->route[best].hop, sizeof(info.hop));
}

void churn_check_edges(const struct fib *fib, const struct model *model,
	const struct wire_prefix *prefix)
{
	const model_bits unit = prefix->addr.family == 4 ? (model_bits)1 << 96 : 1;
	const model_bits first = model_number(&prefix->addr), last = model_last(prefix);
	const model_bits edge[] = {first - unit, first, first + unit, last - unit, last,
		last + unit};

	for (size_t i = 0; i < ARRAY_LEN(edge); i++) {
		struct wire_addr addr = model_addr(prefix->addr.family, edge[i]);
		check_addr(fib, model, &addr);
	}
}

void churn_check_some(const struct fib *fib, const struct model *model, uint8_t family, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct wire_addr addr = model_random_addr(family);
		check_addr(fib, model, &addr);
		const struct fib_route *route = &model->route[model_random(model->n)];
		if (route->prefix.addr.family == family)
			churn_check_edges(fib, model, &route->prefix);
	}
}

void churn_check_all(const struct fib *fib, const struct model *model)
{
	for (size_t i = 0; i < model->n; i++)
		churn_check_edges(fib, model, &model->route[i].prefix);
}

// Changes the model, and returns the result that the table must return.
int churn_apply(struct model *model, const struct fib_change *change)
{
	const struct wire_prefix *prefix = &change->route.prefix;
	int at = model_find(model, prefix), builtin = churn_builtin(prefix);
	bool is_builtin =
		builtin >= 0 && at >= 0 && model->route[at].hop.kind == builtin_kind[builtin];
	bool exists = at >= 0 && !is_builtin;

	if (change->op == FIB_ADD && exists)
		return -EEXIST;
	if (change->op == FIB_DELETE && !exists)
		return -ENOENT;
	if (change->op != FIB_DELETE) {
		model_set(model, &change->route);
	} else if (builtin >= 0) {
		struct fib_route route = builtin_route(builtin, model->vrf);
		model_set(model, &route);
	} else {
		model_delete(model, prefix);
	}
	return 0;
}

struct fib_change churn_change(const struct model *model, uint8_t family, size_t wanted)
{
	struct fib_change change = {.op = model_random(3),
		.route = {.vrf = model->vrf,
			.prefix = model_random_prefix(family),
			.hop = churn_hop()}};

	if (model_random(2) || model->n > wanted + model_random(wanted))
		change.route.prefix = model->route[model_random(model->n)].prefix;
	if (model->n > wanted)
		change.op = FIB_DELETE;
	if (!model_random(100))
		change.route.prefix =
			builtin_route(model_random(ARRAY_LEN(builtin_text)), 0).prefix;
	return change;
}

static uint32_t held(const struct blocks *blocks)
{
	return blocks->kept + blocks->top - blocks->origin - blocks->n_free;
}

struct churn_used churn_used(const struct fib *fib)
{
	return (struct churn_used){held(&fib->rib.nodes), held(&fib->publish4.leaf),
		held(&fib->publish4.tail), held(&fib->publish6.wide), held(&fib->publish6.leaf),
		held(&fib->publish6.line)};
}

void churn_expect_used(const struct fib *fib, struct churn_used wanted)
{
	struct churn_used found = churn_used(fib);

	assert_memory_equal(&found, &wanted, sizeof(found));
}
