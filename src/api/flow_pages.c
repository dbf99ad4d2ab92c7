// The methods flows.find and flows.list. Control thread.
#include "api/flows.h"

#include "base/bits.h"

#include <errno.h>
#include <rte_cycles.h>

// A response line is at most 1 MiB, and takes a few ms: a flow takes less than 400 bytes and 10 us.
enum {
	PAGE_FLOWS = 500,
	PAGE_MAX_FLOWS = 1000,
	PAGE_NUMBERS = 1 << 20,
	PAGE_MAX_LOOKED_AT = 20000
};

json_t *method_flows_find(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	struct rpc_param rows[FLOW_KEY_ROWS];
	struct flow_key_params key_params;
	struct flow_info info;
	struct flow_key key;

	flow_key_rows(&key_params, rows);
	if (rpc_params_read(params, rows, FLOW_KEY_ROWS, error))
		return NULL;
	struct flows *flows = flows_of(ctx, error);
	if (!flows || flow_key_read(ctx, &key_params, &key, error))
		return NULL;
	if (!flow_find(flows->table, &key, rte_rdtsc(), &info))
		return json_pack("{s:b, s:n}", "found", 0, "flow");
	return json_pack("{s:b, s:o}", "found", 1, "flow", flow_info_json(ctx, &info));
}

static bool is_in(const struct flow_info *info, uint16_t vrf)
{
	struct flow_tuple tuple;

	flow_key_tuple(&info->key, &tuple);
	return tuple.vrf == vrf;
}

struct page {
	const char *vrf_name;
	uint16_t vrf;
	long limit;
	uint32_t next; // flow number; 0: the end
};

// Each call looks at a bounded number of flows; a page may be empty although more follow.
static json_t *read_page(const struct api_ctx *ctx, struct page *page)
{
	const uint32_t end = page->next + PAGE_NUMBERS;
	const uint64_t now = rte_rdtsc();
	json_t *list = json_array();
	struct flow_info info;
	long n = 0;

	for (unsigned i = 0;
		i < PAGE_MAX_LOOKED_AT && n < page->limit && page->next && page->next < end; i++) {
		if (!flow_next_within(ctx->flows->table, &page->next, end - page->next, now,
			    &info) ||
			(page->vrf_name && !is_in(&info, page->vrf)))
			continue;
		json_array_append_new(list, flow_info_json(ctx, &info));
		n++;
	}
	return list;
}

json_t *method_flows_list(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	struct page page = {.limit = PAGE_FLOWS};
	long after = 0;
	const struct rpc_param rows[] = {
		{"after", RPC_NUMBER, false, 0, FLOW_MAX, &after},
		{"limit", RPC_NUMBER, false, 1, PAGE_MAX_FLOWS, &page.limit},
		{"vrf", RPC_TEXT, false, 0, 0, &page.vrf_name},
	};

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error) || !flows_of(ctx, error) ||
		vrf_find(ctx, page.vrf_name, &page.vrf, error))
		return NULL;
	page.next = after + 1;
	json_t *list = read_page(ctx, &page);
	return json_pack("{s:o, s:o}", "flows", list, "next",
		page.next ? number_json(page.next - 1) : json_null());
}
