// Counts received frames by flow, and checks their port and DSCP.
#include "gen/per_flow.h"

#include "base/pages.h"
#include "gen/new_file.h"
#include "wire/headers.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

enum { WRITTEN_AT_ONCE = 16384 };

static size_t counter_bytes(const struct gen_stream *stream)
{
	return stream->n_flows * sizeof(uint32_t);
}

static int make_counters(struct per_flow *p, struct error *error)
{
	const size_t bytes = counter_bytes(p->stream);
	const uint64_t available = pages_available();

	if (bytes < available)
		p->received = pages_alloc(bytes);
	if (!p->received)
		return error_set(error, -ENOMEM,
			"stream %s: the counters of %u flows take %zu KiB of memory, but only %llu "
			"KiB "
			"are available; lower flows, or remove count_flows",
			p->stream->name, p->stream->n_flows, bytes >> 10,
			(unsigned long long)available >> 10);
	// Touched here, so that no worker takes the page faults.
	memset(p->received, 0, bytes);
	return 0;
}

int per_flow_create(struct per_flow **out, const struct gen_stream *stream, struct error *error)
{
	*out = NULL;
	if (!stream->counts_flows && !stream->n_logged && !stream->expect.n_ports)
		return 0;
	struct per_flow *p = aligned_alloc(_Alignof(struct per_flow), sizeof(*p));
	if (!p)
		return error_set(error, -ENOMEM, "stream %s: not enough memory for its flows",
			stream->name);
	memset(p, 0, sizeof(*p));
	p->stream = stream;
	fields_make(&p->fields, stream);
	fields_fill_fixed(stream, &p->values);
	int err = flows_make(&p->flows, stream, error);
	if (!err && stream->counts_flows)
		err = make_counters(p, error);
	if (!err)
		err = arrivals_create(&p->arrivals, stream, error);
	if (err)
		per_flow_destroy(p);
	else
		*out = p;
	return err;
}

void per_flow_destroy(struct per_flow *p)
{
	if (!p)
		return;
	if (p->received)
		pages_free(p->received, counter_bytes(p->stream));
	arrivals_destroy(p->arrivals);
	flows_free(&p->flows);
	free(p);
}

// The counters do not fit into the caches: all are fetched before the first is needed.
static void count(struct per_flow *p, const uint32_t flow[], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rte_prefetch0_write(&p->received[flow[i]]);
	for (unsigned i = 0; i < n; i++) {
		uint32_t *counter = &p->received[flow[i]];

		__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
	}
}

void per_flow_count(struct per_flow *p, const struct whole *frames, const uint64_t number[],
	const uint64_t since_due[], uint64_t now)
{
	uint32_t flow[RECOGNISE_MAX];

	if (!p->received && !p->arrivals)
		return;
	for (unsigned i = 0; i < frames->n; i++)
		flow[i] = flows_of(&p->flows, number[i]);
	if (p->received)
		count(p, flow, frames->n);
	if (p->arrivals)
		arrivals_add(p->arrivals, frames, flow, since_due, now);
}

static bool is_address(const uint8_t *found, const struct wire_addr *first, uint32_t last_bits)
{
	unsigned at = first->family == 6 ? 12 : 0; // offset of the last 32 bits

	return !memcmp(found, first->bytes, at) && be32toh(load32(found + at)) == last_bits;
}

static bool is_tuple(struct per_flow *p, const uint8_t *frame, const struct recognise_place *place,
	uint32_t flow)
{
	const struct wire_recipe *recipe = &p->stream->recipe;
	const uint8_t *layer4 = frame + place->layer4;
	unsigned addr_bytes = place->is_ip6 ? 16 : 4;
	uint8_t protocol = place->is_tcp ? WIRE_PROTO_TCP : WIRE_PROTO_UDP;

	if (place->is_ip6 != (recipe->src.family == 6) || protocol != recipe->protocol)
		return false;
	fields_fill_flows(&p->fields, &p->values, &flow, 1);
	return is_address(layer4 - 2 * addr_bytes, &recipe->src, p->values.field[GEN_SRC_IP][0]) &&
	       is_address(layer4 - addr_bytes, &recipe->dst, p->values.field[GEN_DST_IP][0]) &&
	       be16toh(load16(layer4)) == p->values.field[GEN_SRC_PORT][0] &&
	       be16toh(load16(layer4 + 2)) == p->values.field[GEN_DST_PORT][0];
}

static uint8_t dscp_of(const uint8_t *frame, const struct recognise_place *place)
{
	const uint8_t *ip = frame + place->layer3;

	return place->is_ip6 ? be16toh(load16(ip)) >> 6 & 0x3f : ip[1] >> 2;
}

// Requires the flow's values. Ranges of the same length correspond, value by value.
static bool is_id(const struct per_flow *p, uint32_t id)
{
	const struct gen_expect_encap *expect = &p->stream->expect.encap;
	const struct gen_field *fields = p->stream->fields;
	const uint32_t nth = id - expect->id, n = expect->n_ids;
	const unsigned field = fields[GEN_ENCAP_ID].count == n ? GEN_ENCAP_ID : GEN_DST_IP;

	if (nth >= n || n == 1 || fields[field].count != n)
		return nth < n;
	return nth == p->values.field[field][0] - fields_first(p->stream, field);
}

static bool is_outer_address(const uint8_t *found, uint8_t family, const struct wire_addr *expected)
{
	if (!expected->family)
		return true;
	return family == expected->family && !memcmp(found, expected->bytes, family == 6 ? 16 : 4);
}

static bool are_labels(const struct gen_expect_encap *expect, const uint8_t *frame,
	const struct encap_found *found)
{
	if (!expect->n_labels && expect->type != GEN_GRE)
		return true;
	if (found->n_labels != expect->n_labels)
		return false;
	for (unsigned i = 0; i + 1 < expect->n_labels; i++)
		if (be32toh(load32(frame + found->labels + 4 * i)) >> 12 != expect->label[i])
			return false;
	return true;
}

// Requires the flow's values.
static bool is_encap(const struct per_flow *p, const uint8_t *frame,
	const struct encap_found *found)
{
	const struct gen_expect_encap *expect = &p->stream->expect.encap;
	const unsigned addr_bytes = found->family == 6 ? 16 : 4;
	const uint8_t *src = frame + found->layer3 +
	                     (found->family == 6 ? offsetof(struct wire_ip6, src)
						 : offsetof(struct wire_ip4, src));

	if (!expect->is_checked)
		return true;
	if (found->type != expect->type)
		return false;
	if (!found->type)
		return true;
	if ((expect->n_ids && !is_id(p, found->id)) || !are_labels(expect, frame, found) ||
		!is_outer_address(src, found->family, &expect->src) ||
		!is_outer_address(src + addr_bytes, found->family, &expect->dst))
		return false;
	if (!expect->has_checksum && !expect->has_no_checksum)
		return true;
	return !load16(frame + found->layer4 + ENCAP_UDP_CHECKSUM_AT) == expect->has_no_checksum;
}

static __attribute__((noinline)) void note_wrong(struct per_flow *p, uint64_t number,
	struct expect_action found, const struct encap_found *encap)
{
	if (p->wrong.is_known)
		return;
	p->wrong.flow = flows_of(&p->flows, number);
	p->wrong.sequence = number;
	p->wrong.found = found;
	p->wrong.encap = encap->type;
	p->wrong.encap_id = encap->type ? encap->id : 0;
	// Partner: results, which reads the others only if this is set.
	__atomic_store_n(&p->wrong.is_known, true, __ATOMIC_RELEASE);
}

void per_flow_check(struct per_flow *p, const struct rte_mbuf *m, uint64_t number, uint8_t port)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t flow = flows_of(&p->flows, number);
	struct per_flow_counters *c = &p->counters;
	struct recognise_place place;
	struct encap_found encap;

	if (!p->stream->expect.n_ports || !recognise_find(m, &place, &encap))
		return;
	struct expect_action found = {port, dscp_of(frame, &place)};
	bool is_flow = is_tuple(p, frame, &place, flow);
	bool is_right = is_flow && is_encap(p, frame, &encap);
	enum expect_verdict verdict =
		is_right ? expect_judge(&p->stream->expect, flow, found) : EXPECT_RIGHT;

	stats_add(&c->checked, 1);
	stats_add(&c->wrong_tuple, !is_flow);
	stats_add(&c->wrong_encap, is_flow && !is_right);
	stats_add(&c->alternative, verdict == EXPECT_OTHER);
	stats_add(&c->wrong_port, verdict == EXPECT_WRONG_PORT);
	stats_add(&c->wrong_dscp, verdict == EXPECT_WRONG_DSCP);
	if (unlikely(!is_right || verdict == EXPECT_WRONG_PORT || verdict == EXPECT_WRONG_DSCP))
		note_wrong(p, number, found, &encap);
}

struct writing {
	const struct per_flow *per_flow;
	uint64_t total;
};

static bool write_all(void *ctx, FILE *file)
{
	static uint32_t part[WRITTEN_AT_ONCE];
	struct writing *w = ctx;
	const struct per_flow *p = w->per_flow;
	uint32_t n = p->stream->n_flows;

	for (uint32_t at = 0; at < n; at += WRITTEN_AT_ONCE) {
		uint32_t n_part = MIN_OF(n - at, (uint32_t)WRITTEN_AT_ONCE);

		for (uint32_t i = 0; i < n_part; i++) {
			uint32_t received = __atomic_load_n(&p->received[at + i], __ATOMIC_RELAXED);

			w->total += received;
			part[i] = htole32(received);
		}
		if (fwrite(part, sizeof(part[0]), n_part, file) != n_part)
			return false;
	}
	return true;
}

int per_flow_write(const struct per_flow *p, const char *path, uint64_t *total, struct error *error)
{
	struct writing writing = {p, 0};
	int err = new_file(path, write_all, &writing, error);

	*total = writing.total;
	return err;
}
