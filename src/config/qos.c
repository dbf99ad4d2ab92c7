// The key `qos`: profiles and subscribers as text, and the file that has more of them. Control
// thread.
#include "config/inside.h"

#include "base/bits.h"
#include "base/vector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE_BYTES = 1 << 30, MAX_LINES = 1 << 20, LEAST_HELD = 64, MOST_HELD = 1 << 24 };

static int no_memory(const struct reader *reader)
{
	return error_set(reader->error, -ENOMEM, "%s: not enough memory to read the file",
		reader->file);
}

// Keeps "OP TEXT".
static int add_line(struct reader *reader, const struct node *node, const char *op)
{
	struct config_qos *qos = &((struct config *)reader->ctx)->qos;
	char found[ROWS_FOUND_MAX], *text;

	if (node->kind != NODE_TEXT || !node->text[0])
		return rows_mistake(reader, node->line, "%s: found %s, expected text",
			reader->where, rows_found(node, found));
	if (vector_reserve(&qos->line, &qos->capacity, qos->n + 1, sizeof(*qos->line)) ||
		asprintf(&text, "%s %s", op, node->text) < 0)
		return no_memory(reader);
	qos->line[qos->n++] = (struct qos_line_of_file){text, node->line};
	return 0;
}

static int add_profile(struct reader *reader, const struct node *node, unsigned i)
{
	(void)i;
	return add_line(reader, node, "profile");
}

static int add_subscriber(struct reader *reader, const struct node *node, unsigned i)
{
	(void)i;
	return add_line(reader, node, "put");
}

// Profiles come first, whatever the order in the file.
struct top {
	const struct node *profiles, *subscribers, *file;
	uint32_t held_packets;
};
static const struct row qos_rows[] = {
	{"profiles", ROW_NODE, .size = sizeof(void *), .offset = offsetof(struct top, profiles)},
	{"subscribers", ROW_NODE, .size = sizeof(void *),
		.offset = offsetof(struct top, subscribers)},
	{"file", ROW_NODE, .size = sizeof(void *), .offset = offsetof(struct top, file)},
	{"held_packets", ROW_NUMBER, .size = sizeof(uint32_t),
		.offset = offsetof(struct top, held_packets), .min = LEAST_HELD, .max = MOST_HELD},
};
const struct key_table qos_keys = {"qos", qos_rows, ARRAY_LEN(qos_rows)};

static int read_file_name(struct reader *reader, const struct node *node, struct config *config)
{
	char found[ROWS_FOUND_MAX];

	if (node->kind != NODE_TEXT || !node->text[0])
		return rows_mistake(reader, node->line,
			"qos.file: found %s, expected the name of a file", rows_found(node, found));
	char *path = config_beside(config->path, node->text);

	if (!path)
		return no_memory(reader);
	const bool is_long = strlen(path) >= CONFIG_PATH_MAX;

	if (!is_long)
		strcpy(config->qos.file, path);
	free(path);
	return is_long ? rows_mistake(reader, node->line,
				 "qos.file: the path is longer than %d characters with the folder "
				 "of this file; expected a shorter one",
				 CONFIG_PATH_MAX - 1)
	               : 0;
}

int qos_read(struct reader *reader, const struct node *node, struct config *config)
{
	struct top top = {.file = NULL};
	int err = rows_is_empty(node) ? 0 : rows_read(reader, node, &qos_keys, &top);

	config->qos.is_on = true;
	config->qos.held_packets = config->ports.n_held_mbufs = top.held_packets;
	if (!err && top.profiles)
		err = rows_each(reader, top.profiles, MAX_LINES, add_profile);
	if (!err && top.subscribers)
		err = rows_each(reader, top.subscribers, MAX_LINES, add_subscriber);
	if (!err && top.file)
		err = read_file_name(reader, top.file, config);
	return err;
}

int qos_check_workers(struct reader *reader, const struct config *config)
{
	const struct port_table_settings *ports = &config->ports;
	unsigned n = 0;

	for (unsigned i = 0; i < ports->n_workers; i++) {
		const struct port_worker_settings *worker = &ports->workers[i];

		if (!worker->shapes)
			continue;
		if (!config->qos.held_packets)
			return rows_mistake(reader, worker->line,
				"workers[%u].shapes: nothing is shaped without qos.held_packets; "
				"add it, or remove shapes",
				i);
		if (++n > QOS_MOST_SHAPERS)
			return rows_mistake(reader, worker->line,
				"workers[%u].shapes: %d workers shape already; expected no more", i,
				QOS_MOST_SHAPERS);
	}
	return 0;
}

void qos_free(struct config_qos *qos)
{
	for (size_t i = 0; i < qos->n; i++)
		free(qos->line[i].text);
	free(qos->line);
}

int qos_copy(struct config_qos *to, const struct config_qos *from)
{
	*to = (struct config_qos){.is_on = from->is_on, .held_packets = from->held_packets};
	memcpy(to->file, from->file, sizeof(to->file));
	if (vector_reserve(&to->line, &to->capacity, from->n + 1, sizeof(*to->line)))
		return -ENOMEM;
	for (; to->n < from->n; to->n++) {
		to->line[to->n] = (struct qos_line_of_file){strdup(from->line[to->n].text),
			from->line[to->n].line};
		if (!to->line[to->n].text)
			return -ENOMEM;
	}
	return 0;
}

bool config_has_qos(const struct config *config)
{
	return config->qos.is_on;
}

uint32_t config_held_packets(const struct config *config)
{
	return config->qos.held_packets;
}

unsigned config_shapers(const struct config *config, uint8_t worker[QOS_MOST_SHAPERS])
{
	unsigned n = 0;

	for (unsigned i = 0; i < config->ports.n_workers; i++)
		if (config->ports.workers[i].shapes)
			worker[n++] = (uint8_t)i;
	return n;
}

static int stage_file(const struct config *config, struct qos *qos, struct error *error)
{
	const struct wanted_file file = {config->qos.file, MAX_FILE_BYTES, config->files};
	char *bytes;
	size_t n;
	int err = file_read(&file, &bytes, &n, error);

	if (err)
		return err;
	err = qos_stage_lines(qos, config->qos.file, bytes, n, true, error);
	free(bytes);
	return err;
}

int config_stage_qos(const struct config *config, struct qos *qos, struct error *error)
{
	struct error inner;
	int err = qos_stage_file_begin(qos, error);

	for (size_t i = 0; i < config->qos.n && !err; i++) {
		const struct qos_line_of_file *line = &config->qos.line[i];

		err = qos_stage(qos, line->text, true, &inner);
		if (err)
			error_set(error, err, "%s:%d: qos: %s", config->path, line->line,
				inner.text);
	}
	if (!err && config->qos.file[0] && config->files != FILES_NONE)
		err = stage_file(config, qos, error);
	return err ? err : qos_stage_file_end(qos, error);
}
