// Routes in pages, with filters. Control thread.
#include "api/inside.h"

#include "base/bits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

// A response line is at most 1 MiB; a route in JSON takes far less than 200 bytes. The number of
// routes examined per page is limited, so that no call takes long.
enum { PAGE_ROUTES = 1000, PAGE_MAX_ROUTES = 5000, PAGE_MAX_LOOKED_AT = 100000 };

static void set_origin(json_t *json, const struct netlink_origin *origin)
{
	const char *name = netlink_protocol_name(origin->protocol);
	char number[16];

	snprintf(number, sizeof(number), "%u", origin->protocol);
	json_object_set_new(json, "protocol", json_string(name ? name : number));
	json_object_set_new(json, "metric", number_json(origin->metric));
}

static json_t *route_json(const struct api_ctx *ctx, const struct fib_route *route)
{
	json_t *json = json_pack("{s:o}", "prefix", prefix_json(&route->prefix));
	struct netlink_origin origin;

	set_hop(json, ctx, &route->hop);
	if (ctx->netlink && netlink_route_origin(ctx->netlink, route->vrf, &route->prefix, &origin))
		set_origin(json, &origin);
	return json;
}

// Which routes a page contains, and where it starts.
struct page {
	long family, limit;
	struct wire_prefix after, within;
	bool has_after, has_within;
	int iface; // -1: any
	uint16_t vrf;
};

// If the text is absent, `out` is unchanged.
static int read_prefix(const char *name, const char *text, long family, struct wire_prefix *out,
	struct error *error)
{
	if (text && wire_prefix_parse(text, out))
		return error_set(error, -EINVAL,
			"parameter \"%s\": expected ADDRESS/LENGTH without host bits", name);
	if (text && out->addr.family != family)
		return error_set(error, -EINVAL,
			"parameter \"%s\": expected an IPv%ld prefix, as selected by \"family\"",
			name, family);
	return 0;
}

static int read_page(const struct api_ctx *ctx, const json_t *params, struct page *page,
	struct error *error)
{
	const char *after = NULL, *within = NULL, *iface = NULL, *vrf = NULL;
	const struct rpc_param rows[] = {
		{"family", RPC_NUMBER, false, 4, 6, &page->family},
		{"limit", RPC_NUMBER, false, 1, 10000, &page->limit},
		{"after", RPC_TEXT, false, 0, 0, &after},
		{"within", RPC_TEXT, false, 0, 0, &within},
		{"port", RPC_TEXT, false, 0, 0, &iface},
		{"vrf", RPC_TEXT, false, 0, 0, &vrf},
	};

	*page = (struct page){.family = 4, .limit = PAGE_ROUTES, .iface = -1};
	int err = rpc_params_read(params, rows, ARRAY_LEN(rows), error);
	if (!err && page->family == 5)
		err = error_set(error, -EINVAL, "parameter \"family\" is 5; expected 4 or 6");
	if (!err)
		err = read_prefix("after", after, page->family, &page->after, error);
	if (!err)
		err = read_prefix("within", within, page->family, &page->within, error);
	page->has_after = after;
	page->has_within = within;
	page->limit = MIN_OF(page->limit, (long)PAGE_MAX_ROUTES);
	if (!err)
		err = iface_find(ctx, iface, &page->iface, error);
	return err ? err : vrf_find(ctx, vrf, &page->vrf, error);
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

// Routes are sorted by address, then length, so the routes within a prefix start after the same
// address with a length one bit shorter; if a page's `after` is lower than that, it has no effect.
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

// The first route of the page, or the one after page->after. Returns false if there is none.
static bool next_route(const struct fib *fib, const struct page *page, struct fib_route *out)
{
	const struct wire_prefix *after = page->has_after ? &page->after : NULL;

	return fib_next(fib, &(struct fib_walk){after, page->family, page->vrf}, out);
}

json_t *method_routes(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	struct page page;
	struct fib_route route;
	long n = 0, n_looked_at = 0;
	bool more;

	if (read_page(ctx, params, &page, error))
		return NULL;
	json_t *list = json_array();
	begin_within(&page);
	while ((more = next_route(ctx->fib, &page, &route))) {
		if (page.has_within && !covers(&page.within, &route.prefix)) {
			more = false;
			break;
		}
		if (n == page.limit || n_looked_at++ == PAGE_MAX_LOOKED_AT)
			break;
		page.after = route.prefix;
		page.has_after = true;
		if (page.iface >= 0 && route.hop.iface != page.iface)
			continue;
		json_array_append_new(list, route_json(ctx, &route));
		n++;
	}
	return json_pack("{s:i, s:o, s:o}", "family", (int)page.family, "routes", list, "next",
		more ? prefix_json(&page.after) : json_null());
}
