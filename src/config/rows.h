// Reads a YAML map into the fields of a struct, using a table of rows. Each key has exactly one
// row. Control thread.
#pragma once

#include "base/error.h"
#include "config/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum row_type {
	ROW_TEXT,   // char[max + 1]
	ROW_NUMBER, // unsigned integer of `size` bytes, min to max
	ROW_WORD,   // uint8_t: index of the word in `words`
	ROW_NODE,   // const struct node *: left to the caller
	ROW_OTHER,  // parsed by `read`
};

// The position used in errors: the file, and the path ("ports[1].") that key names are appended to.
struct reader {
	const char *file; // NULL: not a file
	char where[64];
	struct error *error;
	void *ctx; // for `read`
};

struct row {
	const char *key;
	uint8_t type;
	uint16_t size;
	size_t offset;
	long min, max;
	const char *words; // "route|xconnect"
	int (*read)(struct reader *reader, const struct node *node, void *base);
};

// All keys of one map; `place` is its path in the file.
struct key_table {
	const char *place;
	const struct row *rows;
	size_t n;
};

// Fills `base` from the map `node`. 0, or -EINVAL with `error` set: not a map, unknown key (with
// the nearest known one as a suggestion), duplicate key, wrong type, out of range.
int rows_read(struct reader *reader, const struct node *node, const struct key_table *table,
	void *base);

// Reads a row of type ROW_TEXT into `out`, row->max + 1 bytes; for rows of type ROW_OTHER.
int rows_text(struct reader *reader, const struct node *node, const struct row *row, char *out);

// Calls `item` for each member of a list (an empty value counts as an empty list), up to `max`,
// with `where` set to "KEY[i].".
int rows_each(struct reader *reader, const struct node *node, unsigned max,
	int (*item)(struct reader *reader, const struct node *node, unsigned i));

// A key without a value.
bool rows_is_empty(const struct node *node);

// Parses a decimal number. Returns false if it is not one, or out of range.
bool rows_number(const char *text, long min, long max, long *out);

// Sets "FILE:LINE: ..." for an error at `line`; returns -EINVAL.
int rows_mistake(struct reader *reader, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

// Describes a node for error messages: its text in quotes (truncated), "a list", "a map", "no
// value".
enum { ROWS_FOUND_MAX = 72 };
const char *rows_found(const struct node *node, char text[ROWS_FOUND_MAX]);
