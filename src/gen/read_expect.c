// What is counted by flow, and the port and DSCP expected of each flow. Control thread.
#include "gen/read.h"

#include "base/bits.h"

int read_count_flows(struct stream_reader *r, const json_t *value)
{
	return value ? read_boolean(r, value, &r->stream->counts_flows) : 0;
}

int read_log_arrivals(struct stream_reader *r, const json_t *value)
{
	uint64_t n = 0;
	int err = value ? read_number(r, value, 1, GEN_MAX_LOGGED, &n) : 0;

	r->stream->n_logged = n;
	return err;
}

static int read_any_secret(struct stream_reader *r, const json_t *value, uint64_t *secret)
{
	if (!value)
		return read_mistake(r, NULL, "missing; expected a number");
	return read_number(r, value, 0, INT64_MAX, secret);
}

// Not needed by a stream that expects one port, one DSCP and an encapsulation.
static int read_secret(struct stream_reader *r, const json_t *value)
{
	const json_t *expect = json_object_get(r->map, "expect");

	if (!value && json_object_get(expect, "encap") && !json_object_get(expect, "ports") &&
		!json_object_get(expect, "dscps") && !json_object_get(expect, "alternative"))
		return 0;
	return read_any_secret(r, value, &r->stream->expect.secret);
}

static int read_other_secret(struct stream_reader *r, const json_t *value)
{
	return read_any_secret(r, value, &r->stream->expect.other_secret);
}

static bool is_repeated(const json_t *list, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (json_equal(json_array_get(list, i), json_array_get(list, at)))
			return true;
	return false;
}

static int check_list(struct stream_reader *r, const json_t *value, size_t most, const char *what)
{
	if (json_is_array(value) && json_array_size(value) && json_array_size(value) <= most)
		return 0;
	return read_mistake(r, value, "expected a list of 1 to %zu %s", most, what);
}

// Frames on other ports than `to` are received because they are listed here.
static int read_ports(struct stream_reader *r, const json_t *value)
{
	struct gen_expect *expect = &r->stream->expect;
	bool has_to = !r->ports || !value;

	expect->n_ports = 1;
	expect->port[0] = r->stream->to;
	int err = value ? check_list(r, value, GEN_EXPECT_PORTS, "ports") : 0;
	for (size_t i = 0; value && i < json_array_size(value) && !err; i++) {
		const json_t *name = json_array_get(value, i);

		err = is_repeated(value, i) ? read_mistake(r, name, "is in the list twice")
		                            : read_port(r, name, &expect->port[i]);
		has_to |= expect->port[i] == r->stream->to;
		expect->n_ports = i + 1;
	}
	if (!err && !has_to)
		err = read_mistake(r, NULL, "expected %s, the port of \"to\", to be among them",
			r->ports[r->stream->to].name);
	return err;
}

static int read_dscps(struct stream_reader *r, const json_t *value)
{
	struct gen_expect *expect = &r->stream->expect;
	uint64_t dscp;

	expect->n_dscps = 1;
	expect->dscp[0] = r->stream->recipe.dscp_ecn >> 2;
	int err = value ? check_list(r, value, GEN_EXPECT_DSCPS, "numbers from 0 to 63") : 0;
	for (size_t i = 0; value && i < json_array_size(value) && !err; i++) {
		err = read_number(r, json_array_get(value, i), 0, 63, &dscp);
		expect->dscp[i] = dscp;
		expect->n_dscps = i + 1;
	}
	return err;
}

static int read_every(struct stream_reader *r, const json_t *value)
{
	uint64_t every = 1;
	int err = value ? read_number(r, value, 1, GEN_MAX_FLOWS, &every) : 0;

	r->stream->expect.every = every;
	return err;
}

static int read_alternative(struct stream_reader *r, const json_t *value)
{
	static const struct stream_key keys[] = {{"secret", read_other_secret},
		{"every", read_every}};

	if (value && !json_is_object(value))
		return read_mistake(r, value, "expected {secret: N, every: N}");
	return value ? read_map(r, value, keys, ARRAY_LEN(keys)) : 0;
}

int read_expect(struct stream_reader *r, const json_t *value)
{
	static const struct stream_key keys[] = {{"secret", read_secret}, {"ports", read_ports},
		{"dscps", read_dscps}, {"alternative", read_alternative},
		{"encap", read_expect_encap}};

	if (value && !json_is_object(value))
		return read_mistake(r, value,
			"expected {secret: N, ports: [PORT, ...], dscps: [N, ...]}");
	return value ? read_map(r, value, keys, ARRAY_LEN(keys)) : 0;
}
