// The method acl.check: which rule decides about a packet, and why those before it do not.
// Control thread.
#include "api/acl.h"

#include "wire/headers.h"

#include <errno.h>
#include <string.h>

enum { MAX_FRAME = 2048, MAX_REASONS = 20, ANY = -1 };

// The packet as described, by the keys of rules.
struct description {
	const char *list, *iface, *direction, *frame, *src, *dst, *protocol, *fragment;
	long src_port, dst_port, icmp_type, icmp_code, dscp, tcp_flags;
	bool is_local;
};

static int read_description(const json_t *params, struct description *d, struct error *error)
{
	const struct rpc_param rows[] = {
		{"list", RPC_TEXT, false, 0, 0, &d->list},
		{"interface", RPC_TEXT, false, 0, 0, &d->iface},
		{"direction", RPC_TEXT, false, 0, 0, &d->direction},
		{"frame", RPC_TEXT, false, 0, 0, &d->frame},
		{"src", RPC_TEXT, false, 0, 0, &d->src},
		{"dst", RPC_TEXT, false, 0, 0, &d->dst},
		{"protocol", RPC_TEXT, false, 0, 0, &d->protocol},
		{"src_port", RPC_NUMBER, false, 0, 65535, &d->src_port},
		{"dst_port", RPC_NUMBER, false, 0, 65535, &d->dst_port},
		{"icmp_type", RPC_NUMBER, false, 0, 255, &d->icmp_type},
		{"icmp_code", RPC_NUMBER, false, 0, 255, &d->icmp_code},
		{"dscp", RPC_NUMBER, false, 0, 63, &d->dscp},
		{"tcp_flags", RPC_NUMBER, false, 0, 255, &d->tcp_flags},
		{"fragment", RPC_TEXT, false, 0, 0, &d->fragment},
		{"local", RPC_FLAG, false, 0, 0, &d->is_local},
	};

	*d = (struct description){.protocol = "0", .fragment = "none", .icmp_type = ANY};
	return rpc_params_read(params, rows, ARRAY_LEN(rows), error);
}

static int read_frame(const struct description *d, struct acl_packet *packet, struct error *error)
{
	uint8_t bytes[MAX_FRAME];
	const int n = hex_read(d->frame, bytes, MAX_FRAME);

	if (n < 0)
		return error_set(error, n,
			"\"frame\": expected the bytes of a frame in hex, at most %d of them",
			MAX_FRAME);
	int err = acl_packet_read(packet, bytes, n, error);

	packet->is_local = d->is_local;
	return err;
}

// The words of protocols and fragments are those of rules.
static int read_words(const struct description *d, struct acl_packet *packet, struct error *error)
{
	struct acl_rule rule;
	int err;

	acl_rule_start(&rule);
	err = acl_rule_set(&rule, "protocol", d->protocol, error);
	if (!err)
		err = acl_rule_set(&rule, "fragment", d->fragment, error);
	if (!err && (rule.protocol == ACL_ANY_PROTOCOL || rule.fragments & (rule.fragments - 1)))
		err = error_set(error, -EINVAL,
			"a packet has one protocol, and fragment is none, first or later");
	if (err)
		return err;
	packet->proto = rule.protocol;
	packet->fragment = __builtin_ctz(rule.fragments);
	return 0;
}

static int read_packet(const struct description *d, struct acl_packet *packet, struct error *error)
{
	if (d->frame)
		return read_frame(d, packet, error);
	*packet = (struct acl_packet){
		.src_port = d->icmp_type == ANY ? d->src_port : d->icmp_type,
		.dst_port = d->icmp_type == ANY ? d->dst_port : d->icmp_code,
		.dscp = d->dscp,
		.tcp_flags = d->tcp_flags,
		.is_local = d->is_local,
	};
	if (!d->src || !d->dst || wire_addr_parse(d->src, &packet->src) ||
		wire_addr_parse(d->dst, &packet->dst) || packet->src.family != packet->dst.family)
		return error_set(error, -EINVAL,
			"expected \"frame\", or \"src\" and \"dst\", two addresses of one family");
	int err = read_words(d, packet, error);

	if (packet->fragment == WIRE_FRAGMENT_LATER) // it has no transport header
		packet->src_port = packet->dst_port = packet->tcp_flags = 0;
	if (packet->proto != WIRE_PROTO_TCP)
		packet->tcp_flags = 0;
	return err;
}

static const struct acl_source *find_in(const struct acl_set *set, const char *name)
{
	for (size_t i = 0; i < set->n_lists && name; i++)
		if (!strcmp(set->list[i].name, name))
			return &set->list[i];
	return NULL;
}

// The list that an interface uses; NULL: none.
static const char *find_use(const struct acl_set *set, const struct description *d)
{
	const enum acl_direction direction =
		d->direction && !strcmp(d->direction, "out") ? ACL_OUT : ACL_IN;

	for (size_t i = 0; i < set->n_uses && d->iface; i++)
		if (!strcmp(set->use[i].iface, d->iface) && set->use[i].direction == direction)
			return set->use[i].list;
	return NULL;
}

// That of `acl:` is asked first if an interface has tc filters as well.
static const struct acl_source *find_list(const struct api_ctx *ctx, const struct description *d,
	struct error *error)
{
	const struct acl_set *sets[] = {acl_current(ctx->acls), acls_filters(ctx)};
	const struct acl_source *found = NULL;

	for (unsigned i = 0; i < ARRAY_LEN(sets) && !found; i++)
		found = find_in(sets[i], d->list ? d->list : find_use(sets[i], d));
	if (!found)
		error_set(error, -ENOENT,
			"no such list: expected \"list\", or \"interface\" and \"direction\" (in "
			"or "
			"out) with a list; 'dl3 acl show' lists them");
	return found;
}

// The first rules before number `end`, from 1, and the first condition that each does not meet.
static json_t *reasons_json(const struct acl_source *list, const struct acl_packet *packet,
	size_t end)
{
	json_t *reasons = json_array();

	for (size_t i = 0; i < MIN_OF(end, (size_t)MAX_REASONS); i++) {
		const char *key = acl_rule_mismatch(&list->rule[i], packet);

		json_array_append_new(reasons,
			json_pack("{s:I, s:s?, s:s?}", "number", (json_int_t)i + 1, "name",
				list->rule[i].name[0] ? list->rule[i].name : NULL, "differs", key));
	}
	return reasons;
}

json_t *method_acl_check(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	struct acl_packet packet;
	struct description d;
	char text[ACL_RULE_TEXT];

	if (read_description(params, &d, error))
		return NULL;
	const struct acl_source *list = find_list(ctx, &d, error);

	if (!list || read_packet(&d, &packet, error))
		return NULL;
	const int number = acl_find(acls_table_of(ctx, list->name), list->name, &packet);
	const struct acl_rule *rule = number > 0 ? &list->rule[number - 1] : NULL;
	const bool is_denied = list->denies_rest && !packet.is_local;
	const char *effect = rule ? acl_effect_word(rule->effect) : is_denied ? "deny" : "permit";
	json_t *number_of = rule ? json_integer(number) : json_null();

	return json_pack("{s:s, s:s, s:o, s:s?, s:s?, s:o}", "list", list->name, "do", effect,
		"number", number_of, "name", rule && rule->name[0] ? rule->name : NULL, "rule",
		rule ? acl_rule_print(rule, text) : NULL, "before",
		reasons_json(list, &packet, rule ? (size_t)number - 1 : list->n));
}
