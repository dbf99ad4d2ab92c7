// The answer of the verb gaps, which both programs have. Control thread.
#include "ctl/ctl.h"

#include "base/bits.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { LONGEST_US = 1000000000 };

struct row {
	const struct ctl_lane *lane;
	struct pause pause;
};

struct rows {
	struct row *row;
	size_t n;
	uint64_t n_forgotten;
};

static void add_lane(struct rows *rows, const struct ctl_lane *lane)
{
	struct pause known[PAUSES_KNOWN];
	uint64_t n_forgotten;
	unsigned n = pauses_read(lane->pauses, known, &n_forgotten);

	for (unsigned i = 0; i < n; i++)
		rows->row[rows->n++] = (struct row){lane, known[i]};
	rows->n_forgotten += n_forgotten;
}

static int by_end(const void *a_, const void *b_)
{
	const struct row *a = a_, *b = b_;

	return (a->pause.end > b->pause.end) - (a->pause.end < b->pause.end);
}

static double us_of(const struct ctl_gaps *gaps, uint64_t cycles)
{
	return clock_ns_at(&gaps->born, &gaps->now, gaps->born.cycles + cycles) / 1e3 -
	       gaps->born.ns / 1e3;
}

static json_t *rows_json(const struct ctl_gaps *gaps, const struct rows *rows, double min_us)
{
	json_t *list = json_array();

	for (size_t i = 0; i < rows->n; i++) {
		const struct row *row = &rows->row[i];
		double us = us_of(gaps, row->pause.cycles);

		if (us < min_us)
			continue;
		json_int_t at_ns = clock_ns_at(&gaps->born, &gaps->now, row->pause.end);
		json_array_append_new(list,
			json_pack("{s:i, s:i, s:I, s:f}", "lane", (int)row->lane->lane, "core",
				row->lane->core, "at_ns", at_ns, "us", round(us * 1000) / 1000));
	}
	return list;
}

json_t *ctl_gaps_json(const struct ctl_gaps *gaps, const json_t *params, struct complaint *why)
{
	double min_us = PAUSES_LEAST_US;
	const struct ctl_param takes[] = {{"min_us", CTL_REAL, false, 0, LONGEST_US, &min_us}};
	struct rows rows = {.row = NULL};

	if (ctl_params_read(params, takes, ARRAY_LEN(takes), why))
		return NULL;
	rows.row = malloc(gaps->n_lanes * PAUSES_KNOWN * sizeof(*rows.row));
	if (!rows.row) {
		complain(why, -ENOMEM, "no memory for the gaps of %u lanes", gaps->n_lanes);
		return NULL;
	}
	for (unsigned i = 0; i < gaps->n_lanes; i++)
		add_lane(&rows, &gaps->lane[i]);
	qsort(rows.row, rows.n, sizeof(*rows.row), by_end);
	json_t *list = rows_json(gaps, &rows, min_us);
	free(rows.row);
	return json_pack("{s:o, s:I, s:I}", "gaps", list, "forgotten", (json_int_t)rows.n_forgotten,
		"now_ns", (json_int_t)gaps->now.ns);
}
