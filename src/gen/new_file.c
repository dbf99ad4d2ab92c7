// Writes the files of results. Control thread.
#include "gen/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Whatever else has the name stays as it is: others may choose the path.
static FILE *create(const char *path)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	const int fd = open(path, flags, 0666);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (fd >= 0 && !file)
		close(fd);
	return file;
}

int new_file(const char *path, bool (*write)(void *ctx, FILE *file), void *ctx, struct error *error)
{
	char *beside = NULL;

	if (asprintf(&beside, "%s.part", path) < 0)
		return error_set(error, -ENOMEM, "not enough memory to write %s", path);
	errno = 0;
	FILE *file = create(beside);
	if (!file && errno == EEXIST) {
		error_set(error, -EEXIST,
			"cannot write %s: %s exists; if nothing else needs it, remove it", path,
			beside);
		free(beside);
		return -EEXIST;
	}
	bool is_written = file && write(ctx, file);
	if (file && fclose(file))
		is_written = false;
	if (!is_written || rename(beside, path)) {
		int err = errno ? -errno : -EIO;

		if (file)
			unlink(beside);
		free(beside);
		return error_set(error, err, "cannot write %s: %s", path, strerror(-err));
	}
	free(beside);
	return 0;
}
