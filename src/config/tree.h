// A YAML file as a tree of nodes with line numbers. Control thread.
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	TREE_MAX_BYTES = 64 << 20,
	TREE_MAX_DEPTH = 16,
	TREE_MAX_NODES = 4 << 20,
	TREE_MAX_ANCHORS = 64,
};

enum node_kind { NODE_TEXT, NODE_LIST, NODE_MAP };

// An alias is a separate node that shares text and children with its target, so that nested aliases
// take no extra memory.
struct node {
	const char *key;          // in a map, otherwise NULL
	const char *text;         // NODE_TEXT: contains no NUL bytes; otherwise NULL
	const struct node *first; // children of a list or map
	const struct node *next;  // the next child of the same parent
	int line, key_line;       // starting at 1
	int kind;
	bool is_quoted; // NODE_TEXT: a string, even if it looks like a number
};

struct tree;

// Reads one document. `file` is used in errors only: "FILE:LINE: ...". 0, or -errno with `error`
// set: invalid YAML, two documents, NUL bytes, too deep, too many nodes, a key that is not a
// scalar. An empty document has root NULL. Owner: caller, tree_free. Duplicate keys are detected by
// the caller, who can report their path.
int tree_read(struct tree **out, const char *file, const char *bytes, size_t n,
	struct error *error);
void tree_free(struct tree *tree);
const struct node *tree_root(const struct tree *tree);
