// A line of words, and the readers of single words in it. Control thread.
#pragma once

#include "config/inside.h"

#include <string.h>

// A group of next hops is the longest line: a prefix, then nine words for each member.
enum { LINE_MAX_WORDS = 1 + 9 * CONFIG_MAX_MEMBERS };

struct word {
	const char *text;
	unsigned n;
};

struct line {
	const struct port_table_settings *ports;
	struct error *error;
	unsigned n;
	struct word word[LINE_MAX_WORDS];
};

// The text of a word for printf, cut: "%.*s" takes both.
#define SHOW(w) (int)((w).n < 60 ? (w).n : 60), (w).text

// Splits at blanks, up to '#'. False: more words than any line has. The line needs no zeroes
// before.
bool line_split(struct line *line, const char *text, size_t n);

// `text` is a literal, so that its length is known where this is built in.
static inline bool word_is(struct word word, const char *text)
{
	return word.n == strlen(text) && !memcmp(word.text, text, word.n);
}

bool word_quad(struct word word, uint8_t out[4]); // dotted quad
bool word_addr(struct word word, struct wire_addr *out);
// A length in bits, up to that of the family of prefix->addr.
bool word_len(struct word word, struct wire_prefix *prefix);

// These return 0 or -EINVAL with a sentence.
int line_read_prefix(struct line *line, struct word word, struct wire_prefix *out);
int line_check_host_bits(struct line *line, struct word word, const struct wire_prefix *prefix);
int line_read_port(struct line *line, struct word word, uint8_t *out);
int line_read_host(struct line *line, struct word word, struct wire_addr *out);

// What stands in pairs: "via ADDRESS", "dev PORT", "lladdr MAC", "weight NUMBER", each at most
// once.
struct pairs {
	struct wire_addr via;
	struct wire_mac mac;
	uint8_t port, weight;
	bool has_via, has_mac, has_port, has_weight;
};
// Reads pairs from word `first` up to the line's end or a word "nexthop"; returns the place after
// them.
int line_read_pairs(struct line *line, unsigned first, struct pairs *out);
