// A YAML file as a tree of nodes that know their lines. Control thread.
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

// An alias is a node of its own that shares text and children with what it names, so that aliases
// of aliases cost nothing.
struct node {
	const char *key;          // in a map, else NULL
	const char *text;         // NODE_TEXT: without NUL bytes inside; else NULL
	const struct node *first; // children of a list or map
	const struct node *next;  // the next child of the same parent
	int line, key_line;       // from 1
	int kind;
	bool is_quoted; // NODE_TEXT: then it is text, even when it looks like a number
};

struct tree;

// Reads one document. `file` is only for errors: "FILE:LINE: ...". 0, or -errno with a
// error: not YAML, two documents, NUL bytes, too deep, too many nodes, a key that is no text.
// An empty document has root NULL. Owner: caller, tree_free. Duplicate keys are left to the reader,
// who knows the name of the place.
int tree_read(struct tree **out, const char *file, const char *bytes, size_t n,
	struct error *error);
void tree_free(struct tree *tree);
const struct node *tree_root(const struct tree *tree);
