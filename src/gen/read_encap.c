// The encapsulation of a stream, and the one expected on reception. Control thread.
#include "gen/read.h"

#include "base/bits.h"
#include "gen/encap.h"

#include <stdio.h>
#include <string.h>

enum {
	MOST_LABEL = (1 << 20) - 1,
	MOST_VNI = (1 << 24) - 1,
	SRC_PORT = 49152, // until the flows' own are computed
};

#define TYPES "mpls, mpls-udp, gre, gretap or vxlan"

static bool is_expected(const struct stream_reader *r)
{
	return r->encap != &r->stream->encap;
}

static bool is_in_udp(const struct stream_reader *r)
{
	return r->encap->type == GEN_MPLS_UDP || r->encap->type == GEN_VXLAN;
}

static bool has_ethernet(const struct stream_reader *r)
{
	return r->encap->type == GEN_GRETAP || r->encap->type == GEN_VXLAN;
}

static int no_such_key(struct stream_reader *r, const json_t *value)
{
	return read_mistake(r, value, "type %s has no %s; remove it",
		gen_encap_word(r->encap->type), r->key);
}

static int read_type(struct stream_reader *r, const json_t *value)
{
	if (!value)
		return read_mistake(r, NULL, "missing; expected " TYPES);
	for (unsigned i = GEN_MPLS; i <= GEN_VXLAN; i++)
		if (!strcmp(read_text(value), gen_encap_word(i))) {
			r->encap->type = i;
			return 0;
		}
	return read_mistake(r, value, "expected " TYPES);
}

static int read_first_id(struct stream_reader *r, const json_t *value)
{
	uint64_t id;

	if (!value)
		return read_mistake(r, NULL, "missing; expected {first: NUMBER, count: N}");
	int err = read_number(r, value, 0, r->most_id, &id);
	if (err)
		return err;
	r->encap->id = id;
	r->ids->count = 1;
	return 0;
}

static int read_id_count(struct stream_reader *r, const json_t *value)
{
	uint64_t most = (uint64_t)r->most_id + 1 - r->encap->id, count;

	if (!value)
		return read_mistake(r, NULL, "missing; expected {first: NUMBER, count: N}");
	int err = read_number(r, value, 1, GEN_MAX_FLOWS, &count);
	if (err)
		return err;
	if (count > most)
		return read_mistake(r, value,
			"expected at most %llu, so that the last value is at most %u; lower first "
			"or count",
			(unsigned long long)most, r->most_id);
	r->ids->count = count;
	return 0;
}

static int read_random_ids(struct stream_reader *r, const json_t *value)
{
	return value ? read_boolean(r, value, &r->ids->is_random) : 0;
}

// A number, or a range of numbers.
static int read_ids(struct stream_reader *r, const json_t *value, uint32_t most)
{
	static const struct stream_key keys[] = {{"first", read_first_id}, {"count", read_id_count},
		{"random", read_random_ids}};

	r->most_id = most;
	if (json_is_object(value))
		return read_map(r, value, keys, ARRAY_LEN(keys) - is_expected(r));
	return read_first_id(r, value);
}

static int read_label_list(struct stream_reader *r, const json_t *list)
{
	const size_t n = json_array_size(list);
	const char *key = r->key;
	char member[16];
	uint64_t label;
	int err = 0;

	if (!n || n > GEN_MAX_LABELS)
		return read_mistake(r, list, "it has %zu members; expected 1 to %d labels", n,
			GEN_MAX_LABELS);
	r->encap->n_labels = n;
	r->key = member;
	for (size_t i = 0; i < n && !err; i++) {
		snprintf(member, sizeof(member), "labels[%zu]", i);
		if (i + 1 == n) {
			err = read_ids(r, json_array_get(list, i), MOST_LABEL);
		} else {
			err = read_number(r, json_array_get(list, i), 0, MOST_LABEL, &label);
			r->encap->label[i] = err ? 0 : label;
		}
	}
	r->key = key;
	return err;
}

static int read_labels(struct stream_reader *r, const json_t *value)
{
	bool wants = r->encap->type == GEN_MPLS || r->encap->type == GEN_MPLS_UDP;

	if (!value)
		return wants && !is_expected(r)
		               ? read_mistake(r, NULL,
					 "missing; expected 1 to %d labels, such as [100, 16]",
					 GEN_MAX_LABELS)
		               : 0;
	if (!wants && r->encap->type != GEN_GRE)
		return no_such_key(r, value);
	if (json_is_array(value))
		return read_label_list(r, value);
	r->encap->n_labels = 1;
	return read_ids(r, value, MOST_LABEL);
}

static int read_vni(struct stream_reader *r, const json_t *value)
{
	bool wants = r->encap->type == GEN_VXLAN;

	if (!value)
		return wants && !is_expected(r)
		               ? read_mistake(r, NULL, "missing; expected a number from 0 to %d",
					 MOST_VNI)
		               : 0;
	return wants ? read_ids(r, value, MOST_VNI) : no_such_key(r, value);
}

// Beside labels, which have the varying id, a key has one value.
static int read_key(struct stream_reader *r, const json_t *value)
{
	uint64_t key = 0;

	if (!value)
		return 0;
	if (r->encap->type != GEN_GRE && r->encap->type != GEN_GRETAP)
		return no_such_key(r, value);
	r->encap->has_key = true;
	if (!r->encap->n_labels)
		return read_ids(r, value, UINT32_MAX);
	if (is_expected(r))
		return read_mistake(r, value,
			"only the labels are checked if there are some; remove it");
	int err = read_number(r, value, 0, UINT32_MAX, &key);
	r->encap->key = key;
	return err;
}

static int read_address(struct stream_reader *r, const json_t *value, struct wire_addr *out)
{
	if (r->encap->type == GEN_MPLS)
		return value ? no_such_key(r, value) : 0;
	if (value && !wire_addr_parse(read_text(value), out))
		return 0;
	if (!value && is_expected(r))
		return 0;
	return read_mistake(r, value, "%sexpected an address like 192.0.2.1 or 2001:db8::1",
		value ? "" : "missing; ");
}

static int read_outer_src(struct stream_reader *r, const json_t *value)
{
	const struct wire_addr *src = &r->encap->src;
	int err = read_address(r, value, &r->encap->src);

	if (err || !src->family || (src->family == 6 ? src->bytes[0] != 0xff : src->bytes[0] < 224))
		return err;
	return read_mistake(r, value,
		"a multicast or reserved address cannot be a source; expected the address of a "
		"host");
}

static int read_outer_dst(struct stream_reader *r, const json_t *value)
{
	const struct wire_addr *src = &r->encap->src, *dst = &r->encap->dst;
	int err = read_address(r, value, &r->encap->dst);

	if (!err && src->family && dst->family && src->family != dst->family)
		err = read_mistake(r, value,
			"IPv%u, but src_ip beside it is IPv%u; expected the same family",
			dst->family, src->family);
	return err;
}

static int read_outer_src_port(struct stream_reader *r, const json_t *value)
{
	uint64_t port = SRC_PORT;

	if (value && !is_in_udp(r))
		return no_such_key(r, value);
	r->encap->hashes_port = !value || !strcmp(read_text(value), "flow");
	if (!r->encap->hashes_port && read_number(r, value, 0, UINT16_MAX, &port))
		return read_mistake(r, value,
			"expected a number from 0 to 65535, or flow: 49152 and above, by a hash of "
			"the inner addresses and ports");
	r->encap->src_port = port;
	return 0;
}

static int read_outer_dst_port(struct stream_reader *r, const json_t *value)
{
	uint64_t port = ENCAP_VXLAN_PORT;

	r->encap->dst_port = r->encap->type == GEN_VXLAN ? port : ENCAP_MPLS_PORT;
	if (!value)
		return 0;
	if (r->encap->type != GEN_VXLAN)
		return no_such_key(r, value);
	int err = read_number(r, value, 1, UINT16_MAX, &port);
	if (!err && port == ENCAP_MPLS_PORT)
		err = read_mistake(r, value, "is the port of MPLS over UDP; choose another");
	r->encap->dst_port = port;
	return err;
}

static int read_checksum(struct stream_reader *r, const json_t *value)
{
	if (value && !is_in_udp(r))
		return no_such_key(r, value);
	r->encap->has_checksum = true;
	return value ? read_boolean(r, value, &r->encap->has_checksum) : 0;
}

static int read_outer_ttl(struct stream_reader *r, const json_t *value)
{
	uint64_t ttl = 64;
	int err = value ? read_number(r, value, 1, 255, &ttl) : 0;

	r->encap->ttl = ttl;
	return err;
}

static int read_inner_src(struct stream_reader *r, const json_t *value)
{
	if (value && !has_ethernet(r))
		return no_such_key(r, value);
	int err = read_field(r, GEN_INNER_SRC_MAC, value);
	if (!err && r->encap->inner_src.bytes[0] & 1)
		err = read_mistake(r, json_is_string(value) ? value : NULL,
			"a multicast address cannot be a source; expected a unicast MAC address");
	return err;
}

static int read_inner_dst(struct stream_reader *r, const json_t *value)
{
	if (value && !has_ethernet(r))
		return no_such_key(r, value);
	return read_field(r, GEN_INNER_DST_MAC, value);
}

int read_encap(struct stream_reader *r, const json_t *value)
{
	static const struct stream_key keys[] = {{"type", read_type}, {"labels", read_labels},
		{"vni", read_vni}, {"key", read_key}, {"src_ip", read_outer_src},
		{"dst_ip", read_outer_dst}, {"src_port", read_outer_src_port},
		{"dst_port", read_outer_dst_port}, {"checksum", read_checksum},
		{"ttl", read_outer_ttl}, {"inner_src_mac", read_inner_src},
		{"inner_dst_mac", read_inner_dst}};
	const struct wire_recipe macs = wire_recipe(4);

	if (!value)
		return 0;
	if (!json_is_object(value))
		return read_mistake(r, value, "expected a map such as {type: mpls, labels: [16]}");
	r->encap = &r->stream->encap;
	r->ids = &r->stream->fields[GEN_ENCAP_ID];
	r->encap->inner_src = macs.src_mac;
	r->encap->inner_dst = macs.dst_mac;
	return read_map(r, value, keys, ARRAY_LEN(keys));
}

static void expect_this(struct gen_expect_encap *expect, const struct gen_encap *encap,
	uint32_t n_ids)
{
	expect->type = encap->type;
	expect->n_labels = encap->n_labels;
	memcpy(expect->label, encap->label, sizeof(expect->label));
	expect->id = encap->id;
	expect->n_ids = n_ids;
	expect->src = encap->src;
	expect->dst = encap->dst;
}

int read_expect_encap(struct stream_reader *r, const json_t *value)
{
	static const struct stream_key keys[] = {{"type", read_type}, {"labels", read_labels},
		{"vni", read_vni}, {"key", read_key}, {"src_ip", read_outer_src},
		{"dst_ip", read_outer_dst}, {"checksum", read_checksum}};
	struct gen_expect_encap *expect = &r->stream->expect.encap;
	struct gen_encap encap = {.type = GEN_PLAIN};
	struct gen_field ids = {.count = 0};
	int err = 0;

	if (!value)
		return 0;
	if (json_is_object(value)) {
		r->encap = &encap;
		r->ids = &ids;
		err = read_map(r, value, keys, ARRAY_LEN(keys));
		expect->has_checksum = json_object_get(value, "checksum") && encap.has_checksum;
		expect->has_no_checksum = json_object_get(value, "checksum") && !encap.has_checksum;
	} else if (strcmp(read_text(value), "none") != 0) {
		err = read_mistake(r, value,
			"expected none, or a map such as {type: mpls, labels: [16]}");
	}
	r->encap = NULL; // they end here
	r->ids = NULL;
	expect->is_checked = true;
	expect_this(expect, &encap, ids.count);
	return err;
}
