// Batches of changes, of which all or none are applied: at once, or in turns of the control loop.
// Control thread.
#include "qos/inside.h"

#include <limits.h>
#include <stdlib.h>

void work_begin(struct work *work, const struct work_row *rows, unsigned n)
{
	*work = (struct work){.rows = rows, .n_rows = n};
}

int work_some(struct qos *qos, struct work *work, unsigned most, struct error *error)
{
	qos->is_pausing = false;
	for (; work->row < work->n_rows; work->row++, work->at = 0) {
		const struct work_row *row = &work->rows[work->row];
		const size_t n = row->n ? row->n(qos) : 1;

		while (work->at < n) {
			if (!most--)
				return WORK_MORE;
			const int result = row->each(qos, work->at, error);

			if (result)
				return result;
			work->at++;
			if (qos->is_pausing)
				return WORK_MORE;
		}
	}
	return 0;
}

int work_all(struct qos *qos, const struct work_row *rows, unsigned n, struct error *error)
{
	struct work work;
	int result;

	work_begin(&work, rows, n);
	do
		result = work_some(qos, &work, UINT_MAX, error);
	while (result > 0);
	return result;
}

int work_wait(struct qos *qos)
{
	qos->is_waiting = true;
	return WORK_MORE;
}

int work_pause(struct qos *qos)
{
	qos->is_pausing = true;
	return WORK_MORE;
}

void batch_open(struct qos *qos)
{
	qos->batch++;
	qos->n_changes = qos->n_profile_changes = 0;
	qos->has_names = qos->is_written = qos->was_bound = false;
	qos->is_open = true;
}

void qos_begin(struct qos *qos)
{
	work_all(qos, reuse_rows, REUSE_ROWS, NULL);
	batch_open(qos);
}

int qos_prepare(struct qos *qos, struct error *error)
{
	return work_all(qos, prepare_rows, PREPARE_ROWS, error);
}

void batch_committed(struct qos *qos)
{
	qos->n_batches++;
	qos->n_applied += qos->n_changes + qos->n_profile_changes;
	qos->is_open = false;
}

void qos_commit(struct qos *qos, uint64_t now)
{
	qos->now = now;
	work_all(qos, publish_rows, PUBLISH_ROWS, NULL);
	batch_committed(qos);
}

static size_t n_changes(const struct qos *qos)
{
	return qos->n_changes;
}

// All that is new goes first: what was there before has space then.
static int remove_new(struct qos *qos, size_t i, struct error *error)
{
	const struct change *change = &qos->change[i];

	if (change->old && !change->new)
		hash_table_remove(&qos->gone, &change->old->node);
	if (!change->new)
		return 0;
	registry_remove(qos, change->new);
	if (!change->old)
		subscriber_free_index(qos, change->new->index);
	return 0;
}

static int restore_profiles(struct qos *qos, size_t i, struct error *error)
{
	for (i = 0; i < qos->n_profile_changes; i++)
		if (qos->profile_change[i].new)
			profile_leave(qos, qos->profile_change[i].new);
	for (i = 0; i < qos->n_profile_changes; i++) {
		free(qos->profile_change[i].new);
		if (qos->profile_change[i].old)
			profile_enter(qos, qos->profile_change[i].old);
	}
	return 0;
}

static int restore_old(struct qos *qos, size_t i, struct error *error)
{
	const struct change *change = &qos->change[i];

	subscriber_free(change->new);
	if (!change->old)
		return 0;
	registry_restore(qos, change->old);
	change->old->batch = 0;
	return 0;
}

static int end(struct qos *qos, size_t i, struct error *error)
{
	qos->n_changes = qos->n_profile_changes = 0;
	qos->is_open = false;
	if (qos->was_bound)
		publish_ifaces(qos);
	return 0;
}

const struct work_row abort_rows[ABORT_ROWS] = {
	{n_changes, remove_new},
	{NULL, restore_profiles},
	{n_changes, restore_old},
	{NULL, end},
};

void qos_abort(struct qos *qos)
{
	work_all(qos, abort_rows, ABORT_ROWS, NULL);
}
