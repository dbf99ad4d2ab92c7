// Arbitrary bytes as a file of subscribers: all of it is applied, or there is one error message and
// nothing has changed. What was applied can be exported and read again.
#include "qos/qos.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MOST_BYTES = 8192 };

static void want(bool holds)
{
	if (!holds)
		abort();
}

static const char *no_name(void *ctx, unsigned iface)
{
	(void)ctx;
	(void)iface;
	return NULL;
}

static struct qos *open_one(void)
{
	const struct qos_settings settings = {.n_workers = 1,
		.hz = 1000000000,
		.n_ifaces = 1,
		.iface_name = no_name};
	struct error error;
	struct qos *qos = NULL;

	want(!qos_open(&qos, &settings, &error));
	return qos;
}

static int load(struct qos *qos, const void *bytes, size_t n)
{
	char text[MOST_BYTES + 1];
	struct error error = {""};

	memcpy(text, bytes, n);
	text[n] = 0;
	qos_begin(qos);
	int err = qos_stage_lines(qos, "fuzz", text, n, false, &error);

	if (!err)
		err = qos_prepare(qos, &error);
	want(!err == !error.text[0]);
	if (err)
		qos_abort(qos);
	else
		qos_commit(qos, 1);
	return err;
}

static char *export(struct qos *qos, size_t *n)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, n);

	want(out && qos_export(qos, out));
	fclose(out);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct qos *qos = open_one(), *again = open_one();
	struct qos_usage usage, second;
	size_t bytes;

	n = MIN_OF(n, (size_t)MOST_BYTES / 2);
	load(qos, data, n / 2);
	qos_usage(qos, &usage);
	if (load(qos, data + n / 2, n - n / 2)) {
		qos_usage(qos, &second);
		want(second.n_subscribers == usage.n_subscribers &&
			second.n_addresses == usage.n_addresses &&
			second.n_profiles == usage.n_profiles);
	}
	char *text = export(qos, &bytes);

	if (bytes <= MOST_BYTES) {
		want(!load(again, text, bytes));
		qos_usage(qos, &usage);
		qos_usage(again, &second);
		want(second.n_subscribers == usage.n_subscribers &&
			second.n_addresses == usage.n_addresses &&
			second.n_profiles == usage.n_profiles);
	}
	free(text);
	qos_close(qos);
	qos_close(again);
	return 0;
}
