// The generator's list of streams: converts YAML nodes to JSON, as for the method `send`, and
// records line numbers for errors. Control thread.
#include "config/inside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 7, MAX_VALUES = 16384 }; // more than any list of streams needs

struct walk {
	struct reader *reader;
	unsigned n_values;
};

// Numbers, true, false and null are converted, unless quoted.
static json_t *convert_text(const struct node *node)
{
	json_t *value = node->is_quoted ? NULL : json_loads(node->text, JSON_DECODE_ANY, NULL);

	if (!node->text[0] && !node->is_quoted)
		return json_null();
	return value ? value : json_string(node->text);
}

static json_t *convert(struct walk *w, const struct node *node, unsigned depth);

static int add_child(struct walk *w, json_t *to, const struct node *child, unsigned depth)
{
	if (child->key && json_object_get(to, child->key))
		return rows_mistake(w->reader, child->key_line,
			"duplicate key \"%.60s\" in one stream; remove one", child->key);
	json_t *value = convert(w, child, depth);
	if (!value)
		return -EINVAL;
	int err = child->key ? json_object_set_new(to, child->key, value)
	                     : json_array_append_new(to, value);
	return err ? error_set(w->reader->error, -ENOMEM, "%s: not enough memory to read the file",
			     w->reader->file)
	           : 0;
}

// A new reference, or NULL with `error` set.
static json_t *convert(struct walk *w, const struct node *node, unsigned depth)
{
	int err = 0;

	if (depth == MAX_DEPTH || ++w->n_values > MAX_VALUES) {
		rows_mistake(w->reader, node->line,
			"streams are nested too deeply or have more than %d values; remove some",
			MAX_VALUES);
		return NULL;
	}
	if (node->kind == NODE_TEXT)
		return convert_text(node);
	json_t *out = node->kind == NODE_MAP ? json_object() : json_array();
	for (const struct node *child = node->first; child && !err; child = child->next)
		err = add_child(w, out, child, depth + 1);
	if (!err)
		return out;
	json_decref(out);
	return NULL;
}

static json_t *lines_of(const struct node *stream)
{
	json_t *lines = json_object();

	json_object_set_new(lines, "", json_integer(stream->line));
	if (stream->kind == NODE_MAP)
		for (const struct node *child = stream->first; child; child = child->next)
			json_object_set_new(lines, child->key, json_integer(child->key_line));
	return lines;
}

int streams_read(struct reader *reader, const struct node *list, struct config *config)
{
	struct walk walk = {.reader = reader};
	char found[ROWS_FOUND_MAX];

	if (list->kind == NODE_TEXT && !list->text[0])
		return 0;
	if (list->kind != NODE_LIST)
		return rows_mistake(reader, list->line, "streams: found %s, expected a list",
			rows_found(list, found));
	config->streams = convert(&walk, list, 0);
	if (!config->streams)
		return -EINVAL;
	config->stream_lines = json_array();
	for (const struct node *child = list->first; child; child = child->next)
		json_array_append_new(config->stream_lines, lines_of(child));
	return 0;
}

const json_t *config_streams(const struct config *config)
{
	return config->streams;
}

// "streams[1] (east): size 63: ..." -> the line of that key, otherwise that of the stream.
static int line_of(const struct config *config, const char *text)
{
	char key[64] = "";
	unsigned place;

	if (sscanf(text, "streams[%u]", &place) != 1)
		return 0;
	const json_t *lines = json_array_get(config->stream_lines, place);
	const char *colon = strstr(text, ": ");
	if (colon)
		sscanf(colon, ": %63[^]. :[]", key);
	const json_t *line = json_object_get(lines, key);
	return json_integer_value(line ? line : json_object_get(lines, ""));
}

void config_place_stream(const struct config *config, struct error *error)
{
	const struct error said = *error;
	int line = line_of(config, said.text);

	if (line)
		error_set(error, 0, "%s:%d: %s", config->path, line, said.text);
	else
		error_set(error, 0, "%s: %s", config->path, said.text);
}
