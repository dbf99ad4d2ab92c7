// Why a packet to an address goes where it goes, and whether Linux would do the same. Control
// thread.
#include "verbs/inside.h"

#include "base/bits.h"

#include <errno.h>
#include <string.h>

static json_t *answer_json(const struct sync_opinion *said)
{
	json_t *json = json_pack("{s:b, s:o, s:o, s:o}", "agrees", said->agrees, "differs",
		ctl_text_json(said->agrees ? NULL : said->differs), "error",
		ctl_text_json(said->answered ? NULL : strerror(-said->error)), "prefix",
		said->answered ? prefix_json(&said->prefix) : json_null());

	if (!said->answered)
		return json;
	json_object_set_new(json, "table", number_json(said->table));
	json_object_set_new(json, "metric", number_json(said->metric));
	json_object_set_new(json, "type", ctl_text_json(sync_type_name(said->type)));
	json_object_set_new(json, "via", addr_json(&said->via));
	json_object_set_new(json, "interface",
		ctl_text_json(said->interface[0] ? said->interface : NULL));
	return json;
}

// What Linux itself says; null where it is not the control plane.
static json_t *linux_json(const struct verbs_house *house, uint8_t vrf,
	const struct wire_addr *addr)
{
	struct sync_opinion said = {0};
	struct complaint why = {""};

	if (!house->sync)
		return json_null();
	if (sync_explain(house->sync, vrf, addr, &said, &why))
		return json_pack("{s:n, s:o}", "agrees", "error", ctl_text_json(why.text));
	return answer_json(&said);
}

// MACs and tags that a packet leaves with.
static void set_rewrite(json_t *json, const struct verbs_house *house,
	const struct fib_answer *answer)
{
	const uint8_t family = answer->route.prefix.addr.family;
	bool has_mac = answer->verdict == VERDICT_FORWARD && answer->hop.kind != FIB_GROUP;
	const struct fib_link *link =
		answer->hop.link < FIB_MAX_LINKS ? fib_link(house->fib, answer->hop.link) : NULL;

	json_object_set_new(json, "mac", has_mac ? mac_json(&answer->mac) : json_null());
	json_object_set_new(json, "source_mac",
		has_mac && link ? mac_json(&link->mac) : json_null());
	json_object_set_new(json, "vlans", link ? tags_json(link) : json_array());
	json_object_set_new(json, "mtu",
		link ? number_json(fib_link_mtu(link, family)) : json_null());
}

static const char *text_of(const struct fib_answer *answer)
{
	return answer->hop.kind == FIB_GROUP ? "each flow stays with one of the members"
	                                     : verdict_text(answer->verdict);
}

static json_t *decision_json(const struct verbs_house *house, uint8_t vrf,
	const struct wire_addr *addr)
{
	struct fib_answer answer;

	fib_find(house->fib, vrf, addr, &answer);
	bool agree = fib_look(house->fib, vrf, addr) == answer.hop_id;
	json_t *json = json_pack("{s:o, s:o, s:b}", "address", addr_json(addr), "vrf",
		ctl_text_json(vrf_word(house, vrf)), "found", answer.found);
	json_object_set_new(json, "prefix",
		answer.found ? prefix_json(&answer.route.prefix) : json_null());
	json_object_set_new(json, "route_kind",
		answer.found ? ctl_text_json(kind_word(answer.route.hop.kind)) : json_null());
	if (answer.found)
		set_hop(json, house, &answer.hop);
	set_members(json, house, &answer.hop);
	json_object_set_new(json, "nexthop", number_json(answer.hop_id));
	set_rewrite(json, house, &answer);
	json_object_set_new(json, "verdict", ctl_text_json(verdict_name(answer.verdict)));
	json_object_set_new(json, "class",
		ctl_text_json(house->twins ? class_word(verdict_class(answer.verdict)) : NULL));
	json_object_set_new(json, "text", ctl_text_json(text_of(&answer)));
	json_object_set_new(json, "lanes_agree", json_boolean(agree));
	json_object_set_new(json, "linux", linux_json(house, vrf, addr));
	return json;
}

json_t *verb_route(void *house_, const json_t *params, struct complaint *why)
{
	const struct verbs_house *house = house_;
	const char *text = NULL, *vrf_name = NULL;
	const struct ctl_param rows[] = {
		{"address", CTL_TEXT, true, 0, 0, &text},
		{"vrf", CTL_TEXT, false, 0, 0, &vrf_name},
	};
	struct wire_addr addr;
	uint8_t vrf = 0;

	if (ctl_params_read(params, rows, ARRAY_LEN(rows), why))
		return NULL;
	if (wire_addr_parse(text, &addr)) {
		complain(why, -EINVAL, "\"%.60s\" is no address; give an IPv4 or IPv6 address",
			text);
		return NULL;
	}
	return vrf_find(house, vrf_name, &vrf, why) ? NULL : decision_json(house, vrf, &addr);
}
