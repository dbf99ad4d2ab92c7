// Result of the method gaps, shared by both programs. Control thread.
#include "rpc/rpc.h"

#include "base/bits.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { LONGEST_US = 1000000000 };

struct row {
	const struct rpc_worker *worker;
	struct stall stall;
};

struct rows {
	struct row *row;
	size_t n;
	uint64_t n_forgotten;
};

static void add_worker(struct rows *rows, const struct rpc_worker *worker)
{
	struct stall known[STALLS_KNOWN];
	uint64_t n_forgotten;
	unsigned n = stalls_read(worker->stalls, known, &n_forgotten);

	for (unsigned i = 0; i < n; i++)
		rows->row[rows->n++] = (struct row){worker, known[i]};
	rows->n_forgotten += n_forgotten;
}

static int by_end(const void *a_, const void *b_)
{
	const struct row *a = a_, *b = b_;

	return (a->stall.end > b->stall.end) - (a->stall.end < b->stall.end);
}

static double us_of(const struct rpc_gaps *gaps, uint64_t cycles)
{
	return clock_ns_at(&gaps->born, &gaps->now, gaps->born.cycles + cycles) / 1e3 -
	       gaps->born.ns / 1e3;
}

static json_t *rows_json(const struct rpc_gaps *gaps, const struct rows *rows, double min_us)
{
	json_t *list = json_array();

	for (size_t i = 0; i < rows->n; i++) {
		const struct row *row = &rows->row[i];
		double us = us_of(gaps, row->stall.cycles);

		if (us < min_us)
			continue;
		json_int_t at_ns = clock_ns_at(&gaps->born, &gaps->now, row->stall.end);
		json_array_append_new(list,
			json_pack("{s:i, s:i, s:I, s:f}", "worker", (int)row->worker->worker,
				"core", row->worker->core, "at_ns", at_ns, "us",
				round(us * 1000) / 1000));
	}
	return list;
}

json_t *rpc_gaps_json(const struct rpc_gaps *gaps, const json_t *params, struct error *error)
{
	double min_us = STALLS_LEAST_US;
	const struct rpc_param takes[] = {{"min_us", RPC_REAL, false, 0, LONGEST_US, &min_us}};
	struct rows rows = {.row = NULL};

	if (rpc_params_read(params, takes, ARRAY_LEN(takes), error))
		return NULL;
	rows.row = malloc(gaps->n_workers * STALLS_KNOWN * sizeof(*rows.row));
	if (!rows.row) {
		error_set(error, -ENOMEM, "not enough memory for the gaps of %u workers",
			gaps->n_workers);
		return NULL;
	}
	for (unsigned i = 0; i < gaps->n_workers; i++)
		add_worker(&rows, &gaps->worker[i]);
	qsort(rows.row, rows.n, sizeof(*rows.row), by_end);
	json_t *list = rows_json(gaps, &rows, min_us);
	free(rows.row);
	return json_pack("{s:o, s:I, s:I}", "gaps", list, "forgotten", (json_int_t)rows.n_forgotten,
		"now_ns", (json_int_t)gaps->now.ns);
}
