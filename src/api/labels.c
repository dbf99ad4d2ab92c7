// Received MPLS labels, in pages. Control thread.
#include "api/inside.h"

#include "base/bits.h"

// A response line is at most 1 MiB: labels and group members take far less than 250 bytes each. The
// number of labels that are passed over is limited by their table.
enum { PAGE_LABELS = 1000, PAGE_MAX_LISTED = 4000 };

static const char *op_word(uint8_t op)
{
	static const char *const words[] = {[FIB_LABEL_FORWARD] = "forward",
		[FIB_LABEL_LOOKUP] = "lookup",
		[FIB_LABEL_LINUX] = "linux"};

	return words[op];
}

static json_t *label_json(const struct api_ctx *ctx, const struct fib_label *label, long *n_listed)
{
	const bool is_lookup = label->op == FIB_LABEL_LOOKUP;
	json_t *json = json_pack("{s:i, s:s, s:s}", "label", (int)label->label, "does",
		op_word(label->op), "ttl", label->is_pipe ? "pipe" : "uniform");

	json_object_set_new(json, "vrf",
		rpc_text_json(is_lookup ? vrf_word(ctx, label->vrf) : NULL));
	set_hop(json, ctx, &label->hop);
	if (label->op != FIB_LABEL_FORWARD)
		json_object_set_new(json, "kind", json_null());
	*n_listed += 1 + set_members(json, ctx, &label->hop);
	return json;
}

json_t *method_labels(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	long after = -1, limit = PAGE_LABELS, n = 0, n_listed = 0;
	const struct rpc_param rows[] = {
		{"after", RPC_NUMBER, false, 0, FIB_MAX_LABEL, &after},
		{"limit", RPC_NUMBER, false, 1, 10000, &limit},
	};
	struct fib_usage usage;
	struct fib_label label;
	bool more;

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error))
		return NULL;
	fib_usage(ctx->fib, &usage);
	json_t *list = json_array();
	while ((more = fib_label_next(ctx->fib, after + 1, &label)) && n < limit &&
		n_listed < PAGE_MAX_LISTED) {
		json_array_append_new(list, label_json(ctx, &label, &n_listed));
		after = label.label;
		n++;
	}
	return json_pack("{s:i, s:o, s:o}", "n", (int)usage.n_labels, "labels", list, "next",
		more ? json_integer(after) : json_null());
}
