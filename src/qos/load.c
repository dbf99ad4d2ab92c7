// Subscribers from a file in turns of the control loop: its lines are staged, then all is applied,
// or taken back. Control thread.
#include "qos/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 16, PATH_BYTES = 256 };
#define MOST_BYTES (1ll << 30)

struct qos_load {
	struct qos *qos;
	int fd;
	char path[PATH_BYTES]; // for messages
	enum qos_load_phase phase;
	struct work work;
	bool is_working; // on what a line needs first
	size_t n, at;    // bytes in the buffer; where the next line begins
	bool is_end;     // of the file
	bool is_again;   // the next line was tried before, which may have cut it
	uint64_t n_bytes, n_lines;
	int err; // why it is taken back
	struct error error;
	char buffer[BUFFER_BYTES + 1]; // a line ends with a 0 in it
};

struct qos_load *qos_load_open(struct qos *qos, int fd, const char *path, struct error *error)
{
	struct stat status;
	struct qos_load *load = NULL;

	if (fstat(fd, &status))
		error_set(error, -errno, "cannot read %.200s: %s", path, strerror(errno));
	else if (!S_ISREG(status.st_mode) || status.st_size > MOST_BYTES)
		error_set(error, -EINVAL, "%.200s: expected a regular file of at most 1 GiB", path);
	else if (!(load = malloc(sizeof(*load))))
		error_set(error, -ENOMEM, "%.200s: not enough memory to read the file", path);
	if (!load) {
		close(fd);
		return NULL;
	}
	memset(load, 0, offsetof(struct qos_load, buffer));
	load->qos = qos;
	load->fd = fd;
	snprintf(load->path, sizeof(load->path), "%.200s", path);
	qos->in_turns = true;
	qos->deferred.searches = false;
	work_begin(&load->work, reuse_rows, REUSE_ROWS);
	return load;
}

static int fill(struct qos_load *load, struct error *error)
{
	memmove(load->buffer, load->buffer + load->at, load->n - load->at);
	load->n -= load->at;
	load->at = 0;
	if (load->n == BUFFER_BYTES)
		return error_set(error, -EINVAL,
			"a line of more than %d bytes; expected at most %d", BUFFER_BYTES,
			QOS_LINE_MAX - 5);
	const ssize_t n = read(load->fd, load->buffer + load->n, BUFFER_BYTES - load->n);

	if (n < 0)
		return errno == EINTR
		               ? 0
		               : error_set(error, -errno, "cannot read it: %s", strerror(errno));
	load->n += n;
	load->n_bytes += n;
	load->is_end = !n;
	return load->n_bytes > MOST_BYTES
	               ? error_set(error, -EINVAL, "the file grows; expected at most 1 GiB")
	               : 0;
}

// What a line needs before it can be staged, in turns.
static void begin_deferred(struct qos_load *load)
{
	load->is_working = true;
	if (load->qos->deferred.n) {
		registry_begin_growth(load->qos);
		work_begin(&load->work, growth_rows, GROWTH_ROWS);
	} else if (load->qos->deferred.searches) {
		work_begin(&load->work, search_rows, SEARCH_ROWS);
	} else {
		work_begin(&load->work, length_rows, LENGTH_ROWS);
	}
}

static int stage(struct qos_load *load, char *line, size_t n, struct error *error)
{
	struct qos *qos = load->qos;

	if (!load->is_again && memchr(line, 0, n))
		return error_set(error, -EINVAL, "has NUL bytes; expected text");
	line[n] = 0;
	qos->is_deferring = true;
	const int err = qos_stage_line(qos, line, false, error);

	qos->is_deferring = false;
	return err;
}

// A line: WORK_MORE, 0: there are no more, or -errno with `error` set.
static int read_line(struct qos_load *load, struct error *error)
{
	char *line = load->buffer + load->at, *end = memchr(line, '\n', load->n - load->at);

	if (!end && !load->is_end) {
		const int err = fill(load, error);

		return err ? err : WORK_MORE;
	}
	if (!end && load->at == load->n)
		return 0;
	const size_t n = end ? (size_t)(end - line) : load->n - load->at;
	const int err = stage(load, line, n, error);

	load->is_again = err == -EAGAIN;
	if (load->is_again) {
		if (end)
			*end = '\n';
		begin_deferred(load);
		return WORK_MORE;
	}
	load->at += n + !!end;
	load->n_lines += !err;
	return err ? err : WORK_MORE;
}

static int read_some(struct qos_load *load, unsigned most, struct error *error)
{
	struct error inner;
	int result = WORK_MORE;

	while (most-- && result == WORK_MORE && !load->is_working)
		result = read_line(load, &inner);
	if (result < 0)
		error_set(error, result, "%s:%llu: %s", load->path,
			(unsigned long long)load->n_lines + 1, inner.text);
	return result;
}

static void go_on(struct qos_load *load, enum qos_load_phase phase, const struct work_row *rows,
	unsigned n)
{
	load->phase = phase;
	work_begin(&load->work, rows, n);
}

// After a part of the work.
static void next(struct qos_load *load)
{
	switch (load->phase) {
	case QOS_LOAD_BEGINS:
		batch_open(load->qos);
		load->phase = QOS_LOAD_READS;
		break;
	case QOS_LOAD_READS:
		go_on(load, QOS_LOAD_CHECKS, prepare_rows, PREPARE_ROWS);
		break;
	case QOS_LOAD_CHECKS:
		go_on(load, QOS_LOAD_APPLIES, publish_rows, PUBLISH_ROWS);
		break;
	case QOS_LOAD_APPLIES:
		batch_committed(load->qos);
		go_on(load, QOS_LOAD_ENDS, reuse_rows, REUSE_ROWS);
		break;
	default:
		load->phase = QOS_LOAD_DONE;
	}
}

// Up to `most` things of the present phase. WORK_MORE, 0: the phase is over, or -errno.
static int some(struct qos_load *load, unsigned most, struct error *error)
{
	if (load->phase != QOS_LOAD_READS)
		return work_some(load->qos, &load->work, most, error);
	if (!load->is_working)
		return read_some(load, most, error);
	const int result = work_some(load->qos, &load->work, most, error);

	load->is_working = result > 0;
	return result < 0 ? result : WORK_MORE;
}

int qos_load_some(struct qos_load *load, unsigned most, uint64_t now, struct error *error)
{
	struct qos *qos = load->qos;

	qos->now = now;
	qos->is_waiting = qos->is_pausing = false;
	const int result = some(load, most, &load->error);

	if (result < 0) {
		load->err = result;
		load->is_working = false;
		go_on(load, QOS_LOAD_TAKES_BACK, abort_rows, ABORT_ROWS);
	} else if (!result) {
		next(load);
	}
	if (load->phase != QOS_LOAD_DONE)
		return qos->is_waiting   ? QOS_LOAD_WAITS
		       : qos->is_pausing ? QOS_LOAD_PAUSES
		                         : QOS_LOAD_MORE;
	if (load->err)
		error_set(error, load->err, "%s; nothing was changed", load->error.text);
	return load->err;
}

enum qos_load_phase qos_load_phase(const struct qos_load *load, uint64_t *n_lines)
{
	*n_lines = load->n_lines;
	return load->phase;
}

void qos_load_close(struct qos_load *load)
{
	struct qos *qos;

	if (!load)
		return;
	qos = load->qos;
	qos->in_turns = false; // waits where it has to
	while (load->is_working)
		(void)some(load, QOS_MAX, NULL);
	if (load->phase == QOS_LOAD_READS || load->phase == QOS_LOAD_CHECKS) {
		growth_close(qos);
		go_on(load, QOS_LOAD_TAKES_BACK, abort_rows, ABORT_ROWS);
	}
	while (load->phase >= QOS_LOAD_APPLIES && load->phase != QOS_LOAD_DONE)
		(void)qos_load_some(load, QOS_MAX, qos->now, NULL);
	close(load->fd);
	free(load);
}
