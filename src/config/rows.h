// A map of the file -> fields of a struct, by a table of rows. Each key stands in one row and
// nowhere else. Control thread.
#pragma once

#include "base/error.h"
#include "config/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum row_type {
	ROW_TEXT,   // char[max + 1]
	ROW_NUMBER, // unsigned integer of `size` bytes, min to max
	ROW_WORD,   // uint8_t: place of the word in `words`
	ROW_NODE,   // const struct node *: left for the caller to read
	ROW_OTHER,  // `read` fills it
};

// Where a mistake is: the file, and the place in it ("ports[1].") that names of keys are hung on.
struct reader {
	const char *file;
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

// All keys of one map; `place` is where it stands in the file.
struct key_table {
	const char *place;
	const struct row *rows;
	size_t n;
};

// Fills `base` from the map `node`. 0, or -EINVAL with one sentence: no map, unknown key (the
// nearest known one is suggested), key twice, wrong type, out of range.
int rows_read(struct reader *reader, const struct node *node, const struct key_table *table,
	void *base);

// Calls `item` for each member of a list (an empty text counts as empty list), up to `max`, with
// `where` set to "KEY[i].".
int rows_each(struct reader *reader, const struct node *node, unsigned max,
	int (*item)(struct reader *reader, const struct node *node, unsigned i));

// A key with nothing behind it.
bool rows_is_empty(const struct node *node);

// A decimal number from text. False: none, or out of range.
bool rows_number(const char *text, long min, long max, long *out);

// "FILE:LINE: ..." for a mistake found at `line`; returns -EINVAL.
int rows_mistake(struct reader *reader, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

// What a node is, for people: its text in quotes (cut), "a list", "a map", "empty".
enum { ROWS_FOUND_MAX = 72 };
const char *rows_found(const struct node *node, char text[ROWS_FOUND_MAX]);
