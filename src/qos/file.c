// Subscribers as lines of a file. Control thread.
#include "qos/inside.h"

#include <errno.h>
#include <inttypes.h>
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

static int stage_line(struct qos *qos, char *line, bool is_of_file, struct error *error)
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
		err = stage_line(qos, line, is_of_file, &inner);
		if (err)
			error_set(error, err, "%s:%lu: %s", path, number, inner.text);
		line = next;
	}
	return err;
}

static void write_counts(const struct qos_count count[QOS_DIRECTIONS], FILE *out)
{
	static const char *const words[QOS_DIRECTIONS] = {"up", "down"};

	for (unsigned d = 0; d < QOS_DIRECTIONS; d++) {
		fprintf(out, " %s", words[d]);
		for (unsigned colour = 0; colour < POLICE_COLOURS; colour++)
			fprintf(out, " %" PRIu64 "/%" PRIu64, count[d].packets[colour],
				count[d].bytes[colour]);
	}
}

static void write_subscriber(const struct qos *qos, const struct qos_info *info, FILE *out)
{
	static const char *const words[QOS_DIRECTIONS] = {"up", "down"};

	fprintf(out, "%s number %u", info->name, info->number);
	for (unsigned d = 0; d < QOS_DIRECTIONS; d++)
		if (info->profile[d])
			fprintf(out, " %s %s", words[d], info->profile[d]);
	if (info->parent)
		fprintf(out, " parent %s", info->parent);
	for (unsigned i = 0; i < info->n_addresses; i++) {
		const struct wire_prefix prefix = qos_address(qos, info->number, i);
		char text[WIRE_PREFIX_TEXT];

		fprintf(out, " address %s", wire_prefix_print(&prefix, text));
	}
	for (unsigned i = 0; i < info->n_ifaces; i++)
		fprintf(out, " interface %s", qos_iface(qos, info->number, i));
	fputs(" #", out);
	write_counts(info->count, out);
	fputc('\n', out);
}

bool qos_export(const struct qos *qos, FILE *out)
{
	char text[QOS_PROFILE_TEXT];
	struct qos_info info;
	uint32_t number = 1;

	fputs("# Behind #: packets/bytes that were green, yellow and red, up and down.\n", out);
	for (uint32_t i = 0; i < 2 * QOS_PROFILES; i++) { // parents before their children
		const struct profile *one = qos->profile[i % QOS_PROFILES];

		if (one && (i < QOS_PROFILES) == !one->parent)
			fprintf(out, "profile %s\n", profile_print(one, text));
	}
	while (qos_next(qos, &number, &info))
		write_subscriber(qos, &info, out);
	return !ferror(out);
}
