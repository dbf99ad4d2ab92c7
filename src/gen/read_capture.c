// A stream that replays a capture: its keys, and conflicts with other keys. Control thread.
#include "gen/read.h"

#include "base/bits.h"
#include "base/log.h"
#include "gen/capture.h"
#include "wire/headers.h"

#include <stdlib.h>
#include <string.h>

// Keys that are determined by the capture's own bytes.
static int check_beside(struct stream_reader *r)
{
	static const char *const others[] = {"protocol", "vlan", "ttl", "dscp", "src_ip", "dst_ip",
		"src_port", "dst_port", "flows", "distribution", "exponent", "seed", "size",
		"burst", "count_flows", "log_arrivals", "expect", "encap"};

	for (unsigned i = 0; i < ARRAY_LEN(others); i++)
		if (json_object_get(r->map, others[i]))
			return read_mistake(r, NULL,
				"captured frames are sent unchanged, so \"%s\" has no effect; "
				"remove it",
				others[i]);
	if (json_is_object(json_object_get(r->map, "src_mac")) ||
		json_is_object(json_object_get(r->map, "dst_mac")))
		return read_mistake(r, NULL,
			"captured frames keep their MAC addresses or all get the same one; "
			"expected a single value for src_mac and dst_mac");
	return 0;
}

int read_pcap(struct stream_reader *r, const json_t *value)
{
	const char *path = read_text(value);

	if (!value)
		return 0;
	if (!path[0] || strlen(path) >= GEN_PATH_MAX)
		return read_mistake(r, value, "expected the path of a capture file");
	if (r->stream->is_receive_only)
		return read_mistake(r, value,
			"a stream without \"from: PORT\" sends nothing; add that, or remove pcap");
	strcpy(r->stream->capture.path, path);
	return check_beside(r);
}

static int check_pcap(struct stream_reader *r, const json_t *value)
{
	if (!value || r->stream->capture.path[0])
		return 0;
	return read_mistake(r, value, "requires \"pcap: FILE\"");
}

int read_stamp(struct stream_reader *r, const json_t *value)
{
	int err = check_pcap(r, value);

	return err || !value ? err : read_boolean(r, value, &r->stream->capture.stamps);
}

int read_loops(struct stream_reader *r, const json_t *value)
{
	struct gen_stream *s = r->stream;
	uint64_t loops = 0;
	int err = check_pcap(r, value);

	if (err || !value)
		return err;
	if (s->n_frames)
		return read_mistake(r, value, "cannot be combined with frames; remove one of them");
	err = read_number(r, value, 1, 1 << 20, &loops);
	s->n_frames = loops * s->capture.n_frames;
	return err;
}

int read_capture(struct stream_reader *r)
{
	struct gen_stream *s = r->stream;
	struct error inner = {""};
	struct capture capture;

	r->key = "pcap";
	int err = capture_read(&capture, s, &inner);
	if (err)
		err = read_mistake(r, NULL, "%s", inner.text);
	s->capture.file = capture.file;
	s->capture.n_frames = capture.n;
	s->capture.n_stamped = capture.n_stamped;
	s->capture.longest = capture.longest;
	s->capture.n_bytes = capture.n_bytes;
	s->capture.lap_ns = capture.lap_ns;
	s->capture.n_left_out = capture.n_left_out;
	memcpy(s->capture.left_out, capture.left_out, sizeof(capture.left_out));
	capture_free(&capture);
	if (!err && s->capture.n_left_out)
		log_warn("%s: pcap: %s: frames that are not Ethernet are left out: %s", r->where,
			s->capture.path, s->capture.left_out);
	if (!err && s->capture.stamps && !s->capture.n_stamped)
		err = read_mistake(r, NULL,
			"none of its frames has room for a stamp (UDP or TCP with a payload of %d "
			"or %d bytes); remove \"stamp\"",
			18, 10);
	return err ? err : read_check_ports(r, NULL, s->capture.longest + WIRE_FCS_BYTES);
}

static bool parse_speed(const char *text, double *out)
{
	char *rest;

	if (text[0] != 'x' || text[1] < '0' || text[1] > '9')
		return false;
	*out = strtod(text + 1, &rest);
	return !rest[0];
}

int read_speed(struct stream_reader *r, const json_t *value)
{
	struct gen_capture *c = &r->stream->capture;
	const char *text = read_text(value);

	if (!value || !strcmp(text, "as recorded"))
		c->speed = 1;
	else if (!parse_speed(text, &c->speed))
		return 1;
	if (!(c->speed >= 0.001 && c->speed <= 1e6))
		return read_mistake(r, value, "expected x0.001 to x1000000");
	if (!c->lap_ns)
		return read_mistake(r, value,
			"all frames of %s have the same timestamp; expected a rate like 1 Mpps, or "
			"max",
			c->path);
	return 0;
}
