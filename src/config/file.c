// Reads a whole file. Control thread.
#include "config/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_ROOM = 64 << 10 };

// A growing buffer.
struct buffer {
	char *bytes;
	size_t n, room;
};

static int grow(struct buffer *buffer, size_t room)
{
	char *larger = realloc(buffer->bytes, room + 1);

	if (!larger)
		return -ENOMEM;
	buffer->bytes = larger;
	buffer->room = room;
	return 0;
}

static int read_all(int fd, size_t limit, struct buffer *buffer)
{
	while (true) {
		ssize_t got = read(fd, buffer->bytes + buffer->n, buffer->room - buffer->n);

		if (got < 0 && errno != EINTR)
			return -errno;
		if (!got)
			return 0;
		buffer->n += got > 0 ? got : 0;
		if (buffer->n > limit)
			return -EFBIG;
		if (buffer->n == buffer->room && grow(buffer, buffer->room * 2))
			return -ENOMEM;
	}
}

// The size of a regular file is only the initial buffer size; other files have none.
static int read_open(int fd, const struct wanted_file *file, struct buffer *buffer)
{
	const size_t limit = file->limit;
	struct stat stat;

	if (fstat(fd, &stat))
		return -errno;
	if (S_ISDIR(stat.st_mode))
		return -EISDIR;
	if (file->files == FILES_REGULAR && !S_ISREG(stat.st_mode))
		return -ESPIPE;
	if (S_ISREG(stat.st_mode) && (size_t)stat.st_size > limit)
		return -EFBIG;
	int err = grow(buffer, S_ISREG(stat.st_mode) ? stat.st_size + 1 : FIRST_ROOM);
	return err ? err : read_all(fd, limit, buffer);
}

static int say_why(const struct wanted_file *file, int err, struct error *error)
{
	if (err == -EFBIG)
		return error_set(error, err, "%s: larger than %zu MiB; move routes to route files",
			file->path, file->limit >> 20);
	if (err == -ESPIPE)
		return error_set(error, err,
			"%s: cannot read the file while the program runs: not a regular file",
			file->path);
	return error_set(error, err, "%s: cannot read the file: %s", file->path, strerror(-err));
}

int file_read(const struct wanted_file *file, char **bytes, size_t *n, struct error *error)
{
	const int at_once = file->files == FILES_REGULAR ? O_NONBLOCK : 0;
	struct buffer buffer = {0};
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | at_once);
	int err = fd < 0 ? -errno : read_open(fd, file, &buffer);

	if (fd >= 0)
		close(fd);
	if (err) {
		free(buffer.bytes);
		return say_why(file, err, error);
	}
	buffer.bytes[buffer.n] = 0;
	*bytes = buffer.bytes;
	*n = buffer.n;
	return 0;
}
