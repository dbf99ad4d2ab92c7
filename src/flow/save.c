// Saves flows to a file, in slices. The file appears under its name when it is complete. Control
// thread.
#include "base/vector.h"
#include "flow/file.h"
#include "flow/table.h"

#include <errno.h>
#include <fcntl.h>
#include <rte_byteorder.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SLICE_FLOWS = 2048, NO_NUMBER = 0 };

struct flow_save {
	struct flow_table *table;
	flow_describe_fn *describe;
	void *ctx;
	char *path, *new_path; // the file, and its name until it is complete
	int fd;
	uint32_t next; // flow number
	uint64_t n_flows, saved_ms;
	uint32_t crc;
	uint32_t *number; // by action: its number in the file + 1
	uint8_t (*action)[FILE_RECORD_BYTES];
	uint32_t *used; // the actions, as numbers of the table
	size_t n_actions, action_capacity, used_capacity;
	struct file_flow record[SLICE_FLOWS];
};

static int fail(const struct flow_save *save, const char *what, struct error *error)
{
	const int err = errno;

	return error_set(error, -err, "cannot %s %s: %s", what, save->new_path, strerror(err));
}

struct flow_save *flow_save_open(struct flow_table *table, const char *path,
	flow_describe_fn *describe, void *ctx, struct error *error)
{
	struct flow_save *save = calloc(1, sizeof(*save));

	if (!save)
		goto no_memory;
	*save = (struct flow_save){.table = table,
		.describe = describe,
		.ctx = ctx,
		.path = strdup(path),
		.fd = -1,
		.next = 1,
		.number = calloc(FLOW_ACTIONS, sizeof(*save->number))};
	if (!save->path || !save->number || asprintf(&save->new_path, "%s.new", path) < 0)
		goto no_memory;
	save->fd = open(save->new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (save->fd < 0) {
		fail(save, "create", error);
		free(save->new_path); // it is not ours
		save->new_path = NULL;
		goto close_save;
	}
	if (lseek(save->fd, sizeof(struct file_header), SEEK_SET) < 0) {
		fail(save, "write", error);
		goto close_save;
	}
	return save;
no_memory:
	error_set(error, -ENOMEM, "not enough memory to save flows to %s", path);
	if (save)
		save->new_path = NULL;
close_save:
	flow_save_close(save);
	return NULL;
}

static int write_all(struct flow_save *save, const void *from, size_t n, struct error *error)
{
	const uint8_t *at = from;

	while (n) {
		ssize_t written = write(save->fd, at, n);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return fail(save, "write", error);
		at += written;
		n -= written;
	}
	return 0;
}

static int write_records(struct flow_save *save, const void *records, size_t n, struct error *error)
{
	save->crc = file_crc(save->crc, records, n * FILE_RECORD_BYTES);
	return write_all(save, records, n * FILE_RECORD_BYTES, error);
}

// The number of an action in the file; it is described when it first appears. Negative: -ENOMEM.
static int64_t number_of(struct flow_save *save, uint32_t action)
{
	if (save->number[action] == NO_NUMBER) {
		const size_t n = save->n_actions + 1;
		if (vector_reserve(&save->action, &save->action_capacity, n,
			    sizeof(*save->action)) ||
			vector_reserve(&save->used, &save->used_capacity, n, sizeof(*save->used)))
			return -ENOMEM;
		save->table->actions.n_users[action]++; // so that its number stays
		save->used[save->n_actions] = action;
		memset(save->action[save->n_actions], 0, sizeof(*save->action));
		save->describe(save->ctx, action, save->action[save->n_actions]);
		save->number[action] = ++save->n_actions;
	}
	return save->number[action] - 1;
}

// The actions, and the header now that it is known; then the file gets its name.
static int finish(struct flow_save *save, struct error *error)
{
	struct file_header header = {.n_actions = rte_cpu_to_le_32(save->n_actions),
		.n_flows = rte_cpu_to_le_64(save->n_flows),
		.saved_ms = rte_cpu_to_le_64(save->saved_ms)};
	int err = write_records(save, save->action, save->n_actions, error);

	if (err)
		return err;
	header.records_crc = rte_cpu_to_le_32(save->crc);
	file_header_seal(&header);
	if (lseek(save->fd, 0, SEEK_SET) < 0)
		return fail(save, "write", error);
	err = write_all(save, &header, sizeof(header), error);
	if (err)
		return err;
	if (fdatasync(save->fd))
		return fail(save, "write", error);
	if (rename(save->new_path, save->path))
		return fail(save, "rename", error);
	free(save->new_path);
	save->new_path = NULL;
	return 0;
}

int flow_save_step(struct flow_save *save, uint64_t now, uint64_t wall_ms, struct error *error)
{
	struct flow_info info;
	unsigned n = 0;

	if (!save->saved_ms)
		save->saved_ms = wall_ms;
	for (; n < SLICE_FLOWS && flow_next(save->table, save->next, now, &info); n++) {
		int64_t number = number_of(save, info.action);
		if (number < 0)
			return error_set(error, number, "not enough memory to save flows to %s",
				save->path);
		file_flow_write(&save->record[n], &info, number);
		save->next = info.number + 1;
	}
	save->n_flows += n;
	int err = write_records(save, save->record, n, error);
	if (err)
		return err;
	// So that little is left to be waited for at the end.
	sync_file_range(save->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	return n == SLICE_FLOWS ? 1 : finish(save, error);
}

uint64_t flow_save_n(const struct flow_save *save)
{
	return save->n_flows;
}

void flow_save_close(struct flow_save *save)
{
	if (!save)
		return;
	if (save->fd >= 0)
		close(save->fd);
	if (save->new_path)
		unlink(save->new_path);
	free(save->new_path);
	free(save->path);
	for (size_t i = 0; i < save->n_actions; i++)
		flow_action_unuse(save->table, save->used[i]);
	free(save->used);
	free(save->number);
	free(save->action);
	free(save);
}
