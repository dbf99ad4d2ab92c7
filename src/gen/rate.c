// A stream's rate: as written, and in frames per second on its port. Control thread.
#include "gen/read.h"

#include "base/bits.h"
#include "base/quantity.h"

#include <string.h>

enum { LAYER1_BYTES = 20 }; // preamble and inter-frame gap

static const double MOST_PPS = 1e10, LEAST_PPS = 1e-3, ROUNDING = 1 + 1e-9;
static const char WANTED[] =
	"expected a rate like 1.5 Mpps, 50 %, 9.5 Gbit/s (layer 1), 9 Gbit/s l2, or max";

static double layer1_bits(const struct gen_stream *stream)
{
	return (gen_mean_bytes(stream) + LAYER1_BYTES) * 8;
}

// The unit at the end of a rate.
static bool parse_unit(const char *rest, struct gen_stream *s)
{
	s->rate_unit = GEN_PPS;
	if (!rest[0])
		return true;
	if (!strcmp(rest, "%")) {
		s->rate_unit = GEN_PERCENT;
		return true;
	}
	if (quantity_unit(&rest, "pps", &s->rate))
		return !rest[0];
	if (!quantity_unit(&rest, "bit/s", &s->rate))
		return false;
	s->rate_unit = strcmp(rest, "l2") ? GEN_BPS_L1 : GEN_BPS_L2;
	return !rest[0] || !strcmp(rest, "l1") || !strcmp(rest, "l2");
}

static bool parse_rate(const json_t *value, struct gen_stream *s)
{
	const char *text = read_text(value), *rest;

	s->rate_unit = GEN_PPS;
	if (json_is_number(value)) {
		s->rate = json_number_value(value);
		return s->rate >= 0;
	}
	if (!strcmp(text, "max")) {
		s->rate_unit = GEN_MAX_RATE;
		return true;
	}
	return quantity_number(text, &s->rate, &rest) && parse_unit(rest, s);
}

// Converts `rate` in the stream's unit to frames per second.
static double in_pps(const struct gen_stream *s, double rate, double line_bps)
{
	switch (s->rate_unit) {
	case GEN_PPS:
		return rate;
	case GEN_PERCENT:
		return rate / 100 * line_bps / layer1_bits(s);
	case GEN_BPS_L1:
		return rate / layer1_bits(s);
	case GEN_BPS_L2:
		return rate / (gen_mean_bytes(s) * 8);
	default:
		return 0;
	}
}

// The inverse: formats `pps` in the unit in which the stream's rate was written.
static const char *print_as_written(const struct gen_stream *s, double pps, double line_bps,
	char text[QUANTITY_TEXT])
{
	switch (s->rate_unit) {
	case GEN_PERCENT:
		return quantity_print(pps * layer1_bits(s) / line_bps * 100, "%", text);
	case GEN_BPS_L1:
		return quantity_print(pps * layer1_bits(s), "bit/s", text);
	case GEN_BPS_L2:
		return quantity_print(pps * gen_mean_bytes(s) * 8, "bit/s l2", text);
	default:
		return quantity_print(pps, "pps", text);
	}
}

// Checks the total rate of the streams up to this one against the line rate of its port.
static int check_line(struct stream_reader *r, const json_t *value)
{
	const struct gen_stream *s = r->stream;
	const struct gen_port *port = &r->ports[s->from];
	double line_pps = port->line_bps / layer1_bits(s), others_bps = 0;
	char line[QUANTITY_TEXT], most[QUANTITY_TEXT], left[QUANTITY_TEXT];

	quantity_print(port->line_bps, "bit/s", line);
	print_as_written(s, line_pps, port->line_bps, most);
	if (s->pps > line_pps * ROUNDING)
		return read_mistake(r, value,
			"the line rate of port %s (%s) allows at most %s of these frames",
			port->name, line, most);
	for (const struct gen_stream *other = r->streams->stream; other < s; other++)
		if (other->from == s->from)
			others_bps += other->pps * layer1_bits(other);
	double left_pps = MAX_OF(line_pps - others_bps / layer1_bits(s), 0);
	if (s->pps <= left_pps + line_pps * (ROUNDING - 1))
		return 0;
	return read_mistake(r, value,
		"the preceding streams leave %s of the line rate of port %s (%s), which allows %s "
		"of these frames",
		print_as_written(s, left_pps, port->line_bps, left), port->name, line, most);
}

static int settle_pps(struct stream_reader *r, const json_t *value)
{
	struct gen_stream *s = r->stream;
	double line_bps = r->ports ? r->ports[s->from].line_bps : -1;
	bool is_open = s->rate_unit == GEN_PERCENT && line_bps < 0;

	if (s->rate_unit == GEN_PERCENT && line_bps == 0)
		return read_mistake(r, value,
			"the line rate of port %s is unknown; expected \"line_rate: 100 Gbit/s\" "
			"there, or a rate in pps or bit/s",
			r->ports[s->from].name);
	s->pps = is_open ? 0 : in_pps(s, s->rate, line_bps);
	if (s->rate <= 0 || (s->pps < LEAST_PPS && !is_open))
		return read_mistake(r, value, "less than one frame per 1000 s; %s", WANTED);
	if (line_bps > 0)
		return check_line(r, value);
	if (s->pps > MOST_PPS || (is_open && s->rate > 100))
		return read_mistake(r, value, "more than %s; expected a lower rate",
			is_open ? "100 %" : "10 Gpps");
	return 0;
}

// Checks the mean rate over a lap.
static int check_capture_rate(struct stream_reader *r, const json_t *value)
{
	struct gen_stream *s = r->stream;
	const struct gen_capture *c = &s->capture;

	s->rate_unit = GEN_PPS;
	s->rate = c->n_frames / (c->lap_ns / 1e9) * c->speed;
	return settle_pps(r, value);
}

int read_rate(struct stream_reader *r, const json_t *value)
{
	struct gen_stream *s = r->stream;

	if (s->is_receive_only && value)
		return read_mistake(r, value,
			"a stream without \"from: PORT\" sends nothing; add that, or remove rate");
	if (s->is_receive_only)
		return 0;
	if (s->capture.path[0]) {
		int err = read_speed(r, value);

		if (err <= 0)
			return err ? err : check_capture_rate(r, value);
	}
	if (!value)
		return read_mistake(r, NULL, "missing; %s", WANTED);
	if (!parse_rate(value, s))
		return read_mistake(r, value, "%s", WANTED);
	return s->rate_unit == GEN_MAX_RATE ? 0 : settle_pps(r, value);
}
