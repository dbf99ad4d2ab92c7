// Table-driven parser of YAML maps; creates all errors about single values. Control thread.
#include "config/rows.h"

#include "base/bits.h"
#include "base/nearest.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rows_mistake(struct reader *reader, int line, const char *format, ...)
{
	char text[ERROR_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!reader->file)
		return error_set(reader->error, -EINVAL, "%s", text);
	return error_set(reader->error, -EINVAL, "%s:%d: %s", reader->file, line, text);
}

const char *rows_found(const struct node *node, char text[ROWS_FOUND_MAX])
{
	if (node->kind != NODE_TEXT)
		return node->kind == NODE_LIST ? "a list" : "a map";
	if (!node->text[0])
		return "no value";
	snprintf(text, ROWS_FOUND_MAX, "\"%.60s\"%s", node->text,
		strlen(node->text) > 60 ? "..." : "");
	return text;
}

bool rows_is_empty(const struct node *node)
{
	return node->kind == NODE_TEXT && !node->text[0];
}

bool rows_number(const char *text, long min, long max, long *out)
{
	long value = 0;

	if (!text[0])
		return false;
	for (const char *p = text; *p; p++) {
		if (*p < '0' || *p > '9' || value > max)
			return false;
		value = value * 10 + (*p - '0');
	}
	if (value < min || value > max)
		return false;
	*out = value;
	return true;
}

static int wanted(struct reader *reader, const struct node *node, const char *what)
{
	char found[ROWS_FOUND_MAX];
	const char *key = node->key ? node->key : reader->where[0] ? "" : "the file";

	return rows_mistake(reader, node->line, "%s%s: found %s, expected %s", reader->where, key,
		rows_found(node, found), what);
}

static bool has_control_character(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return true;
	return false;
}

int rows_text(struct reader *reader, const struct node *node, const struct row *row, char *out)
{
	char what[64];

	if (node->kind == NODE_TEXT && has_control_character(node->text))
		return rows_mistake(reader, node->line, "%s%s has a control character; remove it",
			reader->where, node->key);
	if (node->kind == NODE_TEXT && node->text[0] && strlen(node->text) <= (size_t)row->max) {
		strcpy(out, node->text);
		return 0;
	}
	snprintf(what, sizeof(what), "text of 1 to %ld characters", row->max);
	return wanted(reader, node, what);
}

static int read_number(struct reader *reader, const struct node *node, const struct row *row,
	void *out)
{
	char what[64];
	long value;

	if (node->kind == NODE_TEXT && rows_number(node->text, row->min, row->max, &value)) {
		memcpy(out, &value, row->size); // assumes little endian
		return 0;
	}
	snprintf(what, sizeof(what), "a number from %ld to %ld", row->min, row->max);
	return wanted(reader, node, what);
}

static int read_word(struct reader *reader, const struct node *node, const struct row *row,
	uint8_t *out)
{
	char what[96];
	uint8_t place = 0;
	size_t n = node->kind == NODE_TEXT ? strlen(node->text) : 0;

	for (const char *p = row->words; n && p; p = strchr(p, '|'), place++) {
		p += *p == '|';
		if (!strncmp(p, node->text, n) && (!p[n] || p[n] == '|')) {
			*out = place;
			return 0;
		}
	}
	snprintf(what, sizeof(what), "one of %s", row->words);
	for (char *p = what; *p; p++)
		if (*p == '|')
			*p = '/';
	return wanted(reader, node, what);
}

static int read_row(struct reader *reader, const struct node *node, const struct row *row,
	void *base)
{
	void *field = (char *)base + row->offset;

	switch (row->type) {
	case ROW_TEXT:
		return rows_text(reader, node, row, field);
	case ROW_NUMBER:
		return read_number(reader, node, row, field);
	case ROW_WORD:
		return read_word(reader, node, row, field);
	case ROW_NODE:
		*(const struct node **)field = node;
		return 0;
	default:
		return row->read(reader, node, base);
	}
}

static int unknown_key(struct reader *reader, const struct node *node,
	const struct key_table *table)
{
	const struct row *rows = table->rows;
	size_t n = table->n;
	const char *nearest = nearest_word(node->key, &rows[0].key, n, sizeof(rows[0]));
	char known[256] = "";
	size_t used = 0;

	if (nearest[0])
		return rows_mistake(reader, node->key_line,
			"unknown key \"%s%.60s\"; did you mean \"%s\"?", reader->where, node->key,
			nearest);
	for (size_t i = 0; i < n && used < sizeof(known); i++)
		used += snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
			rows[i].key);
	return rows_mistake(reader, node->key_line, "unknown key \"%s%.60s\"; expected one of %s",
		reader->where, node->key, known);
}

int rows_read(struct reader *reader, const struct node *node, const struct key_table *table,
	void *base)
{
	const struct row *rows = table->rows;
	const size_t n = table->n;
	int first_line[32] = {0};
	char outer[sizeof(reader->where)];
	int err = 0;

	if (node->kind != NODE_MAP)
		return wanted(reader, node, "a map (key: value)");
	memcpy(outer, reader->where, sizeof(outer));
	if (outer[0] || node->key)
		snprintf(reader->where, sizeof(reader->where), "%.40s%.16s.", outer,
			node->key ? node->key : "");
	for (const struct node *child = node->first; child && !err; child = child->next) {
		size_t i = 0;

		while (i < n && strcmp(rows[i].key, child->key))
			i++;
		if (i == n)
			err = unknown_key(reader, child, table);
		else if (first_line[i])
			err = rows_mistake(reader, child->key_line,
				"duplicate key \"%s%s\" (first in line %d); remove one",
				reader->where, child->key, first_line[i]);
		else
			err = read_row(reader, child, &rows[i], base);
		first_line[MIN_OF(i, n - 1)] = child->key_line;
	}
	memcpy(reader->where, outer, sizeof(outer));
	return err;
}

int rows_each(struct reader *reader, const struct node *node, unsigned max,
	int (*item)(struct reader *reader, const struct node *node, unsigned i))
{
	char outer[sizeof(reader->where)];
	unsigned i = 0;
	int err = 0;

	if (rows_is_empty(node))
		return 0;
	if (node->kind != NODE_LIST)
		return wanted(reader, node, "a list");
	memcpy(outer, reader->where, sizeof(outer));
	for (const struct node *child = node->first; child && !err; child = child->next, i++) {
		if (i == max)
			err = rows_mistake(reader, child->line,
				"%s%s has more than %u members; remove some", outer, node->key,
				max);
		else {
			snprintf(reader->where, sizeof(reader->where), "%.24s%.16s[%u]", outer,
				node->key, i);
			err = item(reader, child, i);
		}
	}
	memcpy(reader->where, outer, sizeof(outer));
	return err;
}
