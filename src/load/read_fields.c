// The fields that make flows: one value, or many from the first one upwards. Control thread.
#include "load/read.h"

#include "base/bits.h"
#include "wire/headers.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *key;
	const char *what;
} fields[LOAD_N_FIELDS] = {
	[LOAD_SRC_MAC] = {"src_mac", "a MAC address like 02:00:00:00:00:01"},
	[LOAD_DST_MAC] = {"dst_mac", "a MAC address like 02:00:00:00:00:01"},
	[LOAD_SRC_IP] = {"src_ip", "an address like 198.18.0.1 or 2001:2:0:1::1"},
	[LOAD_DST_IP] = {"dst_ip", "an address like 198.19.0.1 or 2001:2:0:2::1"},
	[LOAD_SRC_PORT] = {"src_port", "a number from 0 to 65535"},
	[LOAD_DST_PORT] = {"dst_port", "a number from 0 to 65535"},
};

static uint8_t *last_4(struct wire_addr *addr)
{
	return addr->bytes + (addr->family == 6 ? 12 : 0);
}

static uint32_t number_be(const uint8_t *bytes)
{
	uint32_t be;

	memcpy(&be, bytes, sizeof(be));
	return be32toh(be);
}

// The number of the first value, to which counting adds.
static uint32_t first_number(struct wire_recipe *recipe, unsigned name)
{
	switch (name) {
	case LOAD_SRC_MAC:
		return number_be(recipe->src_mac.bytes + 2);
	case LOAD_DST_MAC:
		return number_be(recipe->dst_mac.bytes + 2);
	case LOAD_SRC_IP:
		return number_be(last_4(&recipe->src));
	case LOAD_DST_IP:
		return number_be(last_4(&recipe->dst));
	case LOAD_SRC_PORT:
		return recipe->src_port;
	default:
		return recipe->dst_port;
	}
}

static bool parse_first(struct wire_recipe *recipe, unsigned name, const char *text)
{
	switch (name) {
	case LOAD_SRC_MAC:
		return !wire_mac_parse(text, &recipe->src_mac);
	case LOAD_DST_MAC:
		return !wire_mac_parse(text, &recipe->dst_mac);
	case LOAD_SRC_IP:
		return !wire_addr_parse(text, &recipe->src);
	default:
		return !wire_addr_parse(text, &recipe->dst);
	}
}

static int read_first(struct stream_reader *r, unsigned name, const char *key, const json_t *value)
{
	struct wire_recipe *recipe = &r->stream->recipe;
	uint64_t number;

	if (name != LOAD_SRC_PORT && name != LOAD_DST_PORT)
		return parse_first(recipe, name, read_text(value))
		               ? 0
		               : read_mistake(r, key, value, "%s is wanted", fields[name].what);
	int err = read_number(r, key, value, (struct read_range){0, 65535}, &number);
	if (!err)
		*(name == LOAD_SRC_PORT ? &recipe->src_port : &recipe->dst_port) = number;
	return err;
}

// Counting up never leaves the bits that it counts in.
static int check_last(struct stream_reader *r, unsigned name, const json_t *count)
{
	bool is_port = name == LOAD_SRC_PORT || name == LOAD_DST_PORT;
	uint64_t left = (is_port ? 1u << 16 : 1ull << 32) - first_number(&r->stream->recipe, name);

	if (r->stream->fields[name].count <= left)
		return 0;
	return read_mistake(r, "count", count,
		"at most %llu are wanted, from the first one to the last that %s; begin lower or "
		"count less far",
		(unsigned long long)left, is_port ? "a port can be" : "32 bits can hold");
}

// {first: VALUE, count: N, random: true}
static int read_range_map(struct stream_reader *r, unsigned name, const json_t *map)
{
	static const char *const keys[] = {"first", "count", "random"};
	struct load_field *field = &r->stream->fields[name];
	const json_t *first = json_object_get(map, "first");
	const json_t *count = json_object_get(map, "count");
	const json_t *random = json_object_get(map, "random");
	uint64_t number = 1;
	int err = read_keys(r, map, keys, ARRAY_LEN(keys), sizeof(keys[0]));

	if (err)
		return err;
	if (!first || !count)
		return read_mistake(r, first ? "count" : "first", NULL,
			"missing; {first: VALUE, count: N} is wanted");
	err = read_first(r, name, "first", first);
	if (!err)
		err = read_number(r, "count", count, (struct read_range){1, LOAD_MAX_FLOWS},
			&number);
	if (!err && random)
		err = read_boolean(r, "random", random, &field->is_random);
	field->count = number;
	return err ? err : check_last(r, name, count);
}

static int read_field(struct stream_reader *r, unsigned name, const json_t *value)
{
	const char *key = fields[name].key;

	if (!value)
		return 0;
	if (json_is_array(value))
		return read_mistake(r, key, value, "%s or {first: VALUE, count: N} is wanted",
			fields[name].what);
	if (!json_is_object(value))
		return read_first(r, name, key, value);
	snprintf(r->inside, sizeof(r->inside), "%s.", key);
	int err = read_range_map(r, name, value);
	r->inside[0] = 0;
	return err;
}

int read_src_mac(struct stream_reader *r, const json_t *value)
{
	struct load_stream *s = r->stream;
	int err = read_field(r, LOAD_SRC_MAC, value);

	if (!value && r->ports && !s->is_receive_only)
		s->recipe.src_mac = r->ports[s->from].mac;
	if (!err && value && s->recipe.src_mac.bytes[0] & 1)
		err = read_mistake(r, "src_mac", json_is_string(value) ? value : NULL,
			"a group address; no frame comes from one, the MAC address of one box is "
			"wanted");
	return err;
}

int read_dst_mac(struct stream_reader *r, const json_t *value)
{
	if (!value && !r->stream->is_receive_only)
		return read_mistake(r, "dst_mac", NULL,
			"missing; the MAC address that the frames are sent to is wanted");
	return read_field(r, LOAD_DST_MAC, value);
}

int read_src_ip(struct stream_reader *r, const json_t *value)
{
	r->stream->recipe.src.family = 0; // until one is given
	return read_field(r, LOAD_SRC_IP, value);
}

static int check_source(struct stream_reader *r)
{
	struct load_stream *s = r->stream;
	uint8_t first = s->recipe.src.bytes[0];
	const json_t *value = json_object_get(r->map, "src_ip");
	uint32_t last = first_number(&s->recipe, LOAD_SRC_IP) + s->fields[LOAD_SRC_IP].count - 1;

	if (s->recipe.src.family == 6 ? first != 0xff : last >> 24 < 224)
		return 0;
	return read_mistake(r, "src_ip", json_is_string(value) ? value : NULL,
		"%s; no packet comes from one, the address of a host is wanted",
		s->recipe.src.family == 4 && last >> 24 >= 240
			? "an address that no host has (240.0.0.0 and above)"
			: "a multicast address");
}

// Defaults from the blocks for benchmarks: 198.18.0.0/15 (RFC 2544), 2001:2::/48 (RFC 5180).
int read_dst_ip(struct stream_reader *r, const json_t *value)
{
	struct wire_addr *src = &r->stream->recipe.src, *dst = &r->stream->recipe.dst;

	dst->family = 0;
	int err = read_field(r, LOAD_DST_IP, value);
	if (err)
		return err;
	uint8_t family = MAX_OF(src->family, dst->family);
	if (src->family && dst->family && src->family != dst->family)
		return read_mistake(r, "dst_ip", json_is_string(value) ? value : NULL,
			"IPv%u, but src_ip is IPv%u; both of one family are wanted", dst->family,
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
	return read_field(r, LOAD_SRC_PORT, value);
}

// By default the port that throws away what it gets (RFC 863).
int read_dst_port(struct stream_reader *r, const json_t *value)
{
	r->stream->recipe.dst_port = 9;
	return read_field(r, LOAD_DST_PORT, value);
}

uint32_t load_most_flows(const struct load_stream *stream)
{
	uint64_t most = 1;

	for (unsigned name = 0; name < LOAD_N_FIELDS; name++)
		most = MIN_OF(most * stream->fields[name].count, (uint64_t)LOAD_MAX_FLOWS);
	return most;
}

int read_flows(struct stream_reader *r, const json_t *value)
{
	uint32_t most = load_most_flows(r->stream);
	uint64_t number = most;
	int err = value ? read_number(r, "flows", value, (struct read_range){1, LOAD_MAX_FLOWS},
				  &number)
	                : 0;

	if (!err && number > most)
		err = read_mistake(r, "flows", value,
			"the fields make only %u; let src_ip, dst_ip or a port count further",
			most);
	r->stream->n_flows = number;
	return err;
}
