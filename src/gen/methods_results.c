// Frames sent and received in the current run, as JSON. Control thread; workers continue counting.
#include "gen/inside.h"
#include "gen/per_flow.h"

#include <math.h>
#include <rte_cycles.h>

// Reported if two workers failed to measure: far above any limit.
static const double OFFSET_UNKNOWN_NS = 1e9;

// Quarters of a nanosecond have short decimal fractions.
static double ns_of(const struct run *run, double cycles)
{
	return round(cycles * 1e9 / run->hz * 4) / 4;
}

static json_t *ns_json(const struct run *run, double cycles)
{
	return json_real(ns_of(run, cycles));
}

static json_t *us_json(const struct run *run, double cycles)
{
	return json_real(round(cycles * 1e6 / run->hz * 1000) / 1000);
}

static json_t *count_json(const uint64_t *counter)
{
	return json_integer(stats_read(counter));
}

// A part of what another counter counts. The worker writes the whole first, and here the part is
// read first: it is never more.
static json_t *part_json(const uint64_t *counter)
{
	return json_integer(stats_read_first(counter));
}

static json_t *buckets_json(const struct run *run, const struct histogram *h)
{
	json_t *list = json_array();
	uint64_t low, high;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t n = stats_read(&h->bucket[i]);

		if (!n)
			continue;
		histogram_bounds(i, &low, &high);
		json_array_append_new(list, json_pack("[f, f, I]", ns_of(run, low),
						    ns_of(run, high + 1), (json_int_t)n));
	}
	return list;
}

static json_t *latency_json(const struct run *run, const struct histogram *h, bool with_buckets)
{
	static const struct {
		const char *name;
		double share;
	} rows[] = {{"p50", .5}, {"p90", .9}, {"p99", .99}, {"p99_9", .999}, {"p99_99", .9999},
		{"p99_999", .99999}};
	uint64_t n = stats_read(&h->n);
	json_t *json = json_pack("{s:I}", "n", (json_int_t)n);

	json_object_set_new(json, "min", ns_json(run, n ? stats_read(&h->min) : 0));
	json_object_set_new(json, "mean", ns_json(run, n ? (double)stats_read(&h->sum) / n : 0));
	json_object_set_new(json, "max", ns_json(run, n ? stats_read(&h->max) : 0));
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		json_object_set_new(json, rows[i].name,
			ns_json(run, histogram_percentile(h, rows[i].share)));
	if (with_buckets)
		json_object_set_new(json, "histogram", buckets_json(run, h));
	return json;
}

static json_t *jitter_json(const struct run *run, const struct sink_counters *in)
{
	uint64_t n = stats_read(&in->n_jitter);
	json_t *json = json_pack("{s:I}", "n", (json_int_t)n);

	json_object_set_new(json, "mean",
		ns_json(run, n ? (double)stats_read(&in->jitter_sum) / n : 0));
	json_object_set_new(json, "max", ns_json(run, stats_read(&in->jitter_max)));
	return json;
}

// Frames divided by the time from when the first one was due to when the last one was sent; for
// bursts, whose frames are due together, the last burst is excluded. Without a rate no frame is
// due, so the time of the first frame sent is used.
static double offered_pps(const struct run *run, const struct gen_stream *stream,
	const struct sender_counters *out)
{
	uint64_t sent = stats_read(&out->sent) + stats_read(&out->unstamped);
	uint64_t first = stream->pps > 0 ? run->start : stats_read(&out->first_tsc);
	uint64_t last = stats_read(&out->last_tsc);
	unsigned burst = stream->pps > 0 ? MAX_OF(1, stream->burst) : 1;

	if (sent < 2 || last <= first)
		return 0;
	return (sent - 1) / burst * burst * (double)run->hz / (last - first);
}

static void set_sender(json_t *json, const struct run *run, unsigned i,
	const struct sender_counters *out)
{
	const struct gen_stream *stream = &run->streams.stream[i];

	json_object_set_new(json, "asked_pps", json_real(stream->pps));
	json_object_set_new(json, "offered_pps", json_real(offered_pps(run, stream, out)));
	json_object_set_new(json, "sent_bytes", count_json(&out->sent_bytes));
	json_object_set_new(json, "unstamped", count_json(&out->unstamped));
	json_object_set_new(json, "refused", part_json(&out->refused));
	json_object_set_new(json, "busy", part_json(&out->busy));
	json_object_set_new(json, "late", count_json(&out->late));
	json_object_set_new(json, "longest_lag_us", us_json(run, stats_read(&out->longest_lag)));
}

static double received_pps(const struct run *run, const struct sink_counters *in)
{
	uint64_t n = stats_read(&in->received), first = stats_read(&in->first_tsc);
	uint64_t last = stats_read(&in->last_tsc);

	return n > 1 && last > first ? (n - 1) * (double)run->hz / (last - first) : 0;
}

// The number of flows in a capture is unknown.
static bool has_order_per_flow(const struct gen_stream *stream)
{
	return stream->n_flows <= GEN_FLOWS_IN_ORDER && !stream->capture.path[0];
}

static void set_received(json_t *json, const struct run *run, unsigned i)
{
	const struct sink_counters *in = &run->received[i]->counters;

	json_object_set_new(json, "received_bytes", count_json(&in->received_bytes));
	json_object_set_new(json, "received_pps", json_real(received_pps(run, in)));
	json_object_set_new(json, "duplicated", count_json(&in->duplicated));
	json_object_set_new(json, "reordered", count_json(&in->reordered));
	json_object_set_new(json, "reordered_per",
		json_string(has_order_per_flow(&run->streams.stream[i]) ? "flow" : "stream"));
	json_object_set_new(json, "corrupted", count_json(&in->corrupted));
	json_object_set_new(json, "too_old", count_json(&in->too_old));
	json_object_set_new(json, "longest_silence_us",
		us_json(run, stats_read(&in->longest_silence)));
	json_object_set_new(json, "longest_outage_us",
		us_json(run, stats_read(&in->longest_outage)));
}

// The receiving side is read first, so that no frame appears to be received before it was sent. A
// burst may arrive before its sender has counted it: while sending, at least those are sent whose
// numbers have arrived. For a stream sent by another program, that is all that is known.
static void set_lost(json_t *json, const struct run *run, unsigned i)
{
	const struct gen_stream *stream = &run->streams.stream[i];
	const struct sink_counters *in = &run->received[i]->counters;
	json_int_t received = stats_read_first(&in->received), missing = stats_read(&in->missing);
	json_int_t highest = stats_read_first(&in->highest), sent = highest;

	if (!stream->is_receive_only) {
		bool is_sent = run_is_sent(run);
		json_int_t counted = stats_read(&sender_counters(run->sender[i])->sent);

		sent = is_sent ? counted : MAX_OF(counted, highest);
	}
	json_object_set_new(json, "received", json_integer(received));
	json_object_set_new(json, "sent", json_integer(sent));
	json_object_set_new(json, "lost", json_integer(sent - received));
	json_object_set_new(json, "lost_by_gaps",
		json_integer(missing + MAX_OF(0, sent - highest)));
	json_int_t gap_end = sent > highest ? sent : (json_int_t)stats_read(&in->gap_end);
	json_object_set_new(json, "last_lost", gap_end ? json_integer(gap_end - 1) : json_null());
}

static json_t *action_json(const struct gen *gen, struct expect_action action)
{
	return json_pack("{s:o, s:i}", "port",
		rpc_text_json(gen->settings->ports[action.port].name), "dscp", (int)action.dscp);
}

static json_t *wrong_json(const struct gen *gen, const struct per_flow *p)
{
	const struct gen_expect *expect = &p->stream->expect;
	const struct per_flow_wrong *wrong = &p->wrong;

	if (!__atomic_load_n(&wrong->is_known, __ATOMIC_ACQUIRE))
		return json_null();
	return json_pack("{s:I, s:I, s:o, s:s, s:I, s:o}", "sequence", (json_int_t)wrong->sequence,
		"flow", (json_int_t)wrong->flow, "found", action_json(gen, wrong->found), "encap",
		gen_encap_word(wrong->encap), "encap_id", (json_int_t)wrong->encap_id, "expected",
		action_json(gen, expect_action(expect, expect->secret, wrong->flow)));
}

static json_t *expect_json(const struct gen *gen, const struct per_flow *p)
{
	const struct per_flow_counters *c = &p->counters;
	json_t *json = json_object();

	json_object_set_new(json, "alternative", part_json(&c->alternative));
	json_object_set_new(json, "wrong_port", part_json(&c->wrong_port));
	json_object_set_new(json, "wrong_dscp", part_json(&c->wrong_dscp));
	json_object_set_new(json, "wrong_encap", part_json(&c->wrong_encap));
	json_object_set_new(json, "wrong_tuple", part_json(&c->wrong_tuple));
	json_object_set_new(json, "checked", count_json(&c->checked));
	json_object_set_new(json, "first_wrong", wrong_json(gen, p));
	return json;
}

static json_t *stream_json(const struct gen *gen, unsigned i, bool with_buckets)
{
	static const struct sender_counters nothing;
	const struct run *run = gen->current;
	const struct gen_stream *stream = &run->streams.stream[i];
	const struct port_settings *ports = gen->settings->ports;
	json_t *json = json_pack("{s:s, s:i, s:o, s:o, s:I}", "name", stream->name, "id",
		(int)stream->id, "from_port",
		rpc_text_json(stream->is_receive_only ? "" : ports[stream->from].name), "to_port",
		rpc_text_json(ports[stream->to].name), "flows", (json_int_t)stream->n_flows);

	set_received(json, run, i);
	set_sender(json, run, i,
		stream->is_receive_only ? &nothing : sender_counters(run->sender[i]));
	set_lost(json, run, i);
	json_object_set_new(json, "latency",
		latency_json(run, &run->received[i]->due, with_buckets));
	json_object_set_new(json, "latency_from_sending",
		latency_json(run, &run->received[i]->sent, with_buckets));
	json_object_set_new(json, "jitter", jitter_json(run, &run->received[i]->counters));
	if (stream->expect.n_ports)
		json_object_set_new(json, "expect", expect_json(gen, run->received[i]->per_flow));
	return json;
}

json_t *gen_port_json(const struct gen *gen, unsigned i)
{
	const struct run *run = gen->current;
	const struct sink_port *counters = &run->port[i].counters;
	struct port_info info;
	char mac[WIRE_MAC_TEXT];

	port_info(gen->ports, i, &info);
	json_t *json = json_pack("{s:o, s:o, s:s, s:b, s:f, s:b}", "name",
		rpc_text_json(gen->settings->ports[i].name), "device",
		rpc_text_json(gen->settings->ports[i].device), "mac",
		wire_mac_print(&info.mac, mac), "link_up", info.link_up, "line_bps", info.line_bps,
		"has_backpressure", info.has_backpressure);
	json_object_set_new(json, "driver", rpc_text_json(info.driver));
	json_object_set_new(json, "mtu", json_integer(info.mtu));
	json_object_set_new(json, "numa", json_integer(info.numa));
	json_object_set_new(json, "worker", json_integer(gen->worker_of[i]));
	json_object_set_new(json, "rx_ring_slots", json_integer(info.rx_ring_slots));
	json_object_set_new(json, "answered", part_json(&counters->answered));
	json_object_set_new(json, "neighbours", part_json(&counters->neighbours));
	json_object_set_new(json, "foreign", part_json(&counters->foreign));
	json_object_set_new(json, "stale", part_json(&counters->stale));
	json_object_set_new(json, "misdirected", part_json(&counters->misdirected));
	json_object_set_new(json, "rx_packets", count_json(&counters->rx_packets));
	json_object_set_new(json, "rx_bytes", count_json(&counters->rx_bytes));
	json_object_set_new(json, "late_polls", count_json(&counters->late_polls));
	json_object_set_new(json, "longest_gap_us",
		us_json(run, stats_read(&counters->longest_gap)));
	json_object_set_new(json, "rx_missed",
		rpc_count_json(info.rx_missed - run->port[i].missed_before,
			!(info.uncounted & PORT_RX_MISSED)));
	json_object_set_new(json, "rx_no_mbuf",
		rpc_count_json(info.rx_no_mbuf, !(info.uncounted & PORT_RX_NO_MBUF)));
	json_object_set_new(json, "rx_errors",
		rpc_count_json(info.rx_errors, !(info.uncounted & PORT_RX_ERRORS)));
	json_object_set_new(json, "tx_errors",
		rpc_count_json(info.tx_errors, !(info.uncounted & PORT_TX_ERRORS)));
	return json;
}

static json_t *worker_json(const struct gen *gen, unsigned i)
{
	const struct run_part *part = &gen->current->part[i];

	return json_pack("{s:i, s:i, s:i, s:o, s:I}", "worker", (int)i, "core",
		gen->worker[i].io->core, "numa", gen->worker[i].io->numa, "longest_gap_us",
		us_json(gen->current, stats_read(&part->longest_gap)), "rounds",
		(json_int_t)stats_read(&part->rounds));
}

static double seconds_of(const struct run *run)
{
	uint64_t sent = run_sent_tsc(run), now = sent ? sent : rte_rdtsc();

	return run->start && now > run->start ? (double)(now - run->start) / run->hz : 0;
}

static double offset_ns(const struct run *run, enum gen_state state)
{
	double largest = 0;

	for (unsigned i = 0; i < run->n_pairs; i++)
		largest = MAX_OF(largest, (double)stats_read(&run->pair[i].largest));
	bool is_known = run->is_measured_before;

	if (state == GEN_DONE)
		is_known &= run_has_measured_since(run);
	return run->n_pairs && !is_known ? OFFSET_UNKNOWN_NS : ns_of(run, largest);
}

json_t *gen_method_results(void *ctx_, const json_t *params, struct error *error)
{
	const struct gen_ctx *ctx = ctx_;
	struct gen *gen = ctx->gen;
	bool with_buckets = false;
	bool with_timeline = false;
	const struct rpc_param rows[] = {{"histograms", RPC_FLAG, false, 0, 0, &with_buckets},
		{"timeline", RPC_FLAG, false, 0, 0, &with_timeline}};

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error))
		return NULL;
	enum gen_state state = gen_state(gen);
	const struct run *run = gen->current;
	json_t *streams = json_array(), *ports = json_array(), *workers = json_array();
	for (unsigned i = 0; i < run->streams.n; i++)
		json_array_append_new(streams, stream_json(gen, i, with_buckets));
	for (unsigned i = 0; i < run->n_ports; i++)
		json_array_append_new(ports, gen_port_json(gen, i));
	for (unsigned i = 0; i < run->n_workers; i++)
		json_array_append_new(workers, worker_json(gen, i));
	json_t *json = json_pack("{s:i, s:s, s:f, s:I, s:f, s:o, s:o, s:o}", "run",
		(int)run->number, "state", gen_state_word(state), "seconds", seconds_of(run),
		"tsc_hz", (json_int_t)run->hz, "tsc_offset_ns", offset_ns(run, state), "streams",
		streams, "ports", ports, "workers", workers);
	if (with_timeline)
		json_object_set_new(json, "timeline", gen_timeline_json(ctx));
	return json;
}
