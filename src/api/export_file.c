// See export_file.h. `filling` is the control thread's; `passed` is the thread's while `has_work`;
// `lock` protects the rest.
#include "api/export_file.h"

#include "base/vector.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ENOUGH_BYTES = 1 << 18, PRINT_BYTES = 1 << 14 };

struct text {
	char *at;
	size_t n, capacity;
};

struct export_file {
	char *path, *beside;
	int fd;
	FILE *out;
	struct text filling, passed;
	bool is_whole; // nothing follows; control thread
	bool has_thread;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool has_work, is_finished, is_closing;
	int result; // 1: not complete
	struct error reason;
};

static int fail(const struct export_file *file, const char *path, struct error *error)
{
	const int err = errno;

	if (file->fd < 0 && err == EEXIST)
		return error_set(error, -err,
			"cannot write %.200s, which exists: another export writes it, or has left "
			"it there; remove it, or name another file",
			path);
	return error_set(error, -err, "cannot write %.200s: %s", file->fd < 0 ? file->path : path,
		strerror(err));
}

static int write_all(const struct export_file *file, struct error *error)
{
	for (size_t at = 0; at < file->passed.n;) {
		const ssize_t n = write(file->fd, file->passed.at + at, file->passed.n - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(file, file->path, error);
		at += (size_t)n;
	}
	return 0;
}

// Gives it its name once it is on the disk: a crash leaves the old file or the new one.
static int complete(const struct export_file *file, struct error *error)
{
	if (fdatasync(file->fd) || rename(file->beside, file->path))
		return fail(file, file->path, error);
	return 0;
}

static void *run(void *arg)
{
	struct export_file *file = arg;
	struct error reason;

	setpriority(PRIO_PROCESS, gettid(), 0); // not that of the control thread
	pthread_mutex_lock(&file->lock);
	while (file->result > 0 && !file->is_closing) {
		if (!file->has_work && !file->is_finished) {
			pthread_cond_wait(&file->changed, &file->lock);
			continue;
		}
		const bool is_last = !file->has_work;

		pthread_mutex_unlock(&file->lock);
		const int err = is_last ? complete(file, &reason) : write_all(file, &reason);
		pthread_mutex_lock(&file->lock);
		file->has_work = false;
		if (err)
			file->reason = reason;
		if (err || is_last)
			file->result = err;
	}
	pthread_mutex_unlock(&file->lock);
	return NULL;
}

// Signals are for the other threads; a file that is too large is an error of write().
static int start(struct export_file *file)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const int err = pthread_create(&file->thread, NULL, run, file);

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	file->has_thread = !err;
	return err;
}

static ssize_t print(void *arg, const char *from, size_t n)
{
	struct text *filling = &((struct export_file *)arg)->filling;

	if (vector_reserve(&filling->at, &filling->capacity, filling->n + n, 1))
		return 0;
	memcpy(filling->at + filling->n, from, n);
	filling->n += n;
	return (ssize_t)n;
}

static int open_all(struct export_file *file, struct error *error)
{
	// Never through a link: members of the control group choose paths.
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

	file->fd = open(file->beside, flags, 0640);
	if (file->fd < 0)
		return fail(file, file->beside, error);
	file->out = fopencookie(file, "w", (cookie_io_functions_t){.write = print});
	if (!file->out)
		return error_set(error, -ENOMEM, "not enough memory to write %.200s", file->path);
	setvbuf(file->out, NULL, _IOFBF, PRINT_BYTES);
	errno = start(file);
	return errno ? fail(file, file->path, error) : 0;
}

struct export_file *export_file_open(const char *path, FILE **out, struct error *error)
{
	struct export_file *file = calloc(1, sizeof(*file));

	if (file) {
		pthread_mutex_init(&file->lock, NULL);
		pthread_cond_init(&file->changed, NULL);
		file->fd = -1;
		file->result = 1;
		file->path = strdup(path);
		if (asprintf(&file->beside, "%s.new", path) < 0)
			file->beside = NULL;
	}
	if (!file || !file->path || !file->beside)
		error_set(error, -ENOMEM, "not enough memory to write %.200s", path);
	else if (!open_all(file, error)) {
		*out = file->out;
		return file;
	}
	export_file_close(file);
	return NULL;
}

// Whether the thread had nothing to do: then it gets what was printed.
static bool pass(struct export_file *file)
{
	pthread_mutex_lock(&file->lock);
	const bool is_free = !file->has_work;

	if (is_free && file->filling.n) {
		const struct text empty = file->passed;

		file->passed = file->filling;
		file->filling = empty;
		file->filling.n = 0;
		file->has_work = true;
		pthread_cond_signal(&file->changed);
	}
	pthread_mutex_unlock(&file->lock);
	return is_free;
}

bool export_file_pass(struct export_file *file)
{
	return file->filling.n < ENOUGH_BYTES || pass(file);
}

void export_file_finish(struct export_file *file)
{
	fflush(file->out);
	file->is_whole = true;
}

// All that was printed has been passed on: the thread is told so.
static void tell_end(struct export_file *file)
{
	const bool is_free = pass(file);

	pthread_mutex_lock(&file->lock);
	if (is_free && !file->has_work)
		file->is_finished = true;
	pthread_cond_signal(&file->changed);
	pthread_mutex_unlock(&file->lock);
}

int export_file_result(struct export_file *file, struct error *error)
{
	if (ferror(file->out))
		return error_set(error, -ENOMEM, "not enough memory to write %.200s", file->path);
	if (file->is_whole && !file->is_finished)
		tell_end(file);
	pthread_mutex_lock(&file->lock);
	const int result = file->result;

	if (result < 0)
		*error = file->reason;
	pthread_mutex_unlock(&file->lock);
	return result;
}

static void stop(struct export_file *file)
{
	pthread_mutex_lock(&file->lock);
	file->is_closing = true;
	pthread_cond_signal(&file->changed);
	pthread_mutex_unlock(&file->lock);
	pthread_join(file->thread, NULL);
}

void export_file_close(struct export_file *file)
{
	if (!file)
		return;
	if (file->has_thread)
		stop(file);
	if (file->out)
		fclose(file->out);
	if (file->fd >= 0) {
		close(file->fd);
		if (file->result)
			unlink(file->beside);
	}
	pthread_cond_destroy(&file->changed);
	pthread_mutex_destroy(&file->lock);
	free(file->filling.at);
	free(file->passed.at);
	free(file->path);
	free(file->beside);
	free(file);
}
