// A line of words, and the parsers of its words. Control thread.
#pragma once

#include "config/inside.h"

#include <string.h>

// The longest line is a group of next hops: "mpls LABEL pipe", then thirteen words for each member.
enum { LINE_MAX_WORDS = 3 + 13 * CONFIG_MAX_MEMBERS };

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

// Arguments for "%.*s": the text of a word, truncated.
#define SHOW(w) (int)((w).n < 60 ? (w).n : 60), (w).text

// Splits at blanks, up to '#'. Returns false if there are too many words. The line need not be
// cleared before.
bool line_split(struct line *line, const char *text, size_t n);

// `text` is a literal, so that its length is a compile-time constant.
static inline bool word_is(struct word word, const char *text)
{
	return word.n == strlen(text) && !memcmp(word.text, text, word.n);
}

bool word_quad(struct word word, uint8_t out[4]); // dotted quad
bool word_addr(struct word word, struct wire_addr *out);
// A prefix length in bits, up to the maximum for the family of prefix->addr.
bool word_len(struct word word, struct wire_prefix *prefix);

// These return 0, or -EINVAL with `error` set.
int line_read_prefix(struct line *line, struct word word, struct wire_prefix *out);
int line_check_host_bits(struct line *line, struct word word, const struct wire_prefix *prefix);
int line_read_port(struct line *line, struct word word, uint8_t *out);
int line_read_host(struct line *line, struct word word, struct wire_addr *out);

// An MPLS label that is received: not a reserved one. / Those that are pushed, as 100/200, into the
// hop.
int line_read_label(struct line *line, struct word word, uint32_t *out);
int line_read_labels(struct line *line, struct word word, struct fib_hop *out);

// Of a line with "encap", from word `first` on: KIND remote ADDRESS [local ADDRESS] [key NUMBER]
// [dport PORT] [checksum on|off] [label LABELS] [ttl NUMBER]
int tunnel_read(struct line *line, unsigned first, struct route_line *out);

// Keyword pairs: "via ADDRESS", "dev PORT", "lladdr MAC", "weight NUMBER", "label LABELS", "ttl
// NUMBER", each at most once.
struct pairs {
	struct wire_addr via;
	struct wire_mac mac;
	struct fib_hop pushed; // only its labels
	uint8_t port, weight, ttl;
	bool has_via, has_mac, has_port, has_weight, has_labels, has_ttl;
};
// Reads pairs from word `first` up to the end of the line or a word "nexthop"; returns the index of
// the next word.
int line_read_pairs(struct line *line, unsigned first, struct pairs *out);
