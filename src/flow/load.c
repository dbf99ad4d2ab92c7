// Loads flows from a file, in slices: first the whole file is checked, then it is read again and
// applied. Control thread.
#include "flow/file.h"

#include "base/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <rte_byteorder.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLICE_FLOWS = 2048, VRFS = 4096, AHEAD_BYTES = 4 << 20, FREED_BYTES = 4 << 20 };

struct flow_load {
	char *name;
	int fd;
	uint64_t n_flows, saved_ms;
	uint32_t n_actions, wanted_crc;
	struct flow_loaded loaded;
	uint64_t checked, applied; // flows
	uint32_t n_read;           // actions
	bool is_checked;
	uint64_t has_vrf[VRFS / 64];
	uint32_t crc;
	uint32_t *slice_crc; // by slice, so that it is noticed if the file changes
	uint8_t (*action)[FILE_RECORD_BYTES];
	size_t action_bytes; // that are allocated
	struct file_flow record[SLICE_FLOWS];
	struct flow_change change[SLICE_FLOWS];
	uint16_t at[SLICE_FLOWS]; // of a change: the place of its flow in the slice
	int result[SLICE_FLOWS];
};

static int read_at(const struct flow_load *load, void *to, size_t n, uint64_t offset,
	struct error *error)
{
	for (uint8_t *at = to; n;) {
		ssize_t got = pread(load->fd, at, n, offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set(error, -errno, "cannot read %s: %s", load->name,
				strerror(errno));
		if (!got)
			return error_set(error, -EINVAL, "%s has become shorter", load->name);
		at += got;
		offset += got;
		n -= got;
	}
	return 0;
}

static int open_file(struct flow_load *load, struct error *error)
{
	struct file_header header;
	struct stat status;

	if (fstat(load->fd, &status))
		return error_set(error, -errno, "cannot read %s: %s", load->name, strerror(errno));
	if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size < sizeof(header))
		return error_set(error, -EINVAL, "%s is not a file of flows", load->name);
	int err = read_at(load, &header, sizeof(header), 0, error);
	if (!err)
		err = file_header_check(&header, status.st_size, load->name, error);
	if (err)
		return err;
	load->n_flows = rte_le_to_cpu_64(header.n_flows);
	load->n_actions = rte_le_to_cpu_32(header.n_actions);
	load->saved_ms = rte_le_to_cpu_64(header.saved_ms);
	load->wanted_crc = rte_le_to_cpu_32(header.records_crc);
	load->slice_crc = calloc(load->n_flows / SLICE_FLOWS + 1, sizeof(*load->slice_crc));
	load->action_bytes = (load->n_actions + 1ull) * sizeof(*load->action);
	load->action = pages_alloc(load->action_bytes);
	if (!load->slice_crc || !load->action)
		return error_set(error, -ENOMEM, "not enough memory to load flows from %s",
			load->name);
	return 0;
}

struct flow_load *flow_load_open(int fd, const char *name, struct error *error)
{
	struct flow_load *load = calloc(1, sizeof(*load));

	if (!load) {
		error_set(error, -ENOMEM, "not enough memory to load flows from %s", name);
		close(fd);
		return NULL;
	}
	load->fd = fd;
	load->name = strdup(name);
	if (!load->name)
		error_set(error, -ENOMEM, "not enough memory to load flows from %s", name);
	if (load->name && !open_file(load, error))
		return load;
	flow_load_close(load);
	return NULL;
}

// Reads the slice that begins with flow `first`. Returns how many flows it has, or -errno.
static int read_slice(struct flow_load *load, uint64_t first, struct error *error)
{
	const unsigned n = MIN_OF(load->n_flows - first, SLICE_FLOWS);
	const uint64_t offset = (1 + first) * FILE_RECORD_BYTES;
	// So that the disk reads while what it has read is looked at.
	posix_fadvise(load->fd, offset, AHEAD_BYTES, POSIX_FADV_WILLNEED);
	int err = read_at(load, load->record, n * sizeof(*load->record), offset, error);
	struct error reason;

	if (err)
		return err;
	for (unsigned i = 0; i < n; i++)
		if (file_flow_read(&load->record[i], load->n_actions, &load->change[i], &reason))
			return error_set(error, -EINVAL, "%s: flow %llu: %s", load->name,
				(unsigned long long)(first + i + 1), reason.text);
	return n;
}

// After the flows: a slice of their actions; at the end, the checksum. 1: there is more to do.
static int check_actions(struct flow_load *load, struct error *error)
{
	const uint32_t n = MIN_OF(load->n_actions - load->n_read, SLICE_FLOWS);
	const size_t n_bytes = (size_t)n * FILE_RECORD_BYTES;
	const uint64_t offset = (1 + load->n_flows + load->n_read) * FILE_RECORD_BYTES;
	posix_fadvise(load->fd, offset, AHEAD_BYTES, POSIX_FADV_WILLNEED);
	int err = read_at(load, load->action[load->n_read], n_bytes, offset, error);

	if (err)
		return err;
	load->crc = file_crc(load->crc, load->action[load->n_read], n_bytes);
	load->n_read += n;
	if (load->n_read < load->n_actions)
		return 1;
	if (load->crc != load->wanted_crc)
		return error_set(error, -EINVAL, "%s is damaged (its checksum differs)",
			load->name);
	load->is_checked = true;
	return 0;
}

static uint16_t vrf_of(const struct flow_key *key)
{
	return key->family == 6 ? key->six.vrf : flow_kind4_vrf(key->four.kind);
}

static void note(struct flow_load *load, const struct flow_change *change)
{
	struct flow_loaded *loaded = &load->loaded;
	const uint16_t vrf = vrf_of(&change->key);

	*(change->key.family == 6 ? &loaded->n6 : &loaded->n4) += 1;
	loaded->max_action = MAX_OF(loaded->max_action, change->action);
	if (change->life != FLOW_FIXED_END)
		loaded->max_timeout = MAX_OF(loaded->max_timeout, (unsigned)change->life);
	load->has_vrf[vrf / 64] |= 1ull << vrf % 64;
}

static int check_flows(struct flow_load *load, struct error *error)
{
	int n = read_slice(load, load->checked, error);

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++)
		note(load, &load->change[i]);
	load->crc = file_crc(load->crc, load->record, n * sizeof(*load->record));
	load->slice_crc[load->checked / SLICE_FLOWS] =
		file_crc(0, load->record, n * sizeof(*load->record));
	load->checked += n;
	return 1;
}

int flow_load_check(struct flow_load *load, struct error *error)
{
	return load->checked < load->n_flows ? check_flows(load, error)
	                                     : check_actions(load, error);
}

const void *flow_load_actions(const struct flow_load *load, uint32_t *n)
{
	*n = load->n_actions;
	return load->action;
}

bool flow_load_has_vrf(const struct flow_load *load, uint16_t vrf)
{
	return vrf < VRFS && load->has_vrf[vrf / 64] >> vrf % 64 & 1;
}

// From the time at saving to that at loading: what has a fixed end may have passed it.
static void adjust(struct flow_change *change, uint64_t passed_ms)
{
	if (change->life == FLOW_FIXED_END)
		change->lasts_ms -= MIN_OF(change->lasts_ms, passed_ms);
	else
		change->idle_ms = MIN_OF(change->idle_ms + passed_ms, FLOW_MAX_LASTS_MS);
}

static void set_vrf(struct flow_key *key, const uint16_t vrf[])
{
	if (key->family == 6)
		key->six.vrf = vrf[key->six.vrf];
	else
		key->four.kind = flow_kind4(vrf[flow_kind4_vrf(key->four.kind)],
			flow_kind4_proto(key->four.kind));
}

// Why the flow cannot be applied here; 0: it can.
static int reason_against(const struct flow_change *change, const struct flow_load_options *options)
{
	if (options->vrf && options->vrf[vrf_of(&change->key)] == FLOW_NO_VRF)
		return -ENXIO;
	return options->deletes || options->action[change->action] ? 0 : -ENODEV;
}

// The change as it is to be applied.
static void prepare(struct flow_change *change, const struct flow_load_options *options,
	uint64_t passed_ms)
{
	if (options->vrf)
		set_vrf(&change->key, options->vrf);
	if (options->deletes) {
		change->op = FLOW_DELETE;
		return;
	}
	change->action = options->action[change->action];
	adjust(change, passed_ms);
	if (!options->keeps_counters)
		change->packets = change->bytes = 0;
}

// `at`: its place in the slice.
static void note_refusal(struct flow_load *load, unsigned at, int reason,
	const struct flow_change *change)
{
	struct flow_loaded *loaded = &load->loaded;
	const uint64_t number = load->applied + at + 1;

	if (loaded->n_refused++ && loaded->first_refused < number)
		return;
	loaded->first_refused = number;
	loaded->first_error = reason;
	loaded->refused_action = change->action;
	loaded->refused_vrf = vrf_of(&change->key);
}

// Prepares what can be applied, and closes the gaps; returns how many those are.
static unsigned prepare_slice(struct flow_load *load, unsigned n,
	const struct flow_load_options *options)
{
	const uint64_t passed_ms = options->wall_ms > load->saved_ms && load->saved_ms
	                                   ? options->wall_ms - load->saved_ms
	                                   : 0;
	unsigned n_left = 0;

	for (unsigned i = 0; i < n; i++) {
		struct flow_change *change = &load->change[i];
		const int reason = reason_against(change, options);
		if (reason) {
			note_refusal(load, i, reason, change);
			continue;
		}
		prepare(change, options, passed_ms);
		load->at[n_left] = i;
		load->change[n_left++] = *change;
	}
	return n_left;
}

static void note_results(struct flow_load *load, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (load->result[i])
			note_refusal(load, load->at[i], load->result[i], &load->change[i]);
		else
			load->loaded.n_applied++;
}

int flow_load_apply(struct flow_load *load, struct flow_table *table,
	const struct flow_load_options *options, uint64_t now, struct error *error)
{
	if (!load->is_checked)
		return error_set(error, -EINVAL, "%s has not been checked", load->name);
	int n = read_slice(load, load->applied, error);
	if (n >= 0 && load->slice_crc[load->applied / SLICE_FLOWS] !=
			      file_crc(0, load->record, n * sizeof(*load->record)))
		n = error_set(error, -EINVAL,
			"%s has changed while it was loaded; %llu flows were applied", load->name,
			(unsigned long long)load->loaded.n_applied);
	if (n < 0)
		return n;
	const unsigned n_left = prepare_slice(load, n, options);
	flow_change(table, load->change, n_left, now, load->result);
	note_results(load, n_left);
	load->applied += n;
	return load->applied < load->n_flows;
}

struct flow_loaded flow_load_result(const struct flow_load *load)
{
	return load->loaded;
}

bool flow_load_free_some(struct flow_load *load)
{
	if (load->action_bytes)
		load->action_bytes = pages_free_some(load->action, load->action_bytes, FREED_BYTES);
	if (!load->action_bytes)
		load->action = NULL;
	return load->action_bytes;
}

void flow_load_close(struct flow_load *load)
{
	if (!load)
		return;
	close(load->fd);
	free(load->name);
	free(load->slice_crc);
	pages_free(load->action, load->action_bytes);
	free(load);
}
