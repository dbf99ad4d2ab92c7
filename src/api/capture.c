// The method capture.start: its parameters, and the connection that becomes the stream of the
// capture. Control thread.
#include "api/inside.h"

#include "capture/capture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS_OF_INSN = 4, RING_KIB = 4096 };
static const long most_packets = 1ll << 53;

static int find_verdict(const char *name, unsigned *out, struct error *error)
{
	for (unsigned v = VERDICT_FORWARD + 1; name && v < N_VERDICTS; v++)
		if (!strcmp(verdict_name(v), name)) {
			*out = v;
			return 0;
		}
	return error_set(error, -EINVAL,
		"there is no drop reason '%s': 'dl3 show drops --all' lists them",
		name ? name : "null");
}

// All, and received and sent frames, too, if there is no list.
static int read_verdicts(const json_t *list, struct capture_settings *out, struct error *error)
{
	unsigned verdict = 0;
	size_t i;
	json_t *name;

	out->wants_received = out->wants_sent = !list;
	for (unsigned v = 0; v < N_VERDICTS; v++)
		out->wants[v] = !list;
	json_array_foreach (list, i, name) {
		if (find_verdict(json_string_value(name), &verdict, error))
			return -EINVAL;
		out->wants[verdict] = true;
	}
	return 0;
}

// One of the numbers of an instruction.
static int read_field(const json_t *insn, unsigned i, uint32_t most, uint32_t *out)
{
	const json_t *field = json_array_get(insn, i);
	const json_int_t value = json_integer_value(field);

	*out = value;
	return json_is_integer(field) && value >= 0 && value <= most ? 0 : -EINVAL;
}

static int read_insn(const json_t *insn, struct bpf_insn *out)
{
	uint32_t code, jt, jf, k;

	if (json_array_size(insn) != FIELDS_OF_INSN || read_field(insn, 0, UINT16_MAX, &code) ||
		read_field(insn, 1, UINT8_MAX, &jt) || read_field(insn, 2, UINT8_MAX, &jf) ||
		read_field(insn, 3, UINT32_MAX, &k))
		return -EINVAL;
	*out = (struct bpf_insn){code, jt, jf, k};
	return 0;
}

static int read_program(const json_t *list, struct capture_settings *out, struct error *error)
{
	const unsigned n = json_array_size(list);

	if (!list)
		return 0;
	out->program = calloc(n, sizeof(*out->program));
	if (!out->program)
		return error_set(error, -ENOMEM, "not enough memory for a filter");
	out->program_length = n;
	for (unsigned i = 0; i < n; i++)
		if (read_insn(json_array_get(list, i), &out->program[i]))
			return error_set(error, -EINVAL,
				"instruction %u of the filter: expected [code, jt, jf, k]", i);
	return capture_check_program(out->program, n, error);
}

static void copy_names(const struct api_ctx *ctx, struct capture_settings *out)
{
	const struct port_table_settings *ports = config_ports(ctx->config);

	for (unsigned i = port_next(ports, 0); i < ports->n_ports; i = port_next(ports, i + 1))
		snprintf(out->port_name[i], sizeof(out->port_name[i]), "%s", ports->ports[i].name);
}

static uint32_t power_of_two_from(uint32_t n)
{
	return n < 2 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

static int read_settings(const struct api_ctx *ctx, const json_t *params,
	struct capture_settings *out, struct error *error)
{
	const char *port = NULL;
	const json_t *verdicts = NULL, *program = NULL;
	long snap = CAPTURE_SNAP_MOST, limit = 0, ring_kib = RING_KIB, sample = 0, sample_drops = 1;
	const struct rpc_param rows[] = {
		{"port", RPC_TEXT, false, 0, 0, &port},
		{"verdicts", RPC_LIST, false, 1, N_VERDICTS, &verdicts},
		{"snap", RPC_NUMBER, false, CAPTURE_SNAP_LEAST, CAPTURE_SNAP_MOST, &snap},
		{"count", RPC_NUMBER, false, 1, most_packets, &limit},
		{"ring_kib", RPC_NUMBER, false, CAPTURE_RING_KIB_LEAST, CAPTURE_RING_KIB_MOST,
			&ring_kib},
		{"program", RPC_LIST, false, 1, CAPTURE_PROGRAM_MOST, &program},
		{"sample", RPC_NUMBER, false, 1, CAPTURE_SAMPLE_MOST, &sample},
		{"sample_drops", RPC_NUMBER, false, 1, CAPTURE_SAMPLE_MOST, &sample_drops},
	};

	if (rpc_params_read(params, rows, ARRAY_LEN(rows), error))
		return -EINVAL;
	out->snap = snap;
	out->limit = limit;
	out->ring_kib = power_of_two_from(ring_kib);
	copy_names(ctx, out);
	out->port = -1;
	int err = port ? port_named(ctx, port, &out->port, error) : 0;
	if (!err)
		err = read_verdicts(verdicts, out, error);
	if (sample) {
		out->is_export = out->wants_received = true;
		out->wants_sent = false;
		out->sample[CAPTURE_FRAMES] = sample;
		out->sample[CAPTURE_LOSSES] = sample_drops;
	}
	return err ? err : read_program(program, out, error);
}

json_t *method_capture_start(void *ctx_, const json_t *params, struct error *error)
{
	struct api_ctx *ctx = ctx_;
	struct capture_settings settings = {0};

	if (read_settings(ctx, params, &settings, error)) {
		free(settings.program);
		return NULL;
	}
	if (capture_start(ctx->capture, &settings, error))
		return NULL;
	return json_pack("{s:b, s:i}", "started", 1, "ring_kib", (int)settings.ring_kib);
}

bool api_takes_over(void *ctx_)
{
	const struct api_ctx *ctx = ctx_;

	return ctx->capture && capture_is_starting(ctx->capture);
}

void api_take_over(void *ctx_, int fd)
{
	struct api_ctx *ctx = ctx_;

	capture_attach(ctx->capture, fd);
}
