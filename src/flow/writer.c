// Writes a file with a thread of its own. `tail`, `result` and `reason` are the thread's, the rest
// of what both use is the control thread's; `lock` protects all of it but the chunks.
#include "flow/writer.h"

#include "flow/flow.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct writer {
	char *path, *new_path; // the file, and its name until it is complete
	int fd;
	bool is_created, has_thread;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned head, tail; // chunks that were added, and written
	bool is_finished, is_closing;
	int result; // 1: not complete
	struct error reason;
	uint8_t first[WRITER_HEAD_BYTES];
	size_t n[WRITER_CHUNKS];
	uint8_t chunk[WRITER_CHUNKS][WRITER_CHUNK_BYTES];
};

static int fail(const struct writer *writer, const char *what, struct error *error)
{
	const int err = errno;

	return error_set(error, -err, "cannot %s %s: %s", what, writer->new_path, strerror(err));
}

static int write_all(const struct writer *writer, const void *from, size_t n, struct error *error)
{
	const uint8_t *at = from;

	while (n) {
		ssize_t written = write(writer->fd, at, n);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return fail(writer, "write", error);
		at += written;
		n -= written;
	}
	return 0;
}

// Whether the name still belongs to the file that was created.
static bool has_name(const struct writer *writer)
{
	struct stat file, named;

	return !fstat(writer->fd, &file) && !lstat(writer->new_path, &named) &&
	       file.st_dev == named.st_dev && file.st_ino == named.st_ino;
}

// Its first bytes, now that they are known; then it gets its name.
static int complete(const struct writer *writer, struct error *error)
{
	if (lseek(writer->fd, 0, SEEK_SET) < 0)
		return fail(writer, "write", error);
	int err = write_all(writer, writer->first, sizeof(writer->first), error);
	if (err)
		return err;
	if (fdatasync(writer->fd))
		return fail(writer, "write", error);
	if (!has_name(writer))
		return error_set(error, -EEXIST, "%s has been replaced by another file",
			writer->new_path);
	return rename(writer->new_path, writer->path) ? fail(writer, "rename", error) : 0;
}

static int write_chunk(const struct writer *writer, unsigned chunk, struct error *error)
{
	int err = write_all(writer, writer->chunk[chunk], writer->n[chunk], error);

	// So that little is left to be waited for at the end.
	if (!err)
		sync_file_range(writer->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	return err;
}

// One piece of work, without the lock. 1: there is more to do.
static int work(struct writer *writer, struct error *error)
{
	const bool has_chunk = writer->head != writer->tail;
	const unsigned chunk = writer->tail % WRITER_CHUNKS;
	int err;

	pthread_mutex_unlock(&writer->lock);
	err = has_chunk ? write_chunk(writer, chunk, error) : complete(writer, error);
	pthread_mutex_lock(&writer->lock);
	writer->tail += has_chunk;
	return !err && has_chunk ? 1 : err;
}

static void *run(void *writer_)
{
	struct writer *writer = writer_;
	struct error reason;

	setpriority(PRIO_PROCESS, gettid(), 0); // not that of the control thread
	pthread_mutex_lock(&writer->lock);
	while (writer->result > 0 && !writer->is_closing) {
		if (writer->head == writer->tail && !writer->is_finished) {
			pthread_cond_wait(&writer->changed, &writer->lock);
			continue;
		}
		writer->result = work(writer, &reason);
		if (writer->result < 0)
			writer->reason = reason;
	}
	pthread_mutex_unlock(&writer->lock);
	return NULL;
}

// Signals are for the other threads; a file that is too large is an error of write().
static int start(struct writer *writer)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int err = pthread_create(&writer->thread, NULL, run, writer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

// Whether a file is what a program that was killed has left: its first bytes are not written yet,
// or all of it is, and nobody writes it.
static bool is_left_over(int fd)
{
	uint8_t first[WRITER_HEAD_BYTES] = {0}, any = 0;
	struct stat status;

	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
		flock(fd, LOCK_EX | LOCK_NB) || pread(fd, first, sizeof(first), 0) < 0)
		return false;
	for (size_t i = 0; i < sizeof(first); i++)
		any |= first[i];
	return !any || flow_file_begins(fd);
}

static void remove_left_over(const struct writer *writer)
{
	// Neither follows a link nor waits for the other end of a pipe.
	const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	const int fd = open(writer->new_path, flags);

	if (fd < 0)
		return;
	if (is_left_over(fd))
		unlink(writer->new_path);
	close(fd);
}

// Whatever else has the name stays as it is: others may choose the path.
static int open_file(struct writer *writer, struct error *error)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

	remove_left_over(writer);
	writer->fd = open(writer->new_path, flags, 0600);
	if (writer->fd < 0 && errno == EEXIST)
		return error_set(error, -EEXIST,
			"cannot create %s: it exists; if nothing else needs it, remove it",
			writer->new_path);
	if (writer->fd < 0)
		return fail(writer, "create", error);
	writer->is_created = true;
	flock(writer->fd, LOCK_EX | LOCK_NB); // so that it is not taken for a file left over
	if (lseek(writer->fd, WRITER_HEAD_BYTES, SEEK_SET) < 0)
		return fail(writer, "write", error);
	return 0;
}

struct writer *writer_open(const char *path, struct error *error)
{
	struct writer *writer = calloc(1, sizeof(*writer));

	if (!writer) {
		error_set(error, -ENOMEM, "not enough memory to write %s", path);
		return NULL;
	}
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->changed, NULL);
	writer->fd = -1;
	writer->result = 1;
	writer->path = strdup(path);
	int err = -ENOMEM;
	if (writer->path && asprintf(&writer->new_path, "%s.new", path) < 0)
		writer->new_path = NULL;
	if (!writer->new_path)
		error_set(error, err, "not enough memory to write %s", path);
	else
		err = open_file(writer, error);
	if (!err) {
		err = start(writer);
		if (err)
			error_set(error, err, "cannot start a thread to write %s: %s", path,
				strerror(-err));
		writer->has_thread = !err;
	}
	if (!err)
		return writer;
	writer_close(writer);
	return NULL;
}

void *writer_space(struct writer *writer)
{
	pthread_mutex_lock(&writer->lock);
	const bool is_full = writer->head - writer->tail == WRITER_CHUNKS;
	pthread_mutex_unlock(&writer->lock);
	return is_full ? NULL : writer->chunk[writer->head % WRITER_CHUNKS];
}

void writer_add(struct writer *writer, size_t n)
{
	if (!n)
		return;
	pthread_mutex_lock(&writer->lock);
	writer->n[writer->head++ % WRITER_CHUNKS] = n;
	pthread_cond_signal(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
}

void writer_finish(struct writer *writer, const void *head)
{
	pthread_mutex_lock(&writer->lock);
	memcpy(writer->first, head, sizeof(writer->first));
	writer->is_finished = true;
	pthread_cond_signal(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
}

int writer_result(struct writer *writer, struct error *error)
{
	pthread_mutex_lock(&writer->lock);
	const int result = writer->result;
	if (result < 0)
		error_set(error, result, "%s", writer->reason.text);
	pthread_mutex_unlock(&writer->lock);
	return result;
}

void writer_close(struct writer *writer)
{
	if (!writer)
		return;
	if (writer->has_thread) {
		pthread_mutex_lock(&writer->lock);
		writer->is_closing = true;
		pthread_cond_signal(&writer->changed);
		pthread_mutex_unlock(&writer->lock);
		pthread_join(writer->thread, NULL);
	}
	if (writer->is_created && writer->result && has_name(writer))
		unlink(writer->new_path);
	if (writer->fd >= 0)
		close(writer->fd);
	pthread_cond_destroy(&writer->changed);
	pthread_mutex_destroy(&writer->lock);
	free(writer->new_path);
	free(writer->path);
	free(writer);
}
