// Parses a list of streams into struct gen_streams. The keys are listed in one table, in the order
// in which they are read. Control thread.
#include "gen/read.h"

#include "base/bits.h"
#include "base/nearest.h"
#include "wire/headers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static unsigned place(const struct stream_reader *r)
{
	return r->stream - r->streams->stream;
}

static bool is_name(const char *text)
{
	size_t n =
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");

	return n && !text[n] && n < GEN_NAME_MAX;
}

static int read_name(struct stream_reader *r, const json_t *value)
{
	char text[GEN_NAME_MAX];

	if (!value)
		snprintf(text, sizeof(text), "stream%u", place(r));
	else if (json_is_integer(value))
		snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(value));
	else if (is_name(read_text(value)))
		strcpy(text, read_text(value));
	else
		return read_mistake(r, value, "expected 1 to %d letters, digits and -_.",
			GEN_NAME_MAX - 1);
	for (unsigned i = 0; i < place(r); i++)
		if (!strcmp(r->streams->stream[i].name, text))
			return read_mistake(r, value,
				"%s is already the name of streams[%u]; choose another", text, i);
	strcpy(r->stream->name, text);
	if (value)
		snprintf(r->where, sizeof(r->where), "streams[%u] (%s)", place(r), text);
	return 0;
}

static int read_id(struct stream_reader *r, const json_t *value)
{
	uint64_t id = place(r);
	int err = value ? read_number(r, value, 0, GEN_MAX_IDS - 1, &id) : 0;

	for (unsigned i = 0; !err && i < place(r); i++)
		if (r->streams->stream[i].id == id)
			err = read_mistake(r, value,
				"%u is already the id of streams[%u], so their stamps would be "
				"ambiguous; choose another",
				(unsigned)id, i);
	r->stream->id = id;
	return err;
}

static int unknown_port(struct stream_reader *r, const json_t *value)
{
	size_t stride = sizeof(r->ports[0]), used = 0;
	const char *nearest =
		r->ports && r->n_ports
			? nearest_word(read_text(value), &r->ports[0].name, r->n_ports, stride)
			: "";
	char known[256] = "";

	if (nearest[0])
		return read_mistake(r, value, "unknown port; did you mean \"%s\"?", nearest);
	for (unsigned i = 0; r->ports && i < r->n_ports && used < sizeof(known); i++)
		used += snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
			r->ports[i].name);
	return read_mistake(r, value, "unknown port; expected the name of a port%s%s",
		known[0] ? ": " : "", known);
}

int read_port(struct stream_reader *r, const json_t *value, uint8_t *out)
{
	const char *name = read_text(value);

	if (!r->ports && name[0])
		return 0;
	for (unsigned i = 0; r->ports && i < r->n_ports; i++)
		if (!strcmp(r->ports[i].name, name)) {
			*out = i;
			return 0;
		}
	return unknown_port(r, value);
}

static int read_to(struct stream_reader *r, const json_t *value)
{
	if (!value)
		return read_mistake(r, NULL, "missing; expected the receiving port");
	return read_port(r, value, &r->stream->to);
}

// Read after `to`: a stream that is only received uses the port number of `to`.
static int read_from(struct stream_reader *r, const json_t *value)
{
	r->stream->is_receive_only = !value;
	r->stream->from = r->stream->to;
	return value ? read_port(r, value, &r->stream->from) : 0;
}

static int read_protocol(struct stream_reader *r, const json_t *value)
{
	bool is_tcp = !strcmp(read_text(value), "tcp");

	if (value && !is_tcp && strcmp(read_text(value), "udp"))
		return read_mistake(r, value, "expected udp or tcp");
	r->stream->recipe.protocol = is_tcp ? WIRE_PROTO_TCP : WIRE_PROTO_UDP;
	return 0;
}

static int read_vlan_id(struct stream_reader *r, const json_t *value)
{
	uint64_t id = 0;
	int err = value ? read_number(r, value, 0, 4095, &id)
	                : read_mistake(r, NULL, "missing; expected {id: 5, priority: 3}");

	r->stream->recipe.vlan_tag = id;
	return err;
}

static int read_vlan_priority(struct stream_reader *r, const json_t *value)
{
	uint64_t priority = 0;
	int err = value ? read_number(r, value, 0, 7, &priority) : 0;

	r->stream->recipe.vlan_tag |= priority << 13;
	return err;
}

static int read_vlan(struct stream_reader *r, const json_t *value)
{
	static const struct stream_key keys[] = {{"id", read_vlan_id},
		{"priority", read_vlan_priority}};

	r->stream->recipe.has_vlan = value;
	if (json_is_object(value))
		return read_map(r, value, keys, ARRAY_LEN(keys));
	return value ? read_vlan_id(r, value) : 0;
}

static int read_ttl(struct stream_reader *r, const json_t *value)
{
	uint64_t ttl = 64;
	int err = value ? read_number(r, value, 1, 255, &ttl) : 0;

	r->stream->recipe.ttl = ttl;
	return err;
}

static int read_dscp(struct stream_reader *r, const json_t *value)
{
	uint64_t dscp = 0;
	int err = value ? read_number(r, value, 0, 63, &dscp) : 0;

	r->stream->recipe.dscp_ecn = dscp << 2;
	return err;
}

static int check_sends(struct stream_reader *r, const json_t *value)
{
	if (!value || !r->stream->is_receive_only)
		return 0;
	return read_mistake(r, value,
		"a stream without \"from: PORT\" sends nothing; add that, or remove %s", r->key);
}

static int read_burst(struct stream_reader *r, const json_t *value)
{
	uint64_t burst = 1;
	int err = check_sends(r, value);

	if (!err && value)
		err = read_number(r, value, 1, GEN_MAX_BURST, &burst);
	r->stream->burst = burst;
	return err;
}

static int read_catch_up(struct stream_reader *r, const json_t *value)
{
	uint64_t n = GEN_MAX_BURST;
	int err = check_sends(r, value);

	if (!err && value)
		err = read_number(r, value, n, GEN_MAX_CATCH_UP, &n);
	r->stream->catch_up = n;
	return err;
}

// Limited by the stamp's sequence number.
static int read_frames(struct stream_reader *r, const json_t *value)
{
	int err = check_sends(r, value);

	if (err || !value)
		return err;
	return read_number(r, value, 1, 1ull << 40, &r->stream->n_frames);
}

static const struct stream_key keys[] = {
	{"name", read_name}, {"id", read_id}, {"to", read_to}, {"from", read_from},
	{"pcap", read_pcap}, {"stamp", read_stamp}, {"protocol", read_protocol},
	{"vlan", read_vlan}, {"ttl", read_ttl}, {"dscp", read_dscp}, {"src_mac", read_src_mac},
	{"dst_mac", read_dst_mac}, {"src_ip", read_src_ip}, {"dst_ip", read_dst_ip},
	{"src_port", read_src_port}, {"dst_port", read_dst_port}, {"encap", read_encap},
	{"flows", read_flows}, {"distribution", read_distribution}, {"exponent", read_exponent},
	{"seed", read_seed}, {"count_flows", read_count_flows}, {"log_arrivals", read_log_arrivals},
	{"expect", read_expect}, {"size", read_size}, {"rate", read_rate}, {"burst", read_burst},
	{"catch_up", read_catch_up}, {"frames", read_frames}, {"loops", read_loops}, // after frames
};

static int read_stream(struct stream_reader *r, const json_t *map)
{
	struct gen_stream *s = r->stream;

	*s = (struct gen_stream){.recipe = wire_recipe(4)};
	for (unsigned name = 0; name < GEN_N_FIELDS; name++)
		s->fields[name].count = 1;
	r->map = map;
	snprintf(r->where, sizeof(r->where), "streams[%u]", place(r));
	if (!json_is_object(map))
		return error_set(r->error, -EINVAL, "%s: expected a map (key: value)", r->where);
	if (is_name(read_text(json_object_get(map, "name"))))
		snprintf(r->where, sizeof(r->where), "streams[%u] (%s)", place(r),
			read_text(json_object_get(map, "name")));
	return read_map(r, map, keys, ARRAY_LEN(keys));
}

int gen_read_streams(struct gen_streams *out, const json_t *list, const struct gen_port ports[],
	unsigned n_ports, struct error *error)
{
	struct stream_reader r = {
		.ports = ports,
		.n_ports = n_ports,
		.streams = out,
		.error = error,
	};
	int err = 0;

	if (!json_is_array(list))
		return error_set(error, -EINVAL, "streams: expected a list of streams");
	if (!json_array_size(list) || json_array_size(list) > GEN_MAX_STREAMS)
		return error_set(error, -EINVAL, "streams: %zu of them; expected 1 to %d",
			json_array_size(list), GEN_MAX_STREAMS);
	out->n = json_array_size(list);
	for (unsigned i = 0; i < out->n && !err; i++) {
		r.stream = &out->stream[i];
		err = read_stream(&r, json_array_get(list, i));
	}
	return err;
}
