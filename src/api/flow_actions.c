// Actions of flows: as JSON, as records of a file, and as numbers of the table. Control thread.
#include "api/flows.h"

#include "base/bits.h"

#include <assert.h>
#include <errno.h>
#include <rte_byteorder.h>
#include <string.h>

static const char *const effects[N_FLOW_EFFECTS] = {
	[FLOW_BY_ROUTE] = "route",
	[FLOW_TO_HOP] = "via",
	[FLOW_DROP] = "drop",
	[FLOW_PUNT] = "punt",
};

// A record of a file. Records of VRFs follow those of actions.
enum { EFFECT_OF_VRF = 0x80, MAX_EFFECT = FLOW_PUNT };
struct record {
	uint8_t effect; // enum flow_effect, or EFFECT_OF_VRF
	uint8_t dscp;
	uint8_t family; // of via: 4, 6, or 0: the peer of the interface
	uint8_t zero;
	uint32_t subscriber_le; // of a VRF: its number in this file
	uint8_t via[16];
	char dev[16]; // of a VRF: its name
	char mirror[16];
	uint8_t reserved[8];
};
static_assert(sizeof(struct record) == FLOW_RECORD_BYTES, "");
static_assert(IF_NAMESIZE == 16, "names of interfaces fit");

const char *flow_effect_word(unsigned effect)
{
	return effect < N_FLOW_EFFECTS ? effects[effect] : NULL;
}

// An action as text, whatever it comes from; "" and family 0: not given.
struct words {
	const char *dev, *mirror;
	struct wire_addr via;
	uint8_t effect;
	long dscp, subscriber;
};

static int find_iface(const struct api_ctx *ctx, struct flow_names **names, const char *what,
	const char *name, struct error *error)
{
	if (!*names)
		*names = flow_names_make(ctx, error);
	if (!*names)
		return -ENOMEM;
	int iface = flow_names_find(*names, name);
	return iface >= 0 ? iface
	                  : error_set(error, -EINVAL,
				    "%s: unknown interface \"%.60s\"; 'dl3 show %s' lists them",
				    what, name, ctx->netlink ? "mirror" : "ports");
}

// Neighbours are hosts, and not the router itself.
static int check_via(const struct api_ctx *ctx, unsigned iface, const struct wire_addr *via,
	struct error *error)
{
	const struct iface *out = fib_iface(ctx->fib, iface);
	struct fib_answer answer;
	char text[WIRE_ADDR_TEXT];

	rib_lookup(ctx->fib, out ? out->vrf : 0, via, &answer);
	if (!answer.found)
		return 0;
	switch (answer.route.hop.kind) {
	case FIB_LOCAL:
		return error_set(error, -EINVAL,
			"via: %s is an address of the router itself; expected that of a neighbour",
			wire_addr_print(via, text));
	case FIB_MARTIAN:
	case FIB_MULTICAST:
		return error_set(error, -EINVAL, "via: %s cannot be the address of a neighbour",
			wire_addr_print(via, text));
	}
	return 0;
}

static int set_hop_of(const struct api_ctx *ctx, const struct words *words,
	struct flow_names **names, struct fib_hop *out, struct error *error)
{
	int iface = find_iface(ctx, names, "dev", words->dev, error);
	if (iface < 0)
		return iface;
	const struct iface *settings = fib_iface(ctx->fib, iface);
	*out = (struct fib_hop){.via = words->via,
		.kind = words->via.family ? FIB_VIA : FIB_PEER,
		.iface = iface};
	if (words->via.family)
		return check_via(ctx, iface, &words->via, error);
	if (settings && settings->has_peer)
		return 0;
	return error_set(error, -EINVAL,
		"missing \"via\": interface %s has no peer; expected the address of a neighbour",
		words->dev);
}

// What has no effect is refused; and a next hop without an interface.
static int check_words(const struct words *words, struct error *error)
{
	const bool forwards = words->effect == FLOW_BY_ROUTE || words->effect == FLOW_TO_HOP;

	if (words->effect != FLOW_TO_HOP && (words->dev[0] || words->via.family))
		return error_set(error, -EINVAL,
			"\"via\" and \"dev\" are for \"do\": \"via\", not \"%s\"",
			effects[words->effect]);
	if (!forwards && (words->dscp != FLOW_KEEP_DSCP || words->mirror[0]))
		return error_set(error, -EINVAL,
			"\"dscp\" and \"mirror\" are for packets that are forwarded; \"do\" is "
			"\"%s\"",
			effects[words->effect]);
	if (words->effect == FLOW_TO_HOP && !words->dev[0])
		return error_set(error, -EINVAL,
			"missing \"dev\": expected the interface of the next hop");
	return 0;
}

static int read_words(const struct api_ctx *ctx, const struct words *words,
	struct flow_names **names, struct flow_spec *out, struct error *error)
{
	int err = check_words(words, error);

	if (err)
		return err;
	*out = (struct flow_spec){.action = {.subscriber = words->subscriber,
					  .mirror = FLOW_NO_MIRROR,
					  .effect = words->effect,
					  .dscp = words->dscp}};
	if (words->effect == FLOW_TO_HOP)
		err = set_hop_of(ctx, words, names, &out->hop, error);
	if (err || !words->mirror[0])
		return err;
	int mirror = find_iface(ctx, names, "mirror", words->mirror, error);
	if (mirror < 0)
		return mirror;
	out->action.mirror = mirror;
	return 0;
}

static int find_effect(const char *word)
{
	for (unsigned effect = 0; effect < N_FLOW_EFFECTS; effect++)
		if (!strcmp(effects[effect], word))
			return effect;
	return -1;
}

int flow_spec_read(const struct api_ctx *ctx, const json_t *json, struct flow_names **names,
	struct flow_spec *out, struct error *error)
{
	struct words words = {.dev = "", .mirror = "", .dscp = FLOW_KEEP_DSCP};
	const char *effect_word = NULL, *via = NULL;
	const struct rpc_param rows[] = {
		{"do", RPC_TEXT, true, 0, 0, &effect_word},
		{"via", RPC_TEXT, false, 0, 0, &via},
		{"dev", RPC_TEXT, false, 0, 0, &words.dev},
		{"dscp", RPC_NUMBER, false, 0, FLOW_KEEP_DSCP - 1, &words.dscp},
		{"mirror", RPC_TEXT, false, 0, 0, &words.mirror},
		{"subscriber", RPC_NUMBER, false, 0, UINT32_MAX, &words.subscriber},
	};

	if (!json_is_object(json))
		return error_set(error, -EINVAL, "expected an object, {\"do\": ...}");
	int err = rpc_params_read(json, rows, ARRAY_LEN(rows), error);
	if (err)
		return err;
	int effect = find_effect(effect_word);
	if (effect < 0)
		return error_set(error, -EINVAL,
			"\"do\" is \"%.60s\"; expected route, via, drop or punt", effect_word);
	words.effect = effect;
	if (via && wire_addr_parse(via, &words.via))
		return error_set(error, -EINVAL,
			"via: invalid address \"%.60s\": expected an IPv4 or IPv6 address", via);
	return read_words(ctx, &words, names, out, error);
}

static bool is_zero(const void *from, size_t n)
{
	uint8_t any = 0;

	for (size_t i = 0; i < n; i++)
		any |= ((const uint8_t *)from)[i];
	return !any;
}

// A name, or "", with zeros up to its end.
static bool is_padded(const char name[16])
{
	const size_t n = strnlen(name, 16);

	return n < 16 && is_zero(name + n, 16 - n);
}

static int check_bytes(const struct record *record, struct error *error)
{
	const unsigned n_via = record->family == 4 ? 4 : record->family == 6 ? 16 : 0;

	if (record->effect > MAX_EFFECT)
		return error_set(error, -EINVAL, "unknown action 0x%02x", record->effect);
	if (record->dscp > FLOW_KEEP_DSCP)
		return error_set(error, -EINVAL, "DSCP %u: expected 0 to 63, or 64 to keep it",
			record->dscp);
	if (record->family && !n_via)
		return error_set(error, -EINVAL, "family %u of the next hop: expected 0, 4 or 6",
			record->family);
	if (!is_zero(record->via + n_via, sizeof(record->via) - n_via) || record->zero ||
		!is_zero(record->reserved, sizeof(record->reserved)))
		return error_set(error, -EINVAL, "bytes that are not used are not 0");
	if (!is_padded(record->dev) || !is_padded(record->mirror))
		return error_set(error, -EINVAL,
			"the name of an interface is not 1 to 15 characters followed by zeros");
	return 0;
}

static struct words words_of(const struct record *record)
{
	struct words words = {.dev = record->dev,
		.mirror = record->mirror,
		.via.family = record->family,
		.effect = record->effect,
		.dscp = record->dscp,
		.subscriber = rte_le_to_cpu_32(record->subscriber_le)};

	memcpy(words.via.bytes, record->via, sizeof(words.via.bytes));
	return words;
}

int flow_record_check(const uint8_t bytes[FLOW_RECORD_BYTES], struct error *error)
{
	struct record record;

	memcpy(&record, bytes, sizeof(record));
	int err = check_bytes(&record, error);
	if (err)
		return err;
	const struct words words = words_of(&record);
	return check_words(&words, error);
}

int flow_spec_from_record(const struct api_ctx *ctx, const uint8_t bytes[FLOW_RECORD_BYTES],
	struct flow_names **names, struct flow_spec *out, struct error *error)
{
	struct record record;

	memcpy(&record, bytes, sizeof(record));
	const struct words words = words_of(&record);
	return read_words(ctx, &words, names, out, error);
}

bool flow_vrf_from_record(const uint8_t bytes[FLOW_RECORD_BYTES], uint16_t *vrf, char *name)
{
	struct record record;

	memcpy(&record, bytes, sizeof(record));
	const uint32_t number = rte_le_to_cpu_32(record.subscriber_le);
	if (record.effect != EFFECT_OF_VRF || !number || number >= FIB_MAX_VRFS ||
		!is_padded(record.dev) || !is_zero(record.via, sizeof(record.via)) || record.dscp ||
		record.family || record.zero ||
		!is_zero(record.mirror, sizeof(record.mirror) + sizeof(record.reserved)))
		return false;
	*vrf = number;
	memcpy(name, record.dev, sizeof(record.dev));
	return true;
}

// Names that come from Linux are never longer.
static void copy_name(char to[IF_NAMESIZE], const char *name)
{
	memset(to, 0, IF_NAMESIZE);
	memcpy(to, name, strnlen(name, IF_NAMESIZE - 1));
}

// Now, or when it was last known.
static const char *name_of(const struct api_ctx *ctx, unsigned iface)
{
	const char *now =
		iface < IFACE_MAX && fib_iface(ctx->fib, iface) ? iface_word(ctx, iface) : NULL;

	if (iface >= IFACE_MAX)
		return "";
	return now && strlen(now) < IF_NAMESIZE ? now : ctx->flows->iface[iface].name;
}

// An action has the interface, / it does not any more.
static void use_iface(struct api_ctx *ctx, unsigned iface)
{
	if (iface >= IFACE_MAX)
		return;
	struct flow_iface *used = &ctx->flows->iface[iface];
	const char *name = name_of(ctx, iface);
	used->n_actions++;
	if (name != used->name)
		copy_name(used->name, name);
}

static void unuse_iface(struct api_ctx *ctx, unsigned iface)
{
	if (iface < IFACE_MAX && !--ctx->flows->iface[iface].n_actions)
		memset(ctx->flows->iface[iface].name, 0, IF_NAMESIZE);
}

// A hop is held once for each action that has it.
int flow_spec_use(struct api_ctx *ctx, const struct flow_spec *spec, uint32_t *number,
	struct error *error)
{
	struct flow_table *table = ctx->flows->table;
	struct flow_action action = spec->action;
	int err = 0;

	if (action.effect == FLOW_TO_HOP)
		err = fib_hold(ctx->fib, &spec->hop, &action.held, error);
	if (err)
		return err;
	const bool is_known = flow_action_find(table, &action);
	err = flow_action_use(table, &action, number, error);
	if (action.held && (err || is_known))
		fib_release(ctx->fib, action.held);
	if (err || is_known)
		return err;
	if (action.held)
		use_iface(ctx, spec->hop.iface);
	use_iface(ctx, action.mirror);
	return 0;
}

void flow_actions_freed(void *ctx_, const struct flow_action *action)
{
	struct api_ctx *ctx = ctx_;
	struct fib_hop hop;

	unuse_iface(ctx, action->mirror);
	if (!action->held)
		return;
	if (fib_held_hop(ctx->fib, action->held, &hop))
		unuse_iface(ctx, hop.iface);
	fib_release(ctx->fib, action->held);
}

json_t *flow_action_json(const struct api_ctx *ctx, uint32_t number)
{
	const struct flow_action *action = flow_action_of(ctx->flows->table, number);
	struct fib_hop hop;

	if (!action)
		return json_null();
	json_t *json = json_pack("{s:s}", "do", effects[action->effect]);
	if (action->held && fib_held_hop(ctx->fib, action->held, &hop)) {
		if (hop.kind == FIB_VIA)
			json_object_set_new(json, "via", addr_json(&hop.via));
		json_object_set_new(json, "dev", rpc_text_json(name_of(ctx, hop.iface)));
	}
	if (action->dscp != FLOW_KEEP_DSCP)
		json_object_set_new(json, "dscp", json_integer(action->dscp));
	if (action->mirror != FLOW_NO_MIRROR)
		json_object_set_new(json, "mirror", rpc_text_json(name_of(ctx, action->mirror)));
	if (action->subscriber)
		json_object_set_new(json, "subscriber", number_json(action->subscriber));
	return json;
}

void flow_actions_describe(void *ctx_, uint32_t number, uint8_t bytes[FLOW_RECORD_BYTES])
{
	const struct api_ctx *ctx = ctx_;
	const struct flow_action *action = flow_action_of(ctx->flows->table, number);
	// Where a learnt flow leads, routes tell again when the file is loaded.
	const uint8_t effect = action->learnt ? FLOW_BY_ROUTE : action->effect;
	struct record record = {.effect = effect,
		.dscp = action->dscp,
		.subscriber_le = rte_cpu_to_le_32(action->subscriber)};
	struct fib_hop hop;

	if (effect == FLOW_TO_HOP && fib_held_hop(ctx->fib, action->held, &hop)) {
		record.family = hop.via.family;
		memcpy(record.via, hop.via.bytes, sizeof(record.via));
		copy_name(record.dev, name_of(ctx, hop.iface));
	}
	copy_name(record.mirror, name_of(ctx, action->mirror));
	memcpy(bytes, &record, sizeof(record));
}

void flow_vrf_describe(void *ctx_, uint16_t vrf, uint8_t bytes[FLOW_RECORD_BYTES])
{
	const struct api_ctx *ctx = ctx_;
	const char *name = vrf_word(ctx, vrf);
	struct record record = {.effect = EFFECT_OF_VRF, .subscriber_le = rte_cpu_to_le_32(vrf)};

	copy_name(record.dev, name ? name : "");
	memcpy(bytes, &record, sizeof(record));
}
