// The methods subscribers.load and subscribers.export: all of a file in one batch. Control thread.
#include "api/subscribers.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20 };
#define MOST_BYTES (1ll << 30)

// Reads a regular file; the bytes end with a 0. Owner: caller, free. NULL with `error` set.
static char *read_all(const char *path, size_t *n, struct error *error)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); // or a FIFO waits
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	struct stat stat;
	char *bytes;

	if (!file || fstat(fileno(file), &stat)) {
		error_set(error, -errno, "cannot read %.200s: %s", path, strerror(errno));
		if (fd >= 0 && !file)
			close(fd);
		goto failed;
	}
	if (!S_ISREG(stat.st_mode) || stat.st_size > MOST_BYTES) {
		error_set(error, -EINVAL, "%.200s: expected a regular file of at most 1 GiB", path);
		goto failed;
	}
	bytes = malloc(stat.st_size + 1);
	if (!bytes) {
		error_set(error, -ENOMEM, "%.200s: not enough memory to read the file", path);
		goto failed;
	}
	*n = fread(bytes, 1, stat.st_size, file);
	bytes[*n] = 0;
	fclose(file);
	return bytes;
failed:
	if (file)
		fclose(file);
	return NULL;
}

static int load(struct qos *qos, const char *path, struct error *error)
{
	struct error inner;
	size_t n;
	char *bytes = read_all(path, &n, error);

	if (!bytes)
		return -EINVAL;
	qos_begin(qos);
	int err = qos_stage_lines(qos, path, bytes, n, false, &inner);

	free(bytes);
	if (!err)
		err = qos_prepare(qos, &inner);
	if (err) {
		qos_abort(qos);
		return error_set(error, err, "%s; nothing was changed", inner.text);
	}
	qos_commit(qos, rte_rdtsc());
	return 0;
}

json_t *method_subscribers_load(void *ctx, const json_t *params, struct error *error)
{
	const uint64_t began_ns = clock_now_ns();
	const char *path;
	const struct rpc_param rows[] = {{"path", RPC_TEXT, true, 0, 0, &path}};
	struct qos_usage usage;

	if (rpc_params_read(params, rows, 1, error))
		return NULL;
	struct qos *qos = subscribers_of(ctx, error);

	if (!qos || load(qos, path, error))
		return NULL;
	qos_usage(qos, &usage);
	return json_pack("{s:I, s:f}", "subscribers", (json_int_t)usage.n_subscribers, "seconds",
		(clock_now_ns() - began_ns) / 1e9);
}

// Beside the file, and never through a link: members of the control group choose paths.
static int write_beside(const struct qos *qos, const char *path, const char *beside,
	struct error *error)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	const int fd = open(beside, flags, 0640);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (!file) {
		const int err = errno;

		if (fd >= 0)
			close(fd);
		return error_set(error, -err, "cannot write %.200s: %s; it must not exist", beside,
			strerror(err));
	}
	setvbuf(file, NULL, _IOFBF, BUFFER_BYTES);
	const bool is_whole = qos_export(qos, file);

	if ((fclose(file) == 0) & is_whole && !rename(beside, path))
		return 0;
	const int err = errno;

	unlink(beside);
	return error_set(error, -err, "cannot write %.200s: %s", path, strerror(err));
}

// The daemon may replace anything: a device, a link or a socket is not meant.
static int check_target(const char *path, struct error *error)
{
	struct stat status;

	if (lstat(path, &status) || S_ISREG(status.st_mode))
		return 0;
	return error_set(error, -EEXIST,
		"cannot write %.200s: it exists and is not a regular file; name another one", path);
}

json_t *method_subscribers_export(void *ctx, const json_t *params, struct error *error)
{
	const uint64_t began_ns = clock_now_ns();
	const char *path;
	const struct rpc_param rows[] = {{"path", RPC_TEXT, true, 0, 0, &path}};
	struct qos_usage usage;
	char *beside;

	if (rpc_params_read(params, rows, 1, error))
		return NULL;
	const struct qos *qos = subscribers_of(ctx, error);

	if (!qos || check_target(path, error))
		return NULL;
	if (asprintf(&beside, "%s.new", path) < 0) {
		error_set(error, -ENOMEM, "not enough memory for the name of the file");
		return NULL;
	}
	int err = write_beside(qos, path, beside, error);

	free(beside);
	if (err)
		return NULL;
	qos_usage(qos, &usage);
	return json_pack("{s:I, s:f}", "subscribers", (json_int_t)usage.n_subscribers, "seconds",
		(clock_now_ns() - began_ns) / 1e9);
}
