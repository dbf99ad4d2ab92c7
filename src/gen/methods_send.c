// The methods that control runs: streams, send, halt. Control thread.
#include "gen/inside.h"

#include "base/bits.h"

#include <errno.h>

enum { SECONDS_MOST = 86400, DELAY_MOST = 60 };
static const double SECONDS_LEAST = 0.001, DELAY_DEFAULT = 0.01;

json_t *gen_method_streams(void *ctx_, const json_t *params, struct error *error)
{
	const struct gen_ctx *ctx = ctx_;

	if (rpc_params_none(params, error))
		return NULL;
	json_t *list = ctx->gen->streams ? json_deep_copy(ctx->gen->streams) : json_array();
	return json_pack("{s:o}", "streams", list);
}

static json_t *sizes_json(const struct gen_stream *stream)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < stream->n_sizes; i++)
		json_array_append_new(list,
			json_pack("{s:i, s:i}", "size", (int)stream->sizes[i].bytes, "weight",
				(int)stream->sizes[i].weight));
	return list;
}

// Includes the number of stamped frames: only these can be received or lost; and what the file has
// besides Ethernet.
static json_t *capture_json(const struct gen_capture *capture)
{
	return json_pack("{s:o, s:I, s:I, s:f, s:f, s:I, s:o}", "file",
		rpc_text_json(capture->path), "frames", (json_int_t)capture->n_frames, "stamped",
		(json_int_t)capture->n_stamped, "seconds", capture->lap_ns / 1e9, "speed",
		capture->speed, "left_out", (json_int_t)capture->n_left_out, "left_out_of",
		rpc_text_json(capture->left_out));
}

static json_t *stream_json(const struct gen *gen, const struct gen_stream *stream)
{
	const struct port_settings *ports = gen->settings->ports;
	json_t *from =
		stream->is_receive_only ? json_null() : rpc_text_json(ports[stream->from].name);
	json_t *json = json_pack("{s:s, s:i, s:o, s:o, s:b}", "name", stream->name, "id",
		(int)stream->id, "from_port", from, "to_port",
		rpc_text_json(ports[stream->to].name), "receive_only", stream->is_receive_only);

	json_object_set_new(json, "flows", json_integer(stream->n_flows));
	json_object_set_new(json, "distribution",
		json_string(gen_distribution_word(stream->distribution)));
	json_object_set_new(json, "exponent", json_real(stream->exponent));
	json_object_set_new(json, "seed", json_integer(stream->seed));
	json_object_set_new(json, "count_flows", json_boolean(stream->counts_flows));
	json_object_set_new(json, "log_arrivals", json_integer(stream->n_logged));
	json_object_set_new(json, "dscp", json_integer(stream->recipe.dscp_ecn >> 2));
	json_object_set_new(json, "sizes", sizes_json(stream));
	json_object_set_new(json, "mean_bytes", json_real(gen_mean_bytes(stream)));
	json_object_set_new(json, "pps", json_real(stream->pps));
	json_object_set_new(json, "burst", json_integer(stream->burst));
	json_object_set_new(json, "catch_up", json_integer(stream->catch_up));
	json_object_set_new(json, "frames", json_integer(stream->n_frames));
	if (stream->capture.path[0])
		json_object_set_new(json, "pcap", capture_json(&stream->capture));
	return json;
}

static json_t *started_json(const struct gen *gen)
{
	const struct run *run = gen->current;
	json_t *list = json_array();

	for (unsigned i = 0; i < run->streams.n; i++)
		json_array_append_new(list, stream_json(gen, &run->streams.stream[i]));
	return json_pack("{s:i, s:o}", "run", (int)run->number, "streams", list);
}

json_t *gen_method_send(void *ctx_, const json_t *params, struct error *error)
{
	struct gen_ctx *ctx = ctx_;
	struct gen_order order = {.delay_s = DELAY_DEFAULT};
	const struct rpc_param rows[] = {
		{"streams", RPC_LIST, false, 1, GEN_MAX_STREAMS, &order.streams},
		{"seconds", RPC_REAL, false, 0, SECONDS_MOST, &order.seconds},
		{"delay", RPC_REAL, false, 0, DELAY_MOST, &order.delay_s},
	};

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error))
		return NULL;
	if (json_object_get(params, "seconds") && order.seconds < SECONDS_LEAST) {
		error_set(error, -EINVAL,
			"parameter \"seconds\" is %g; expected a number from %g to %d",
			order.seconds, SECONDS_LEAST, SECONDS_MOST);
		return NULL;
	}
	return gen_send(ctx->gen, &order, error) ? NULL : started_json(ctx->gen);
}

json_t *gen_method_halt(void *ctx_, const json_t *params, struct error *error)
{
	struct gen_ctx *ctx = ctx_;

	if (rpc_params_none(params, error))
		return NULL;
	__atomic_store_n(&ctx->gen->current->is_halted, true, __ATOMIC_RELAXED);
	return json_pack("{s:i}", "run", (int)ctx->gen->current->number);
}
