// Frame sizes: a single one, a named mix, or a list. Control thread.
#include "gen/read.h"

#include "base/bits.h"
#include "gen/encap.h"
#include "wire/headers.h"
#include "wire/stamp.h"

#include <stdio.h>
#include <string.h>

enum { MAX_WEIGHT = 1000 };

// Named mixes of frame sizes: a new one needs a row here, and a name in MIXES of
// dl3/model/stream.py. Sizes include the FCS; weights are relative frequencies.
static const struct mix {
	const char *name;
	unsigned n_sizes;
	struct gen_size sizes[GEN_MAX_SIZES];
} mixes[] = {
	// 45, 23.5, 15, 11 and 5.5 % of the frames.
	{"imix", 5, {{64, 90}, {128, 47}, {256, 30}, {512, 22}, {1024, 11}}},
	// The mix of former Internet backbones.
	{"classic", 3, {{64, 7}, {570, 4}, {1518, 1}}},
};

unsigned gen_smallest_bytes(const struct gen_stream *stream)
{
	const struct wire_recipe *recipe = &stream->recipe;
	unsigned ip = recipe->src.family == 6 ? WIRE_IP6_BYTES : WIRE_IP4_BYTES;
	unsigned above = recipe->protocol == WIRE_PROTO_TCP
	                         ? WIRE_TCP_BYTES + STAMP_TCP_PAYLOAD_BYTES
	                         : WIRE_UDP_BYTES + STAMP_BYTES;
	unsigned least = WIRE_ETHER_BYTES + (recipe->has_vlan ? WIRE_VLAN_BYTES : 0) + ip + above +
	                 encap_bytes(&stream->encap);

	return MAX_OF(least + WIRE_FCS_BYTES, (unsigned)GEN_MIN_SIZE);
}

double gen_mean_bytes(const struct gen_stream *stream)
{
	double bytes = 0, weight = 0;

	if (stream->capture.n_frames)
		return (double)stream->capture.n_bytes / stream->capture.n_frames + WIRE_FCS_BYTES;
	for (unsigned i = 0; i < stream->n_sizes; i++) {
		bytes += (double)stream->sizes[i].bytes * stream->sizes[i].weight;
		weight += stream->sizes[i].weight;
	}
	return bytes / weight;
}

// The largest frame for a port's MTU (0: unknown).
static unsigned largest_bytes(const struct gen_stream *stream, unsigned mtu)
{
	unsigned most = GEN_MAX_SIZE - (stream->recipe.has_vlan ? 0 : WIRE_VLAN_BYTES);
	unsigned around = most - 9600;

	return mtu && mtu + around < most ? mtu + around : most;
}

static int check_mtu(struct stream_reader *r, const json_t *value, unsigned port, unsigned bytes)
{
	const struct gen_port *p = &r->ports[port];
	unsigned most = largest_bytes(r->stream, p->mtu);

	if (bytes <= most)
		return 0;
	return read_mistake(r, value,
		"port %s accepts frames of up to %u bytes (its mtu is %u); expected \"mtu: %u\" "
		"there, or smaller frames",
		p->name, most, p->mtu, p->mtu + bytes - most);
}

int read_check_ports(struct stream_reader *r, const json_t *value, unsigned bytes)
{
	const struct gen_stream *s = r->stream;
	int err = 0;

	if (!r->ports)
		return 0;
	if (!s->is_receive_only)
		err = check_mtu(r, value, s->from, bytes);
	if (!err)
		err = check_mtu(r, value, s->to, bytes);
	for (unsigned i = 0; i < s->expect.n_ports && !err; i++)
		err = check_mtu(r, value, s->expect.port[i], bytes);
	return err;
}

static int check_size(struct stream_reader *r, const json_t *value, unsigned bytes)
{
	const struct gen_stream *s = r->stream;
	unsigned least = gen_smallest_bytes(s), most = largest_bytes(s, 0);
	char which[48] = "";

	if (!json_is_integer(value))
		snprintf(which, sizeof(which), "frames of %u bytes: ", bytes);
	if (bytes < GEN_MIN_SIZE)
		return read_mistake(r, value, "%sexpected at least %d bytes, including the FCS",
			which, GEN_MIN_SIZE);
	if (bytes < least)
		return read_mistake(r, value,
			"%sexpected at least %u bytes for the IPv%u and %s headers%s%s, the stamp "
			"and the FCS",
			which, least, s->recipe.src.family,
			s->recipe.protocol == WIRE_PROTO_TCP ? "TCP" : "UDP",
			s->recipe.has_vlan ? ", the VLAN tag" : "",
			s->encap.type ? ", the encapsulation" : "");
	if (bytes > most)
		return read_mistake(r, value,
			"%sexpected at most %u bytes: 9600 of IP, Ethernet%s and the FCS", which,
			most, s->recipe.has_vlan ? ", the VLAN tag" : "");
	return read_check_ports(r, value, bytes);
}

static int add_size(struct stream_reader *r, const json_t *value, struct gen_size size)
{
	int err = check_size(r, value, size.bytes);

	if (!err)
		r->stream->sizes[r->stream->n_sizes++] = size;
	return err;
}

static int add_mix(struct stream_reader *r, const json_t *value, const struct mix *mix)
{
	int err = 0;

	for (unsigned i = 0; i < mix->n_sizes && !err; i++)
		err = add_size(r, value, mix->sizes[i]);
	return err;
}

static int no_size(struct stream_reader *r, const json_t *value)
{
	char names[128] = "";
	size_t used = 0;

	for (unsigned i = 0; i < ARRAY_LEN(mixes) && used < sizeof(names); i++)
		used += snprintf(names + used, sizeof(names) - used, "%s, ", mixes[i].name);
	return read_mistake(r, value,
		"expected bytes from %d to %u, %sor a list of {size: 64, weight: 7}", GEN_MIN_SIZE,
		largest_bytes(r->stream, 0), names);
}

static int add_number(struct stream_reader *r, const json_t *value)
{
	uint64_t bytes;

	if (read_number(r, value, 0, 65535, &bytes))
		return no_size(r, value);
	return add_size(r, value, (struct gen_size){bytes, r->weight});
}

static int read_weight(struct stream_reader *r, const json_t *value)
{
	uint64_t weight = 1;
	int err = value ? read_number(r, value, 1, MAX_WEIGHT, &weight) : 0;

	r->weight = weight;
	return err;
}

static int read_member_size(struct stream_reader *r, const json_t *value)
{
	return value ? add_number(r, value)
	             : read_mistake(r, NULL, "missing; expected {size: 64, weight: 7}");
}

// {size: 64, weight: 7}, or the size alone.
static int add_member(struct stream_reader *r, const json_t *member)
{
	static const struct stream_key keys[] = {{"weight", read_weight},
		{"size", read_member_size}};

	r->weight = 1;
	return json_is_object(member) ? read_map(r, member, keys, ARRAY_LEN(keys))
	                              : add_number(r, member);
}

static int add_list(struct stream_reader *r, const json_t *list)
{
	char member[32];
	int err = 0;

	if (!json_array_size(list) || json_array_size(list) > GEN_MAX_SIZES)
		return read_mistake(r, list, "it has %zu members; expected 1 to %d",
			json_array_size(list), GEN_MAX_SIZES);
	r->key = member;
	for (size_t i = 0; i < json_array_size(list) && !err; i++) {
		snprintf(member, sizeof(member), "size[%zu]", i);
		err = add_member(r, json_array_get(list, i));
	}
	r->key = "size";
	return err;
}

int read_size(struct stream_reader *r, const json_t *value)
{
	const char *text = read_text(value);
	int err = 0;

	r->weight = 1;
	if (r->stream->capture.path[0])
		return read_capture(r);
	if (!value)
		err = add_size(r, NULL, (struct gen_size){gen_smallest_bytes(r->stream), 1});
	else if (json_is_array(value))
		err = add_list(r, value);
	else if (json_is_number(value) || (text[0] >= '0' && text[0] <= '9'))
		err = add_number(r, value);
	else {
		for (unsigned i = 0; i < ARRAY_LEN(mixes) && !err; i++)
			if (!strcmp(text, mixes[i].name))
				err = add_mix(r, value, &mixes[i]);
		if (!err && !r->stream->n_sizes)
			err = no_size(r, value);
	}
	if (!err)
		r->stream->recipe.frame_bytes = r->stream->sizes[0].bytes - WIRE_FCS_BYTES;
	return err;
}
