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
	int link; // -1: any
	uint8_t vrf;
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

static int read_page(const struct verbs_house *house, const json_t *params, struct page *page,
	struct complaint *why)
{
	const char *after = NULL, *within = NULL, *link = NULL, *vrf = NULL;
	const struct ctl_param rows[] = {
		{"family", CTL_NUMBER, false, 4, 6, &page->family},
		{"limit", CTL_NUMBER, false, 1, 10000, &page->limit},
		{"after", CTL_TEXT, false, 0, 0, &after},
		{"within", CTL_TEXT, false, 0, 0, &within},
		{"port", CTL_TEXT, false, 0, 0, &link},
		{"vrf", CTL_TEXT, false, 0, 0, &vrf},
	};

	*page = (struct page){.family = 4, .limit = PAGE_ROUTES, .link = -1};
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
	if (!err)
		err = link_find(house, link, &page->link, why);
	return err ? err : vrf_find(house, vrf, &page->vrf, why);
}

static bool covers(const struct wire_prefix *wide, const struct wire_prefix *narrow)
{
	struct wire_prefix cut = {narrow->addr, wide->len};

	wire_prefix_mask(&cut);
	return narrow->len >= wide->len && wire_addr_equal(&cut.addr, &wide->addr);
}

static bool is_behind(const struct wire_prefix *one, const struct wire_prefix *other)
{
	int order = memcmp(one->addr.bytes, other->addr.bytes, one->addr.family == 4 ? 4 : 16);

	return order ? order > 0 : one->len > other->len;
}

// In order of address, then length, what lies within a prefix begins after the same address one bit
// shorter; an earlier `after` of a page is of no account.
static void begin_within(struct page *page)
{
	struct wire_prefix before = page->within;

	if (!page->has_within || !before.len)
		return;
	before.len--;
	if (page->has_after && is_behind(&page->after, &before))
		return;
	page->after = before;
	page->has_after = true;
}

// The first route of the page, or the one after page->after. False: there is none.
static bool next_route(const struct fib *fib, const struct page *page, struct fib_route *out)
{
	const struct wire_prefix *after = page->has_after ? &page->after : NULL;

	return fib_next(fib, &(struct fib_walk){after, page->family, page->vrf}, out);
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
	begin_within(&page);
	while ((more = next_route(house->fib, &page, &route))) {
		if (page.has_within && !covers(&page.within, &route.prefix)) {
			more = false;
			break;
		}
		if (n == page.limit || n_looked_at++ == PAGE_MAX_LOOKED_AT)
			break;
		page.after = route.prefix;
		page.has_after = true;
		if (page.link >= 0 && route.hop.link != page.link)
			continue;
		json_array_append_new(list, route_json(house, &route));
		n++;
	}
	return json_pack("{s:i, s:o, s:o}", "family", (int)page.family, "routes", list, "next",
		more ? prefix_json(&page.after) : json_null());
}
