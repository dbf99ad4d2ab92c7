// The verbs that make runs: streams, send, halt. Control thread.
#include "load/inside.h"

#include "base/bits.h"

#include <errno.h>

enum { SECONDS_MOST = 86400, DELAY_MOST = 60 };
static const double SECONDS_LEAST = 0.001, DELAY_DEFAULT = 0.01;

json_t *load_verb_streams(void *house_, const json_t *params, struct complaint *why)
{
	const struct load_house *house = house_;

	if (ctl_params_none(params, why))
		return NULL;
	json_t *list = house->load->streams ? json_deep_copy(house->load->streams) : json_array();
	return json_pack("{s:o}", "streams", list);
}

static json_t *sizes_json(const struct load_stream *stream)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < stream->n_sizes; i++)
		json_array_append_new(list,
			json_pack("{s:i, s:i}", "size", (int)stream->sizes[i].bytes, "weight",
				(int)stream->sizes[i].weight));
	return list;
}

// How many of its frames are stamped is told here: only these can be received and lost.
static json_t *capture_json(const struct load_capture *capture)
{
	return json_pack("{s:o, s:I, s:I, s:f, s:f}", "file", ctl_text_json(capture->path),
		"frames", (json_int_t)capture->n_frames, "stamped", (json_int_t)capture->n_stamped,
		"seconds", capture->lap_ns / 1e9, "speed", capture->speed);
}

static json_t *stream_json(const struct load *load, const struct load_stream *stream)
{
	const struct port_settings *ports = load->settings->ports;
	json_t *from =
		stream->is_receive_only ? json_null() : ctl_text_json(ports[stream->from].name);
	json_t *json = json_pack("{s:s, s:i, s:o, s:o, s:b}", "name", stream->name, "id",
		(int)stream->id, "from_port", from, "to_port",
		ctl_text_json(ports[stream->to].name), "receive_only", stream->is_receive_only);

	json_object_set_new(json, "flows", json_integer(stream->n_flows));
	json_object_set_new(json, "distribution",
		json_string(load_distribution_word(stream->distribution)));
	json_object_set_new(json, "exponent", json_real(stream->exponent));
	json_object_set_new(json, "seed", json_integer(stream->seed));
	json_object_set_new(json, "sizes", sizes_json(stream));
	json_object_set_new(json, "mean_bytes", json_real(load_mean_bytes(stream)));
	json_object_set_new(json, "pps", json_real(stream->pps));
	json_object_set_new(json, "burst", json_integer(stream->burst));
	json_object_set_new(json, "catch_up", json_integer(stream->catch_up));
	json_object_set_new(json, "frames", json_integer(stream->n_frames));
	if (stream->capture.path[0])
		json_object_set_new(json, "pcap", capture_json(&stream->capture));
	return json;
}

static json_t *started_json(const struct load *load)
{
	const struct run *run = load->current;
	json_t *list = json_array();

	for (unsigned i = 0; i < run->streams.n; i++)
		json_array_append_new(list, stream_json(load, &run->streams.stream[i]));
	return json_pack("{s:i, s:o}", "run", (int)run->number, "streams", list);
}

json_t *load_verb_send(void *house_, const json_t *params, struct complaint *why)
{
	struct load_house *house = house_;
	struct load_order order = {.delay_s = DELAY_DEFAULT};
	const struct ctl_param rows[] = {
		{"streams", CTL_LIST, false, 1, LOAD_MAX_STREAMS, &order.streams},
		{"seconds", CTL_REAL, false, 0, SECONDS_MOST, &order.seconds},
		{"delay", CTL_REAL, false, 0, DELAY_MOST, &order.delay_s},
	};

	if (ctl_params_read(params, rows, ARRAY_LEN(rows), why))
		return NULL;
	if (json_object_get(params, "seconds") && order.seconds < SECONDS_LEAST) {
		complain(why, -EINVAL,
			"parameter \"seconds\" is %g; a number from %g to %d is wanted",
			order.seconds, SECONDS_LEAST, SECONDS_MOST);
		return NULL;
	}
	return load_send(house->load, &order, why) ? NULL : started_json(house->load);
}

json_t *load_verb_halt(void *house_, const json_t *params, struct complaint *why)
{
	struct load_house *house = house_;

	if (ctl_params_none(params, why))
		return NULL;
	__atomic_store_n(&house->load->current->is_halted, true, __ATOMIC_RELAXED);
	return json_pack("{s:i}", "run", (int)house->load->current->number);
}
