// Saves flows to a file, in slices: flows, then the actions and VRFs that they have, then the
// header. Control thread.
#include "flow/file.h"
#include "flow/table.h"
#include "flow/writer.h"

#include <errno.h>
#include <rte_byteorder.h>
#include <stdlib.h>

enum { SLICE_FLOWS = WRITER_CHUNK_BYTES / FILE_RECORD_BYTES, SLICE_NUMBERS = 1 << 16 };
enum { NO_NUMBER = 0, VRFS = 4096 };
// Records of actions and VRFs are in pieces, so that none has to be moved when there are more.
enum { PIECE_RECORDS = 1 << 12, PIECES = (FLOW_ACTIONS + VRFS) / PIECE_RECORDS };
// Actions that a step gives back, or uses.
enum { SLICE_ACTIONS = 1 << 13 };

_Static_assert(PIECE_RECORDS % SLICE_FLOWS == 0, "a slice is in one piece");
_Static_assert((int)WRITER_HEAD_BYTES == FILE_RECORD_BYTES, "the head of the file is its header");

struct flow_save {
	struct flow_table *table;
	struct flow_save_settings settings;
	struct writer *writer;
	uint32_t next; // flow number; 0: all are saved
	size_t n_saved_actions;
	bool is_finished;
	uint64_t n_flows;
	uint32_t crc;
	uint32_t *number; // by action: its number in the file + 1
	struct piece {
		uint8_t record[PIECE_RECORDS][FILE_RECORD_BYTES];
		uint32_t used[PIECE_RECORDS]; // the actions, as numbers of the table
	} * piece[PIECES];
	size_t n_actions, n_used;
	uint64_t has_vrf[VRFS / 64];
};

struct flow_save *flow_save_open(struct flow_table *table,
	const struct flow_save_settings *settings, struct error *error)
{
	struct flow_save *save = calloc(1, sizeof(*save));

	if (save)
		*save = (struct flow_save){.table = table,
			.settings = *settings,
			.next = 1,
			.number = calloc(FLOW_ACTIONS, sizeof(*save->number))};
	if (!save || !save->number)
		error_set(error, -ENOMEM, "not enough memory to save flows to %s", settings->path);
	else
		save->writer = writer_open(settings->path, error);
	if (save && save->writer)
		return save;
	flow_save_close(save);
	return NULL;
}

static uint8_t *record_at(const struct flow_save *save, size_t i)
{
	return save->piece[i / PIECE_RECORDS]->record[i % PIECE_RECORDS];
}

static uint32_t *used_at(const struct flow_save *save, size_t i)
{
	return &save->piece[i / PIECE_RECORDS]->used[i % PIECE_RECORDS];
}

// The next record, of zeros. NULL: there is not enough memory.
static uint8_t *next_record(struct flow_save *save)
{
	struct piece **piece = &save->piece[save->n_actions / PIECE_RECORDS];

	if (!*piece)
		*piece = calloc(1, sizeof(**piece));
	return *piece ? record_at(save, save->n_actions) : NULL;
}

// The number of an action in the file; it is described when it first appears. Negative: -ENOMEM.
static int64_t number_of(struct flow_save *save, uint32_t action)
{
	if (save->number[action] == NO_NUMBER) {
		uint8_t *record = next_record(save);
		if (!record)
			return -ENOMEM;
		save->table->actions.n_users[action]++; // so that its number stays
		*used_at(save, save->n_used++) = action;
		save->settings.describe(save->settings.ctx, action, record);
		save->number[action] = ++save->n_actions;
	}
	return save->number[action] - 1;
}

static void note_vrf(struct flow_save *save, const struct file_flow *record)
{
	const uint16_t vrf = rte_le_to_cpu_16(record->vrf);

	save->has_vrf[vrf / 64] |= 1ull << vrf % 64;
}

// The VRFs' records follow those of the actions.
static int add_vrfs(struct flow_save *save)
{
	if (!save->settings.describe_vrf)
		return 0;
	for (unsigned vrf = 1; vrf < VRFS; vrf++) {
		if (!(save->has_vrf[vrf / 64] >> vrf % 64 & 1))
			continue;
		uint8_t *record = next_record(save);
		if (!record)
			return -ENOMEM;
		save->settings.describe_vrf(save->settings.ctx, vrf, record);
		save->n_actions++;
	}
	return 0;
}

static void add_to_file(struct flow_save *save, const void *records, size_t n)
{
	save->crc = file_crc(save->crc, records, n * FILE_RECORD_BYTES);
	writer_add(save->writer, n * FILE_RECORD_BYTES);
}

static int save_flows(struct flow_save *save, struct file_flow *record, uint64_t now)
{
	const uint32_t end = save->next + SLICE_NUMBERS;
	struct flow_info info;
	unsigned n = 0;

	while (n < SLICE_FLOWS && save->next && save->next < end) {
		if (!flow_next_within(save->table, &save->next, end - save->next, now, &info))
			continue;
		int64_t number = number_of(save, info.action);
		if (number < 0)
			return number;
		file_flow_write(&record[n], &info, number);
		note_vrf(save, &record[n++]);
	}
	save->n_flows += n;
	add_to_file(save, record, n);
	return save->next ? 0 : add_vrfs(save);
}

static void save_actions(struct flow_save *save, void *space)
{
	const size_t left = save->n_actions - save->n_saved_actions;
	const size_t n = MIN_OF(left, SLICE_FLOWS);

	// Pieces are a multiple of it.
	memcpy(space, record_at(save, save->n_saved_actions), n * FILE_RECORD_BYTES);
	add_to_file(save, space, n);
	save->n_saved_actions += n;
}

// Flows have their times as of the step that saved them; loading adds what has passed since the
// time of the header. With the time of the last step, none has aged too much then.
static void finish(struct flow_save *save, uint64_t wall_ms)
{
	struct file_header header = {.n_actions = rte_cpu_to_le_32(save->n_actions),
		.n_flows = rte_cpu_to_le_64(save->n_flows),
		.saved_ms = rte_cpu_to_le_64(wall_ms),
		.records_crc = rte_cpu_to_le_32(save->crc)};

	file_header_seal(&header);
	writer_finish(save->writer, &header);
	save->is_finished = true;
}

static int step(struct flow_save *save, void *space, uint64_t now, uint64_t wall_ms)
{
	if (save->next)
		return save_flows(save, space, now);
	if (save->n_saved_actions < save->n_actions)
		save_actions(save, space);
	else
		finish(save, wall_ms);
	return 0;
}

// Actions that no flow has any more are told when they are given back.
static bool give_back(struct flow_save *save, size_t most)
{
	for (; save->n_used && most; most--)
		flow_action_unuse(save->table, *used_at(save, --save->n_used));
	return save->n_used;
}

int flow_save_step(struct flow_save *save, uint64_t now, uint64_t wall_ms, struct error *error)
{
	int err = writer_result(save->writer, error);
	void *space = err > 0 ? writer_space(save->writer) : NULL;

	if (err <= 0 || save->is_finished)
		return give_back(save, SLICE_ACTIONS) ? 1 : err;
	if (!space)
		return 1;
	err = step(save, space, now, wall_ms);
	if (err < 0)
		return error_set(error, err, "not enough memory to save flows to %s",
			save->settings.path);
	return 1;
}

bool flow_save_is_waiting(const struct flow_save *save)
{
	return save->is_finished ? !save->n_used : !writer_space(save->writer);
}

uint64_t flow_save_n(const struct flow_save *save)
{
	return save->n_flows;
}

void flow_save_close(struct flow_save *save)
{
	if (!save)
		return;
	writer_close(save->writer);
	give_back(save, SIZE_MAX);
	for (size_t i = 0; i < PIECES; i++)
		free(save->piece[i]);
	free(save->number);
	free(save);
}
