// Converts libyaml's events into a tree of nodes with line numbers. Bounded in depth, nodes and
// anchors; no recursion. Control thread.
#include "config/tree.h"

#include "base/bits.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { ARENA_BYTES = 1 << 20 };

struct arena {
	struct arena *next;
	size_t used, bytes;
	uint8_t data[];
};

struct anchor {
	const char *name;
	const struct node *node;
	int open_depth; // > 0: still being read at that depth, so aliases cannot refer to it yet
};

// A list or map whose end has not been read yet.
struct open {
	struct node *node;
	struct node *last;
	const char *key; // map: the key just read, its value is next
	int key_line;
};

struct tree {
	struct arena *arena;
	struct node *root;
	size_t n_nodes;
};

struct builder {
	struct tree *tree;
	const char *file;
	struct error *error;
	struct open open[TREE_MAX_DEPTH];
	int depth;
	struct anchor anchor[TREE_MAX_ANCHORS];
	unsigned n_anchors;
	bool done;
};

static void *take(struct tree *tree, size_t bytes)
{
	struct arena *arena = tree->arena;

	bytes = round_up(bytes, sizeof(void *));
	if (!arena || arena->bytes - arena->used < bytes) {
		size_t room = MAX_OF(bytes, (size_t)ARENA_BYTES);

		arena = malloc(sizeof(*arena) + room);
		if (!arena)
			return NULL;
		*arena = (struct arena){.next = tree->arena, .bytes = room};
		tree->arena = arena;
	}
	void *memory = arena->data + arena->used;
	arena->used += bytes;
	return memory;
}

static const char *take_text(struct tree *tree, const void *bytes, size_t n)
{
	char *text = take(tree, n + 1);

	if (!text)
		return NULL;
	memcpy(text, bytes, n);
	text[n] = 0;
	return text;
}

static int fail(struct builder *b, const yaml_event_t *event, const char *text)
{
	return error_set(b->error, -EINVAL, "%s:%zu: %s", b->file, event->start_mark.line + 1,
		text);
}

static int fail_memory(struct builder *b)
{
	return error_set(b->error, -ENOMEM, "%s: not enough memory to read the file", b->file);
}

static bool awaits_key(const struct builder *b)
{
	return b->depth && b->open[b->depth - 1].node->kind == NODE_MAP &&
	       !b->open[b->depth - 1].key;
}

// Adds a copy of `shape` at the current position; owned by the tree.
static struct node *hang(struct builder *b, const struct node *shape)
{
	struct node *node = take(b->tree, sizeof(*node));

	if (!node)
		return NULL;
	*node = *shape;
	node->key = NULL;
	node->next = NULL;
	b->tree->n_nodes++;
	if (!b->depth) {
		b->tree->root = node;
		return node;
	}
	struct open *open = &b->open[b->depth - 1];
	node->key = open->key;
	node->key_line = open->key_line;
	open->key = NULL;
	if (open->last)
		open->last->next = node;
	else
		open->node->first = node;
	open->last = node;
	return node;
}

static int add_anchor(struct builder *b, const yaml_event_t *event, const void *name,
	struct node *node)
{
	if (!name)
		return 0;
	if (b->n_anchors == TREE_MAX_ANCHORS)
		return fail(b, event, "more than 64 anchors; write the values out");
	const char *copy = take_text(b->tree, name, strlen(name));
	if (!copy)
		return fail_memory(b);
	b->anchor[b->n_anchors++] =
		(struct anchor){copy, node, node->kind == NODE_TEXT ? 0 : b->depth + 1};
	return 0;
}

// YAML's null values: programs write them for empty values.
static bool is_null(const yaml_event_t *event, const char *text)
{
	static const char *const nulls[] = {"~", "null", "Null", "NULL"};
	bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

	for (size_t i = 0; is_plain && i < ARRAY_LEN(nulls); i++)
		if (!strcmp(text, nulls[i]))
			return true;
	return false;
}

static int on_text(struct builder *b, const yaml_event_t *event)
{
	size_t n = event->data.scalar.length;
	const char *text = take_text(b->tree, event->data.scalar.value, n);
	int line = event->start_mark.line + 1;

	if (!text)
		return fail_memory(b);
	if (strlen(text) != n)
		return fail(b, event, "text with a NUL byte; remove it");
	if (awaits_key(b)) {
		b->open[b->depth - 1].key = text;
		b->open[b->depth - 1].key_line = line;
		return 0;
	}
	struct node *node =
		hang(b, &(struct node){
				.kind = NODE_TEXT,
				.text = is_null(event, text) ? "" : text,
				.line = line,
				.is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE,
			});
	return node ? add_anchor(b, event, event->data.scalar.anchor, node) : fail_memory(b);
}

static int on_open(struct builder *b, const yaml_event_t *event, int kind, const void *anchor)
{
	if (awaits_key(b))
		return fail(b, event, "a key that is itself a list or map; expected a word");
	if (b->depth == TREE_MAX_DEPTH)
		return fail(b, event, "lists and maps nested deeper than 16; no key needs that");
	struct node *node =
		hang(b, &(struct node){.kind = kind, .line = event->start_mark.line + 1});
	if (!node)
		return fail_memory(b);
	int err = add_anchor(b, event, anchor, node);
	b->open[b->depth++] = (struct open){.node = node};
	return err;
}

static int on_close(struct builder *b)
{
	for (unsigned i = 0; i < b->n_anchors; i++)
		if (b->anchor[i].open_depth == b->depth)
			b->anchor[i].open_depth = 0;
	b->depth--;
	return 0;
}

static int on_alias(struct builder *b, const yaml_event_t *event)
{
	const char *name = (const char *)event->data.alias.anchor;

	if (awaits_key(b))
		return fail(b, event, "an alias as key; expected a word");
	for (unsigned i = b->n_anchors; i-- > 0;) {
		if (strcmp(b->anchor[i].name, name))
			continue;
		if (b->anchor[i].open_depth)
			return fail(b, event,
				"an alias inside its own anchor; write the value out");
		return hang(b, b->anchor[i].node) ? 0 : fail_memory(b);
	}
	return error_set(b->error, -EINVAL,
		"%s:%zu: no anchor before alias *%.40s; expected &%.40s", b->file,
		event->start_mark.line + 1, name, name);
}

static int on_event(struct builder *b, const yaml_event_t *event)
{
	if (b->tree->n_nodes >= TREE_MAX_NODES)
		return fail(b, event, "more than 4194304 values; put routes into a route file");
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return on_text(b, event);
	case YAML_SEQUENCE_START_EVENT:
		return on_open(b, event, NODE_LIST, event->data.sequence_start.anchor);
	case YAML_MAPPING_START_EVENT:
		return on_open(b, event, NODE_MAP, event->data.mapping_start.anchor);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return on_close(b);
	case YAML_ALIAS_EVENT:
		return on_alias(b, event);
	case YAML_DOCUMENT_START_EVENT:
		return b->tree->root ? fail(b, event, "a second YAML document; expected one") : 0;
	case YAML_STREAM_END_EVENT:
		b->done = true;
		return 0;
	default:
		return 0;
	}
}

static int line_of(const char *bytes, size_t n)
{
	int line = 1;

	for (size_t i = 0; i < n; i++)
		line += bytes[i] == '\n';
	return line;
}

static int fail_yaml(struct builder *b, const yaml_parser_t *parser, const char *bytes, size_t n)
{
	// At the end of the file, libyaml's position is one line after the last.
	int last = line_of(bytes, n) - (n && bytes[n - 1] == '\n');
	int line = MIN_OF((int)parser->problem_mark.line + 1, last);
	const char *hint = "";

	if (parser->error == YAML_MEMORY_ERROR)
		return fail_memory(b);
	if (parser->error == YAML_READER_ERROR)
		line = line_of(bytes, MIN_OF(parser->problem_offset, n));
	if (parser->error == YAML_SCANNER_ERROR &&
		strstr(parser->problem, "cannot start any token"))
		hint = " (YAML needs spaces, not tabs, and quotes around text that starts with a "
		       "sign)";
	return error_set(b->error, -EINVAL, "%s:%d: YAML syntax error: %s%s", b->file, line,
		parser->problem, hint);
}

static int build(struct builder *b, const char *bytes, size_t n)
{
	static const char mark[] = {'\xef', '\xbb', '\xbf'}; // UTF-8 byte order mark, written by
	                                                     // some editors
	yaml_parser_t parser;
	yaml_event_t event;
	int err = 0;

	if (n >= sizeof(mark) && !memcmp(bytes, mark, sizeof(mark))) { // libyaml treats it as text
		bytes += sizeof(mark);
		n -= sizeof(mark);
	}
	if (!yaml_parser_initialize(&parser))
		return fail_memory(b);
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, n);
	while (!err && !b->done) {
		if (!yaml_parser_parse(&parser, &event)) {
			err = fail_yaml(b, &parser, bytes, n);
			break;
		}
		err = on_event(b, &event);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return err;
}

int tree_read(struct tree **out, const char *file, const char *bytes, size_t n, struct error *error)
{
	const char *nul = n ? memchr(bytes, 0, n) : NULL;

	if (nul)
		return error_set(error, -EINVAL, "%s:%d: a NUL byte; expected YAML text in UTF-8",
			file, line_of(bytes, nul - bytes));
	struct tree *tree = calloc(1, sizeof(*tree));
	if (!tree)
		return error_set(error, -ENOMEM, "%s: not enough memory to read the file", file);
	struct builder b = {.tree = tree, .file = file, .error = error};
	int err = build(&b, bytes, n);
	if (err) {
		tree_free(tree);
		return err;
	}
	*out = tree;
	return 0;
}

void tree_free(struct tree *tree)
{
	if (!tree)
		return;
	while (tree->arena) {
		struct arena *next = tree->arena->next;

		free(tree->arena);
		tree->arena = next;
	}
	free(tree);
}

const struct node *tree_root(const struct tree *tree)
{
	return tree->root;
}
