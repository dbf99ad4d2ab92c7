// Fields that form flows: a single value, or several from the first one upwards. Control thread.
#include "gen/read.h"

#include "base/bits.h"
#include "gen/fields.h"
#include "wire/headers.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

static const char *const wanted[GEN_N_FIELDS] = {
	[GEN_SRC_MAC] = "a MAC address like 02:00:00:00:00:01",
	[GEN_DST_MAC] = "a MAC address like 02:00:00:00:00:01",
	[GEN_SRC_IP] = "an address like 198.18.0.1 or 2001:2:0:1::1",
	[GEN_DST_IP] = "an address like 198.19.0.1 or 2001:2:0:2::1",
	[GEN_SRC_PORT] = "a number from 0 to 65535",
	[GEN_DST_PORT] = "a number from 0 to 65535",
	[GEN_INNER_SRC_MAC] = "a MAC address like 02:00:00:00:00:01",
	[GEN_INNER_DST_MAC] = "a MAC address like 02:00:00:00:00:01",
};

static bool is_port(unsigned field)
{
	return field == GEN_SRC_PORT || field == GEN_DST_PORT;
}

static bool parse_first(struct gen_stream *stream, unsigned field, const char *text)
{
	struct wire_recipe *recipe = &stream->recipe;

	switch (field) {
	case GEN_SRC_MAC:
		return !wire_mac_parse(text, &recipe->src_mac);
	case GEN_DST_MAC:
		return !wire_mac_parse(text, &recipe->dst_mac);
	case GEN_SRC_IP:
		return !wire_addr_parse(text, &recipe->src);
	case GEN_DST_IP:
		return !wire_addr_parse(text, &recipe->dst);
	case GEN_INNER_SRC_MAC:
		return !wire_mac_parse(text, &stream->encap.inner_src);
	default:
		return !wire_mac_parse(text, &stream->encap.inner_dst);
	}
}

static int read_first(struct stream_reader *r, const json_t *value)
{
	struct wire_recipe *recipe = &r->stream->recipe;
	uint64_t number;

	if (!value)
		return read_mistake(r, NULL, "missing; expected {first: VALUE, count: N}");
	if (!is_port(r->field))
		return parse_first(r->stream, r->field, read_text(value))
		               ? 0
		               : read_mistake(r, value, "expected %s", wanted[r->field]);
	int err = read_number(r, value, 0, 65535, &number);
	if (!err)
		*(r->field == GEN_SRC_PORT ? &recipe->src_port : &recipe->dst_port) = number;
	return err;
}

// Counting up must not overflow the field's bits.
static int read_count(struct stream_reader *r, const json_t *value)
{
	uint64_t most =
		(is_port(r->field) ? 1u << 16 : 1ull << 32) - fields_first(r->stream, r->field);
	uint64_t count;

	if (!value)
		return read_mistake(r, NULL, "missing; expected {first: VALUE, count: N}");
	int err = read_number(r, value, 1, GEN_MAX_FLOWS, &count);
	if (err)
		return err;
	r->stream->fields[r->field].count = count;
	if (count <= most)
		return 0;
	return read_mistake(r, value,
		"expected at most %llu, so that the last value %s; lower first or count",
		(unsigned long long)most,
		is_port(r->field) ? "is a valid port" : "fits in 32 bits");
}

static int read_random(struct stream_reader *r, const json_t *value)
{
	return value ? read_boolean(r, value, &r->stream->fields[r->field].is_random) : 0;
}

int read_field(struct stream_reader *r, unsigned field, const json_t *value)
{
	static const struct stream_key keys[] = {{"first", read_first}, {"count", read_count},
		{"random", read_random}};

	r->field = field;
	if (!value)
		return 0;
	if (json_is_array(value))
		return read_mistake(r, value, "expected %s or {first: VALUE, count: N}",
			wanted[field]);
	if (json_is_object(value))
		return read_map(r, value, keys, ARRAY_LEN(keys));
	return read_first(r, value);
}

int read_src_mac(struct stream_reader *r, const json_t *value)
{
	struct gen_stream *s = r->stream;
	int err = read_field(r, GEN_SRC_MAC, value);

	s->capture.sets_src_mac = value != NULL;
	if (!value && r->ports && !s->is_receive_only)
		s->recipe.src_mac = r->ports[s->from].mac;
	if (!err && value && s->recipe.src_mac.bytes[0] & 1)
		err = read_mistake(r, json_is_string(value) ? value : NULL,
			"a multicast address cannot be a source; expected a unicast MAC address");
	return err;
}

int read_dst_mac(struct stream_reader *r, const json_t *value)
{
	r->stream->capture.sets_dst_mac = value != NULL;
	if (!value && r->stream->capture.path[0])
		return 0;
	if (!value && !r->stream->is_receive_only)
		return read_mistake(r, NULL,
			"missing; expected the destination MAC address, or auto");
	r->stream->wants_mac = !strcmp(read_text(value), "auto");
	if (r->stream->wants_mac)
		return 0;
	return read_field(r, GEN_DST_MAC, value);
}

int read_src_ip(struct stream_reader *r, const json_t *value)
{
	r->stream->recipe.src.family = 0; // until an address is given
	return read_field(r, GEN_SRC_IP, value);
}

static int check_source(struct stream_reader *r)
{
	struct gen_stream *s = r->stream;
	uint8_t first = s->recipe.src.bytes[0];
	const json_t *value = json_object_get(r->map, "src_ip");
	uint32_t last = fields_first(s, GEN_SRC_IP) + s->fields[GEN_SRC_IP].count - 1;

	if (s->recipe.src.family == 6 ? first != 0xff : last >> 24 < 224)
		return 0;
	r->key = "src_ip";
	return read_mistake(r, json_is_string(value) ? value : NULL,
		"%s cannot be a source; expected the address of a host",
		s->recipe.src.family == 4 && last >> 24 >= 240
			? "a reserved address (240.0.0.0 and above)"
			: "a multicast address");
}

// Defaults from the benchmarking address blocks: 198.18.0.0/15 (RFC 2544), 2001:2::/48 (RFC 5180).
int read_dst_ip(struct stream_reader *r, const json_t *value)
{
	struct wire_addr *src = &r->stream->recipe.src, *dst = &r->stream->recipe.dst;

	dst->family = 0;
	int err = read_field(r, GEN_DST_IP, value);
	if (err)
		return err;
	uint8_t family = MAX_OF(src->family, dst->family);
	if (src->family && dst->family && src->family != dst->family)
		return read_mistake(r, json_is_string(value) ? value : NULL,
			"IPv%u, but src_ip is IPv%u; expected the same family", dst->family,
			src->family);
	if (!src->family)
		wire_addr_parse(family == 6 ? "2001:2:0:1::1" : "198.18.0.1", src);
	if (!dst->family)
		wire_addr_parse(family == 6 ? "2001:2:0:2::1" : "198.19.0.1", dst);
	return check_source(r);
}

int read_src_port(struct stream_reader *r, const json_t *value)
{
	r->stream->recipe.src_port = 49152;
	return read_field(r, GEN_SRC_PORT, value);
}

// The default is the discard port (RFC 863).
int read_dst_port(struct stream_reader *r, const json_t *value)
{
	r->stream->recipe.dst_port = 9;
	return read_field(r, GEN_DST_PORT, value);
}

uint32_t gen_most_flows(const struct gen_stream *stream)
{
	uint64_t most = 1;

	for (unsigned field = 0; field < GEN_N_FIELDS; field++)
		most = MIN_OF(most * stream->fields[field].count, (uint64_t)GEN_MAX_FLOWS);
	return most;
}

int read_flows(struct stream_reader *r, const json_t *value)
{
	uint32_t most = gen_most_flows(r->stream);
	uint64_t number = most;
	int err = value ? read_number(r, value, 1, GEN_MAX_FLOWS, &number) : 0;

	if (!err && number > most)
		err = read_mistake(r, value,
			"expected at most %u, the number of combinations of the fields; raise the "
			"count of src_ip, dst_ip or a port",
			most);
	r->stream->n_flows = number;
	return err;
}

static const char *const distributions[] =
	{[GEN_SEQUENTIAL] = "sequential", [GEN_UNIFORM] = "uniform", [GEN_ZIPF] = "zipf"};

const char *gen_distribution_word(unsigned distribution)
{
	return distributions[distribution];
}

int read_distribution(struct stream_reader *r, const json_t *value)
{
	for (unsigned i = 0; value && i < ARRAY_LEN(distributions); i++)
		if (!strcmp(read_text(value), distributions[i])) {
			r->stream->distribution = i;
			return 0;
		}
	return value ? read_mistake(r, value, "expected sequential, uniform or zipf") : 0;
}

int read_exponent(struct stream_reader *r, const json_t *value)
{
	r->stream->exponent = 1;
	if (!value)
		return 0;
	if (r->stream->distribution != GEN_ZIPF)
		return read_mistake(r, value, "requires \"distribution: zipf\"");
	r->stream->exponent = json_number_value(value);
	if (r->stream->exponent >= 0.01 && r->stream->exponent <= 10)
		return 0;
	return read_mistake(r, value, "expected a number from 0.01 to 10");
}

int read_seed(struct stream_reader *r, const json_t *value)
{
	uint64_t seed = 1;

	if (value && r->stream->distribution == GEN_SEQUENTIAL)
		return read_mistake(r, value, "requires \"distribution: uniform\" or zipf");
	int err = value ? read_number(r, value, 0, UINT32_MAX, &seed) : 0;

	r->stream->seed = seed;
	return err;
}
