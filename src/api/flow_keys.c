// Keys of flows as JSON. Control thread.
#include "api/flows.h"

#include "base/bits.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

static const struct {
	const char *word;
	uint8_t number;
} protocols[] = {
	{"icmp", IPPROTO_ICMP},
	{"tcp", IPPROTO_TCP},
	{"udp", IPPROTO_UDP},
	{"dccp", IPPROTO_DCCP},
	{"gre", IPPROTO_GRE},
	{"esp", IPPROTO_ESP},
	{"icmpv6", IPPROTO_ICMPV6},
	{"sctp", IPPROTO_SCTP},
	{"udplite", IPPROTO_UDPLITE},
};

const char *flow_protocol_word(uint8_t protocol)
{
	for (size_t i = 0; i < ARRAY_LEN(protocols); i++)
		if (protocols[i].number == protocol)
			return protocols[i].word;
	return NULL;
}

static int read_protocol(const json_t *json, uint8_t *out, struct error *error)
{
	const char *word = json_string_value(json);

	for (size_t i = 0; word && i < ARRAY_LEN(protocols); i++)
		if (!strcmp(protocols[i].word, word)) {
			*out = protocols[i].number;
			return 0;
		}
	if (!json_is_integer(json) || json_integer_value(json) < 0 ||
		json_integer_value(json) > UINT8_MAX)
		return error_set(error, -EINVAL,
			"parameter \"protocol\": expected a number from 0 to 255, or tcp, udp, "
			"icmp, icmpv6, sctp, dccp, udplite, gre, esp");
	*out = json_integer_value(json);
	return 0;
}

static int read_address(const char *name, const char *text, struct wire_addr *out,
	struct error *error)
{
	return !wire_addr_parse(text, out) ? 0
	                                   : error_set(error, -EINVAL,
						     "parameter \"%s\": invalid address \"%.60s\": "
						     "expected an IPv4 or IPv6 address",
						     name, text);
}

void flow_key_rows(struct flow_key_params *params, struct rpc_param rows[FLOW_KEY_ROWS])
{
	const struct rpc_param all[FLOW_KEY_ROWS] = {
		{"src", RPC_TEXT, true, 0, 0, &params->src},
		{"dst", RPC_TEXT, true, 0, 0, &params->dst},
		{"protocol", RPC_ANY, true, 0, 0, &params->protocol},
		{"src_port", RPC_NUMBER, false, 0, UINT16_MAX, &params->src_port},
		{"dst_port", RPC_NUMBER, false, 0, UINT16_MAX, &params->dst_port},
		{"vrf", RPC_TEXT, false, 0, 0, &params->vrf},
	};

	*params = (struct flow_key_params){.src = NULL};
	memcpy(rows, all, sizeof(all));
}

int flow_key_read(const struct api_ctx *ctx, const struct flow_key_params *params,
	struct flow_key *out, struct error *error)
{
	struct flow_tuple tuple = {.src_port = params->src_port, .dst_port = params->dst_port};
	int err = read_address("src", params->src, &tuple.src, error);

	if (!err)
		err = read_address("dst", params->dst, &tuple.dst, error);
	if (!err)
		err = read_protocol(params->protocol, &tuple.proto, error);
	if (!err)
		err = vrf_find(ctx, params->vrf, &tuple.vrf, error);
	return err ? err : flow_key_set(out, &tuple, error);
}

void flow_set_key(json_t *json, const struct flow_key *key, const char *vrf)
{
	struct flow_tuple tuple;

	flow_key_tuple(key, &tuple);
	const char *word = flow_protocol_word(tuple.proto);
	json_object_set_new(json, "src", addr_json(&tuple.src));
	json_object_set_new(json, "dst", addr_json(&tuple.dst));
	json_object_set_new(json, "protocol", word ? json_string(word) : json_integer(tuple.proto));
	json_object_set_new(json, "src_port", json_integer(tuple.src_port));
	json_object_set_new(json, "dst_port", json_integer(tuple.dst_port));
	json_object_set_new(json, "vrf", rpc_text_json(vrf));
}

static uint16_t vrf_of(const struct flow_key *key)
{
	struct flow_tuple tuple;

	flow_key_tuple(key, &tuple);
	return tuple.vrf;
}

json_t *flow_info_json(const struct api_ctx *ctx, const struct flow_info *info)
{
	const struct flows *flows = ctx->flows;
	json_t *json = json_object();

	flow_set_key(json, &info->key, vrf_word(ctx, vrf_of(&info->key)));
	json_object_set_new(json, "action", flow_action_json(ctx, info->action));
	if (info->life == FLOW_FIXED_END)
		json_object_set_new(json, "ends_s", json_real(info->left_ms / 1e3));
	else if (info->life != FLOW_ENDLESS)
		json_object_set_new(json, "idle_s", number_json(flows->timeout_s[info->life - 1]));
	json_object_set_new(json, "idle_for_s", json_real(info->idle_ms / 1e3));
	json_object_set_new(json, "packets", number_json(info->packets));
	json_object_set_new(json, "bytes", number_json(info->bytes));
	return json;
}

const char *flow_refusal_text(int result)
{
	switch (result) {
	case -EEXIST:
		return "the flow exists already; use \"replace\" (dl3 flow change)";
	case -ENOENT:
		return "there is no such flow";
	case -ENOSPC:
		return "the table is full";
	case -ENOMEM:
		return "there is not enough memory for its counters";
	case -E2BIG:
		return "too many flows have 549,755,813,888 packets or more";
	default:
		return "its values are out of range";
	}
}
