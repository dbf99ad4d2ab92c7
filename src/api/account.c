// Packet accounting: received + injected + copied = sent + punted + each named drop + held. Control
// thread.
#include "api/inside.h"

#include "base/log.h"

#include <inttypes.h>

// Packets with a verdict that workers have passed to Linux; tap_stats has the outcome by class.
static uint64_t handed(const struct api_ctx *ctx, unsigned verdict)
{
	uint64_t sum = 0;
	unsigned n;
	struct stats_worker *const *workers = datapath_stats(ctx->path, &n);

	for (unsigned i = 0; i < n; i++)
		sum += stats_read(&workers[i]->handed[verdict]);
	return sum;
}

void account_read(const struct api_ctx *ctx, struct stats_account *account)
{
	unsigned n;
	struct stats_worker *const *workers = datapath_stats(ctx->path, &n);

	*account = (struct stats_account){0};
	if (ctx->taps)
		stats_add_tap(account, tap_stats(ctx->taps));
	stats_add_workers(account, workers, n);
}

// Includes packets in the rings towards Linux.
static int64_t in_flight(const struct stats_account *a)
{
	return (int64_t)(a->received + a->injected + a->copied - a->sent - a->punted - a->dropped -
			 a->held);
}

json_t *account_json(const struct stats_account *a)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "received",
		(json_int_t)a->received, "injected", (json_int_t)a->injected, "copied",
		(json_int_t)a->copied, "sent", (json_int_t)a->sent, "punted", (json_int_t)a->punted,
		"dropped", (json_int_t)a->dropped, "held", (json_int_t)a->held, "in_flight",
		(json_int_t)in_flight(a));
}

// Packets lost by the devices before any worker could receive them; not part of the account. null:
// no device has counted one, and not every device counts them.
static json_t *wire_json(const struct api_ctx *ctx)
{
	const struct port_table_settings *ports = config_ports(ctx->config);
	uint64_t missed = 0, no_mbuf = 0, errors = 0, deferred = 0;
	unsigned n_workers, uncounted = 0;
	struct stats_worker *const *workers = datapath_stats(ctx->path, &n_workers);

	for (unsigned i = port_next(ports, 0); i < ports->n_ports; i = port_next(ports, i + 1)) {
		struct port_info info;

		port_info(ctx->ports, i, &info);
		missed += info.rx_missed;
		no_mbuf += info.rx_no_mbuf;
		errors += info.rx_errors;
		uncounted |= info.uncounted;
	}
	for (unsigned i = 0; i < n_workers; i++)
		deferred += stats_read(&workers[i]->starved_loops);
	return json_pack("{s:o, s:o, s:o, s:I}", "rx_missed",
		rpc_count_json(missed, missed || !(uncounted & PORT_RX_MISSED)), "rx_no_mbuf",
		rpc_count_json(no_mbuf, no_mbuf || !(uncounted & PORT_RX_NO_MBUF)), "rx_errors",
		rpc_count_json(errors, errors || !(uncounted & PORT_RX_ERRORS)), "starved_loops",
		(json_int_t)deferred);
}

json_t *method_drops(void *ctx_, const json_t *params, struct error *error)
{
	const struct api_ctx *ctx = ctx_;
	struct stats_account account;

	if (rpc_params_none(params, error))
		return NULL;
	account_read(ctx, &account);
	json_t *drops = account_json(&account), *list = json_array();
	for (unsigned v = 0; v < N_VERDICTS; v++) {
		json_t *row = json_pack("{s:s, s:I, s:I, s:s, s:s}", "name", verdict_name(v),
			"packets", (json_int_t)account.verdict[v], "handed",
			(json_int_t)handed(ctx, v), "step", verdict_step(v), "text",
			verdict_text(v));

		json_object_set_new(row, "class",
			rpc_text_json(ctx->taps ? class_word(verdict_class(v)) : NULL));
		json_array_append_new(list, row);
	}
	json_object_set_new(drops, "verdicts", list);
	json_object_set_new(drops, "wire", wire_json(ctx));
	return drops;
}

void api_log_account(const struct api_ctx *ctx)
{
	struct stats_account a;

	account_read(ctx, &a);
	if (ctx->taps)
		log_info("account: injected %" PRIu64 ", punted %" PRIu64, a.injected, a.punted);
	if (a.copied)
		log_info("account: copied %" PRIu64, a.copied);
	log_info("account: received %" PRIu64 ", sent %" PRIu64 ", dropped %" PRIu64
		 ", in flight %" PRId64,
		a.received, a.sent, a.dropped, in_flight(&a));
	for (unsigned v = VERDICT_FORWARD + 1; v < N_VERDICTS; v++)
		if (a.verdict[v])
			log_info("account: %" PRIu64 " %s (%s)", a.verdict[v], verdict_name(v),
				verdict_text(v));
}
