// Routes: pages of them, and why a packet to an address goes where it goes. Control thread.
#include "verbs/inside.h"

#include <errno.h>
#include <string.h>

// A reply's line is at most 1 MiB; a route in JSON is far below 200 bytes.
enum { PAGE_ROUTES = 1000, PAGE_MAX_ROUTES = 5000 };

static json_t *route_json(const struct verbs_house *house, const struct fib_route *route)
{
	json_t *json = json_pack("{s:o}", "prefix", prefix_json(&route->prefix));

	set_hop(json, house, &route->hop);
	return json;
}

static int read_after(const char *text, uint8_t family, struct wire_prefix *after,
	struct complaint *why)
{
	if (wire_prefix_parse(text, after))
		return complain(why, -EINVAL,
			"parameter \"after\" is no prefix; give the \"next\" of the page before");
	if (after->addr.family != family)
		return complain(why, -EINVAL,
			"parameter \"after\" is no IPv%d prefix; give the \"next\" of the page "
			"before",
			family);
	return 0;
}

json_t *verb_routes(void *house_, const json_t *params, struct complaint *why)
{
	const struct verbs_house *house = house_;
	long family = 4, limit = PAGE_ROUTES;
	const char *after_text = NULL;
	const struct param rows[] = {
		{"family", PARAM_NUMBER, false, 4, 6, &family},
		{"limit", PARAM_NUMBER, false, 1, 10000, &limit},
		{"after", PARAM_TEXT, false, 0, 0, &after_text},
	};
	struct wire_prefix at, *after = NULL;
	struct fib_route route;

	if (params_read(params, rows, 3, why))
		return NULL;
	if (family == 5) {
		complain(why, -EINVAL, "parameter \"family\" is 5; 4 or 6 is wanted");
		return NULL;
	}
	if (after_text) {
		if (read_after(after_text, family, &at, why))
			return NULL;
		after = &at;
	}
	json_t *list = json_array();
	long n = 0, most = limit < PAGE_MAX_ROUTES ? limit : PAGE_MAX_ROUTES;
	while (n < most && fib_next(house->fib, family, after, &route)) {
		json_array_append_new(list, route_json(house, &route));
		at = route.prefix;
		after = &at;
		n++;
	}
	bool more = n == most && fib_next(house->fib, family, after, &route);
	return json_pack("{s:i, s:o, s:o}", "family", (int)family, "routes", list, "next",
		more ? prefix_json(&at) : json_null());
}

json_t *verb_route(void *house_, const json_t *params, struct complaint *why)
{
	const struct verbs_house *house = house_;
	const char *text = NULL;
	const struct param rows[] = {{"address", PARAM_TEXT, true, 0, 0, &text}};
	struct wire_addr addr;
	struct fib_answer answer;

	if (params_read(params, rows, 1, why))
		return NULL;
	if (wire_addr_parse(text, &addr)) {
		complain(why, -EINVAL, "\"%.60s\" is no address; give an IPv4 or IPv6 address",
			text);
		return NULL;
	}
	fib_find(house->fib, &addr, &answer);
	uint16_t looked_up = fib_look(house->fib, &addr);
	bool forwards = answer.verdict == VERDICT_FORWARD;
	json_t *json = json_pack("{s:o, s:b}", "address", addr_json(&addr), "found", answer.found);
	json_object_set_new(json, "prefix",
		answer.found ? prefix_json(&answer.route.prefix) : json_null());
	json_object_set_new(json, "route_kind",
		answer.found ? text_json(kind_word(answer.route.hop.kind)) : json_null());
	if (answer.found)
		set_hop(json, house, &answer.hop);
	set_members(json, house, &answer.hop);
	json_object_set_new(json, "nexthop", number_json(answer.hop_id));
	json_object_set_new(json, "mac", forwards ? mac_json(&answer.mac) : json_null());
	json_object_set_new(json, "verdict", text_json(verdict_name(answer.verdict)));
	json_object_set_new(json, "text",
		text_json(answer.hop.kind == FIB_GROUP ? "each flow stays with one of the members"
						       : verdict_text(answer.verdict)));
	json_object_set_new(json, "lanes_agree", json_boolean(looked_up == answer.hop_id));
	return json;
}
