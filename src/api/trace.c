// The method trace: what the steps of the datapath would do with a packet, in words. Control
// thread.
#include "api/acl.h"
#include "api/flows.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MEMBERS = 64 };

static struct wire_addr address_of(bool is_ip6, uint32_t dst4, const struct fib_key6 *dst6)
{
	struct wire_addr addr = {.family = is_ip6 ? 6 : 4};
	const uint64_t words_be[] = {htobe64(dst6->high), htobe64(dst6->low)};
	const uint32_t word_be = htobe32(dst4);

	if (is_ip6)
		memcpy(addr.bytes, words_be, sizeof(words_be));
	else
		memcpy(addr.bytes, &word_be, sizeof(word_be));
	return addr;
}

static json_t *steps_json(const struct trace *t)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < t->n_steps; i++)
		json_array_append_new(list, json_string(datapath_step_name(t->step[i])));
	return list;
}

static json_t *bridge_json(const struct api_ctx *ctx, const struct trace *t)
{
	if (t->bridge == TRACE_NOT_BRIDGED)
		return json_null();
	return json_pack("{s:o}", "to",
		rpc_text_json(t->bridge == TRACE_KNOWN ? port_word(ctx, t->bridge_port) : NULL));
}

static json_t *flow_json(const struct api_ctx *ctx, const struct trace *t)
{
	if (!ctx->flows || t->flow == FLOW_NONE)
		return json_null();
	return json_pack("{s:o, s:b, s:o}", "number", number_json(t->flow), "gives_hop",
		t->flow_gives_hop, "action", flow_action_json(ctx, t->action));
}

// The longest prefix; null if the packet was not looked up.
static json_t *route_json(const struct api_ctx *ctx, const struct trace *t)
{
	const struct wire_addr addr = address_of(t->is_ip6, t->dst4, &t->dst6);
	struct fib_answer answer;

	if (!t->has_hop || t->flow_gives_hop)
		return json_null();
	rib_lookup(ctx->fib, t->vrf, &addr, &answer);
	return json_pack("{s:o, s:o, s:b}", "prefix",
		answer.found ? prefix_json(&answer.route.prefix) : json_null(), "kind",
		answer.found ? rpc_text_json(kind_word(answer.route.hop.kind)) : json_null(),
		"workers_agree", answer.hop_id == t->first_hop);
}

// Of the packet that carried the traced one.
static json_t *outer_json(const struct api_ctx *ctx, const struct trace *t)
{
	const struct trace_outer *o = &t->outer;
	const struct wire_addr addr = address_of(o->is_ip6, o->dst4, &o->dst6);
	const struct iface *in = fib_iface(ctx->fib, o->iif);
	struct fib_answer answer;

	if (!t->was_in_tunnel)
		return json_null();
	rib_lookup(ctx->fib, o->vrf, &addr, &answer);
	return json_pack("{s:i, s:o, s:o, s:o, s:i, s:o}", "family", o->is_ip6 ? 6 : 4, "interface",
		rpc_text_json(iface_word(ctx, o->iif)), "vrf", rpc_text_json(vrf_word(ctx, o->vrf)),
		"vlans", in ? tags_json(in) : json_array(), "ttl", (int)o->ttl, "prefix",
		answer.found ? prefix_json(&answer.route.prefix) : json_null());
}

// The ends of the tunnel that a next hop leads into; null: into none.
static json_t *ends_of_tunnel(const struct iface *iface)
{
	if (!iface || !iface_is_tunnel(iface))
		return json_null();
	return json_pack("{s:o, s:o}", "local", addr_json(&iface->tunnel.local), "remote",
		addr_json(&iface->tunnel.remote));
}

static int count_members(const struct api_ctx *ctx, uint32_t id)
{
	struct fib_member members[MAX_MEMBERS];
	struct fib_hop_info info;

	if (!fib_hop_info(ctx->fib, id, &info) || info.hop.kind != FIB_GROUP)
		return 0;
	return fib_group_members(ctx->fib, &info.hop, members, MAX_MEMBERS);
}

// The next hop, of a group the member that this packet takes.
static json_t *hop_json(const struct api_ctx *ctx, const struct trace *t)
{
	struct fib_hop_info info;

	if (!t->has_hop || !fib_hop_info(ctx->fib, t->hop, &info))
		return json_null();
	const struct iface *iface =
		info.hop.iface < IFACE_MAX ? fib_iface(ctx->fib, info.hop.iface) : NULL;
	const bool is_tunnel = iface && iface_is_tunnel(iface);
	const bool has_mac =
		info.verdict == VERDICT_FORWARD && info.hop.kind != FIB_GROUP && !is_tunnel;
	const uint16_t mtu = is_tunnel ? info.mtu : iface ? iface_mtu(iface, t->is_ip6 ? 6 : 4) : 0;
	json_t *json = json_pack("{s:o, s:i, s:o, s:o, s:o, s:o, s:o}", "id", number_json(t->hop),
		"members", count_members(ctx, t->first_hop), "mac",
		has_mac ? mac_json(&info.mac) : json_null(), "source_mac",
		has_mac && iface ? mac_json(&iface->mac) : json_null(), "mtu",
		iface ? number_json(mtu) : json_null(), "vlans",
		sent_tags_json(ctx, &info.hop, &info.mac), "tunnel", ends_of_tunnel(iface));

	set_hop(json, ctx, &info.hop);
	return json;
}

static json_t *rule_json(const struct api_ctx *ctx, const struct trace_rule *r)
{
	const struct acl_source *source =
		acl_source_of(r->is_tc ? ctx->filters : ctx->acls, r->list);
	const struct acl_rule *rule =
		source && r->rule && r->rule <= source->n ? &source->rule[r->rule - 1] : NULL;
	const bool is_denied = source && source->denies_rest && !r->is_local;
	const char *police = !rule || !rule->police.rate ? NULL : r->is_red ? "red" : "tokens";
	char text[ACL_RULE_TEXT];

	return json_pack("{s:s?, s:s, s:s, s:b, s:i, s:s?, s:s?, s:s, s:s?, s:s}", "list",
		source ? source->name : NULL, "source", r->is_tc ? "tc" : "acl", "direction",
		r->direction == ACL_IN ? "in" : "out", "local", r->is_local, "number", (int)r->rule,
		"name", rule && rule->name[0] ? rule->name : NULL, "rule",
		rule ? acl_rule_print(rule, text) : NULL, "do",
		rule        ? acl_effect_word(rule->effect)
		: is_denied ? "deny"
			    : "permit",
		"police", police, "step", datapath_step_name(r->step));
}

static json_t *rules_json(const struct api_ctx *ctx, const struct trace *t)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < t->n_rules; i++)
		json_array_append_new(list, rule_json(ctx, &t->rule[i]));
	return list;
}

// The index of the frame in the list, to which it is added if it is not there.
static int frame_index(json_t *frames, const struct trace *t, unsigned end, int index[])
{
	const struct trace_end *one = &t->end[end];

	for (unsigned i = 0; i < end; i++)
		if (t->end[i].n_bytes == one->n_bytes &&
			!memcmp(t->end[i].bytes, one->bytes, one->n_bytes))
			return index[end] = index[i];
	index[end] = json_array_size(frames);
	json_array_append_new(frames, hex_json(one->bytes, one->n_bytes));
	return index[end];
}

// Frames that are the same, as those of a flood, are told once.
static void set_ends(json_t *json, const struct api_ctx *ctx, const struct trace *t)
{
	static const char *const words[] =
		{[TRACE_SENT] = "send", [TRACE_PUNTED] = "punt", [TRACE_DROPPED] = "drop"};
	json_t *list = json_array(), *frames = json_array();
	int index[TRACE_ENDS];

	for (unsigned i = 0; i < t->n_ends; i++) {
		const struct trace_end *end = &t->end[i];
		const int frame = frame_index(frames, t, i, index);

		json_array_append_new(list,
			json_pack("{s:s, s:s?, s:s, s:s, s:s?, s:s, s:i}", "do", words[end->kind],
				"port", port_word(ctx, end->port), "step",
				datapath_step_name(end->step), "verdict",
				verdict_name(end->verdict), "class", class_word(end->class), "text",
				verdict_text(end->verdict), "frame", frame));
	}
	json_object_set_new(json, "ends", list);
	json_object_set_new(json, "frames", frames);
}

// Of a valid IP packet, what was found about it; else nulls.
static void set_packet(json_t *json, const struct api_ctx *ctx, const struct trace *t)
{
	const bool is_ip = t->is_parsed;
	const struct iface *in = fib_iface(ctx->fib, t->iif);

	json_object_set_new(json, "family", is_ip ? number_json(t->is_ip6 ? 6 : 4) : json_null());
	json_object_set_new(json, "interface",
		is_ip ? rpc_text_json(iface_word(ctx, t->iif)) : json_null());
	json_object_set_new(json, "vrf",
		is_ip ? rpc_text_json(vrf_word(ctx, t->vrf)) : json_null());
	json_object_set_new(json, "vlans", is_ip && in ? tags_json(in) : json_array());
	json_object_set_new(json, "ttl", is_ip ? number_json(t->ttl) : json_null());
	json_object_set_new(json, "for_linux", json_boolean(t->for_linux));
	json_object_set_new(json, "flow", is_ip ? flow_json(ctx, t) : json_null());
	json_object_set_new(json, "route", is_ip ? route_json(ctx, t) : json_null());
	json_object_set_new(json, "next_hop", is_ip ? hop_json(ctx, t) : json_null());
	json_object_set_new(json, "dscp",
		t->dscp != TRACE_KEEP_DSCP ? number_json(t->dscp) : json_null());
	json_object_set_new(json, "mirror",
		t->mirror != IFACE_NONE ? rpc_text_json(iface_word(ctx, t->mirror)) : json_null());
	json_object_set_new(json, "fragmented", json_boolean(t->is_fragmented));
}

static json_t *trace_json(const struct api_ctx *ctx, const struct trace *t, size_t n)
{
	const struct stats_account *a = &t->account;
	json_t *json = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "port",
		rpc_text_json(port_word(ctx, t->port)), "cut_to",
		t->n_received < n ? number_json(t->n_received) : json_null(), "steps",
		steps_json(t), "bridge", bridge_json(ctx, t), "outer", outer_json(ctx, t), "rules",
		rules_json(ctx, t));

	set_packet(json, ctx, t);
	set_ends(json, ctx, t);
	json_object_set_new(json, "account",
		json_pack("{s:I, s:I, s:I, s:I, s:I}", "received", (json_int_t)a->received,
			"copied", (json_int_t)a->copied, "sent", (json_int_t)a->sent, "punted",
			(json_int_t)a->punted, "dropped", (json_int_t)a->dropped));
	return json;
}

json_t *method_trace(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	const char *port_name = NULL, *text = NULL;
	const struct rpc_param rows[] = {
		{"port", RPC_TEXT, true, 0, 0, &port_name},
		{"frame", RPC_TEXT, true, 0, 0, &text},
	};
	uint8_t frame[TRACE_FRAME_MAX];
	json_t *json = NULL;
	int port;

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error) ||
		port_named(ctx, port_name, &port, error))
		return NULL;
	const int n = hex_read(text, frame, TRACE_FRAME_MAX);

	if (n <= 0) {
		error_set(error, -EINVAL,
			"\"frame\": expected the bytes of a frame in hex, 1 to %d of them",
			TRACE_FRAME_MAX);
		return NULL;
	}
	struct trace *trace = malloc(sizeof(*trace));

	if (!trace)
		error_set(error, -ENOMEM, "not enough memory to trace a packet");
	else if (!datapath_trace(ctx->path, port, frame, n, trace, error)) {
		json = trace_json(ctx, trace, n);
		datapath_trace_free(trace);
	}
	free(trace);
	return json;
}
