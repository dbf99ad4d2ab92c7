// Routes: pages of them, and why a packet to an address goes where it goes. Control thread.
#include "verbs/inside.h"

#include "base/bits.h"

#include <errno.h>
#include <string.h>

// A reply's line is at most 1 MiB; a route in JSON is far below 200 bytes. Filters look at so many
// routes for one page, so that no call takes long.
enum { PAGE_ROUTES = 1000, PAGE_MAX_ROUTES = 5000, PAGE_MAX_LOOKED_AT = 100000 };

static json_t *route_json(const struct verbs_house *house, const struct fib_route *route)
{
	json_t *json = json_pack("{s:o}", "prefix", prefix_json(&route->prefix));

	set_hop(json, house, &route->hop);
	return json;
}

// Which routes a page holds, and from where on.
struct page {
	long family, limit;
	struct wire_prefix after, within;
	bool has_after, has_within;
	int port; // -1: any
};

// An absent text leaves `out` alone.
static int read_prefix(const char *name, const char *text, long family, struct wire_prefix *out,
	struct complaint *why)
{
	if (text && wire_prefix_parse(text, out))
		return complain(why, -EINVAL,
			"parameter \"%s\" is no prefix; ADDRESS/LENGTH without host bits is wanted",
			name);
	if (text && out->addr.family != family)
		return complain(why, -EINVAL,
			"parameter \"%s\" is no IPv%ld prefix; \"family\" says that one is wanted",
			name, family);
	return 0;
}

static int read_port(const struct verbs_house *house, const char *name, int *out,
	struct complaint *why)
{
	const struct port_room_settings *ports = config_ports(house->config);

	*out = -1;
	if (!name)
		return 0;
	for (unsigned i = 0; i < ports->n_ports; i++)
		if (!strcmp(ports->ports[i].name, name))
			*out = i;
	return *out >= 0 ? 0
	                 : complain(why, -EINVAL,
				   "parameter \"port\" is no port's name; ports tells them");
}

static int read_page(const struct verbs_house *house, const json_t *params, struct page *page,
	struct complaint *why)
{
	const char *after = NULL, *within = NULL, *port = NULL;
	const struct ctl_param rows[] = {
		{"family", CTL_NUMBER, false, 4, 6, &page->family},
		{"limit", CTL_NUMBER, false, 1, 10000, &page->limit},
		{"after", CTL_TEXT, false, 0, 0, &after},
		{"within", CTL_TEXT, false, 0, 0, &within},
		{"port", CTL_TEXT, false, 0, 0, &port},
	};

	*page = (struct page){.family = 4, .limit = PAGE_ROUTES};
	int err = ctl_params_read(params, rows, ARRAY_LEN(rows), why);
	if (!err && page->family == 5)
		err = complain(why, -EINVAL, "parameter \"family\" is 5; 4 or 6 is wanted");
	if (!err)
		err = read_prefix("after", after, page->family, &page->after, why);
	if (!err)
		err = read_prefix("within", within, page->family, &page->within, why);
	page->has_after = after;
	page->has_within = within;
	page->limit = MIN_OF(page->limit, (long)PAGE_MAX_ROUTES);
	return err ? err : read_port(house, port, &page->port, why);
}

static bool covers(const struct wire_prefix *wide, const struct wire_prefix *narrow)
{
	struct wire_prefix cut = {narrow->addr, wide->len};

	wire_prefix_mask(&cut);
	return narrow->len >= wide->len && wire_addr_equal(&cut.addr, &wide->addr);
}

// The first route of the page, or the one after page->after. False: there is none.
static bool next_route(const struct fib *fib, const struct page *page, struct fib_route *out)
{
	struct wire_prefix before = page->within;

	if (page->has_after)
		return fib_next(fib,
			&(struct fib_walk){.after = &page->after, .family = page->family}, out);
	if (!page->has_within || !page->within.len)
		return fib_next(fib, &(struct fib_walk){.family = page->family}, out);
	// In order of address, then length, what lies within begins after the same address one bit
	// shorter.
	before.len--;
	return fib_next(fib, &(struct fib_walk){.after = &before, .family = page->family}, out);
}

json_t *verb_routes(void *house_, const json_t *params, struct complaint *why)
{
	const struct verbs_house *house = house_;
	struct page page;
	struct fib_route route;
	long n = 0, n_looked_at = 0;
	bool more;

	if (read_page(house, params, &page, why))
		return NULL;
	json_t *list = json_array();
	while ((more = next_route(house->fib, &page, &route))) {
		if (page.has_within && !covers(&page.within, &route.prefix)) {
			more = false;
			break;
		}
		if (n == page.limit || n_looked_at++ == PAGE_MAX_LOOKED_AT)
			break;
		page.after = route.prefix;
		page.has_after = true;
		if (page.port >= 0 && route.hop.link != page.port)
			continue;
		json_array_append_new(list, route_json(house, &route));
		n++;
	}
	return json_pack("{s:i, s:o, s:o}", "family", (int)page.family, "routes", list, "next",
		more ? prefix_json(&page.after) : json_null());
}

json_t *verb_route(void *house_, const json_t *params, struct complaint *why)
{
	const struct verbs_house *house = house_;
	const char *text = NULL;
	const struct ctl_param rows[] = {{"address", CTL_TEXT, true, 0, 0, &text}};
	struct wire_addr addr;
	struct fib_answer answer;

	if (ctl_params_read(params, rows, 1, why))
		return NULL;
	if (wire_addr_parse(text, &addr)) {
		complain(why, -EINVAL, "\"%.60s\" is no address; give an IPv4 or IPv6 address",
			text);
		return NULL;
	}
	fib_find(house->fib, 0, &addr, &answer);
	uint16_t looked_up = fib_look(house->fib, 0, &addr);
	bool forwards = answer.verdict == VERDICT_FORWARD;
	json_t *json = json_pack("{s:o, s:b}", "address", addr_json(&addr), "found", answer.found);
	json_object_set_new(json, "prefix",
		answer.found ? prefix_json(&answer.route.prefix) : json_null());
	json_object_set_new(json, "route_kind",
		answer.found ? ctl_text_json(kind_word(answer.route.hop.kind)) : json_null());
	if (answer.found)
		set_hop(json, house, &answer.hop);
	set_members(json, house, &answer.hop);
	json_object_set_new(json, "nexthop", number_json(answer.hop_id));
	json_object_set_new(json, "mac", forwards ? mac_json(&answer.mac) : json_null());
	json_object_set_new(json, "verdict", ctl_text_json(verdict_name(answer.verdict)));
	json_object_set_new(json, "text",
		ctl_text_json(answer.hop.kind == FIB_GROUP
				      ? "each flow stays with one of the members"
				      : verdict_text(answer.verdict)));
	json_object_set_new(json, "lanes_agree", json_boolean(looked_up == answer.hop_id));
	return json;
}
