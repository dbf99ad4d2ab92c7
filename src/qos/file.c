// Subscribers as lines of a file. Control thread.
#include "qos/inside.h"

#include <errno.h>
#include <stdio.h>

// The ops that a line may have; all others are names of subscribers.
static bool is_op(const char *word, size_t n)
{
	static const char *const ops[] = {"profile", "no-profile", "remove"};

	for (unsigned i = 0; i < ARRAY_LEN(ops); i++)
		if (strlen(ops[i]) == n && !strncmp(word, ops[i], n))
			return true;
	return false;
}

bool file_means_more(const char *name)
{
	return is_op(name, strlen(name));
}

int qos_stage_line(struct qos *qos, char *line, bool is_of_file, struct error *error)
{
	const size_t n = strlen(line);
	char put[QOS_LINE_MAX];

	if (n && line[n - 1] == '\r')
		line[n - 1] = 0;
	if (strchr(line, '\r'))
		return error_set(error, -EINVAL,
			"a carriage return within a line; expected lines that end with LF or CR "
			"LF");
	line[strcspn(line, "#")] = 0;
	line += strspn(line, " \t");
	if (!*line)
		return 0;
	if (is_op(line, strcspn(line, " \t")))
		return qos_stage(qos, line, is_of_file, error);
	if (snprintf(put, sizeof(put), "put %s", line) >= (int)sizeof(put))
		return error_set(error, -EINVAL, "a line of %zu bytes; expected at most %d",
			strlen(line), QOS_LINE_MAX - 5);
	return qos_stage(qos, put, is_of_file, error);
}

int qos_stage_lines(struct qos *qos, const char *path, char *text, size_t n, bool is_of_file,
	struct error *error)
{
	unsigned long number = 1;
	struct error inner;
	int err = 0;

	if (memchr(text, 0, n))
		return error_set(error, -EINVAL, "%s: has NUL bytes; expected text", path);
	for (char *line = text; line && *line && !err; number++) {
		char *next = strchr(line, '\n');

		if (next)
			*next++ = 0;
		err = qos_stage_line(qos, line, is_of_file, &inner);
		if (err)
			error_set(error, err, "%s:%lu: %s", path, number, inner.text);
		line = next;
	}
	return err;
}
