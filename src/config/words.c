// Parsers of single words in a line. Fast for IPv4, because route files can have millions of lines.
// Control thread.
#include "config/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

bool line_split(struct line *line, const char *text, size_t n)
{
	const char *end = text + n;

	line->n = 0;
	while (text < end) {
		while (text < end && is_space(*text))
			text++;
		if (text == end || *text == '#')
			break;
		if (line->n == LINE_MAX_WORDS)
			return false;
		struct word *word = &line->word[line->n++];
		word->text = text;
		while (text < end && !is_space(*text))
			text++;
		word->n = text - word->text;
	}
	return true;
}

// Parses up to three digits without leading zeros; returns how many, 0 if there are none.
static unsigned read_small(const char *p, const char *end, unsigned *value)
{
	unsigned n = 0;

	*value = 0;
	while (n < 3 && p + n < end && p[n] >= '0' && p[n] <= '9')
		*value = *value * 10 + (p[n++] - '0');
	return n > 1 && *p == '0' ? 0 : n;
}

static bool read_quad(const char *p, const char *end, uint8_t out[4])
{
	for (unsigned i = 0; i < 4; i++) {
		unsigned value, n = read_small(p, end, &value);

		if (!n || value > 255)
			return false;
		out[i] = value;
		p += n;
		if (i < 3 && (p == end || *p++ != '.'))
			return false;
	}
	return p == end;
}

bool word_quad(struct word word, uint8_t out[4])
{
	return read_quad(word.text, word.text + word.n, out);
}

bool word_addr(struct word word, struct wire_addr *out)
{
	char text[WIRE_ADDR_TEXT];
	struct wire_addr addr = {.family = 4};

	if (read_quad(word.text, word.text + word.n, addr.bytes)) {
		*out = addr;
		return true;
	}
	if (word.n >= sizeof(text))
		return false;
	memcpy(text, word.text, word.n);
	text[word.n] = 0;
	return strlen(text) == word.n && !wire_addr_parse(text, out);
}

static bool has_host_bits(const struct wire_prefix *prefix)
{
	unsigned bytes = prefix->addr.family == 4 ? 4 : 16, i = prefix->len / 8;

	if (i < bytes && prefix->addr.bytes[i++] & (0xff >> prefix->len % 8))
		return true;
	while (i < bytes)
		if (prefix->addr.bytes[i++])
			return true;
	return false;
}

int line_check_host_bits(struct line *line, struct word word, const struct wire_prefix *prefix)
{
	struct wire_prefix right = *prefix;
	char text[WIRE_PREFIX_TEXT];

	if (!has_host_bits(prefix))
		return 0;
	wire_prefix_mask(&right);
	return error_set(line->error, -EINVAL, "%.*s has host bits; did you mean %s?", SHOW(word),
		wire_prefix_print(&right, text));
}

bool word_len(struct word word, struct wire_prefix *prefix)
{
	unsigned value, n = read_small(word.text, word.text + word.n, &value);

	if (!n || n != word.n || value > (prefix->addr.family == 4 ? 32u : 128u))
		return false;
	prefix->len = value;
	return true;
}

// ADDRESS/LENGTH, ADDRESS alone (one host) or "default" (0.0.0.0/0).
int line_read_prefix(struct line *line, struct word word, struct wire_prefix *out)
{
	const char *slash = memchr(word.text, '/', word.n);
	struct word addr = {word.text, slash ? slash - word.text : word.n};

	if (word_is(word, "default")) {
		out->addr.family = 4;
		return 0;
	}
	if (!word_addr(addr, &out->addr))
		return error_set(line->error, -EINVAL,
			"invalid prefix \"%.*s\": expected ADDRESS/LENGTH", SHOW(word));
	out->len = out->addr.family == 4 ? 32 : 128;
	if (slash && !word_len((struct word){slash + 1, word.n - addr.n - 1}, out))
		return error_set(line->error, -EINVAL,
			"invalid prefix \"%.*s\": expected a length of 0 to %d after the slash",
			SHOW(word), out->len);
	return line_check_host_bits(line, word, out);
}

int port_find(const struct port_table_settings *ports, const char *name, size_t n)
{
	unsigned index, digits = read_small(name, name + n, &index);

	for (unsigned i = port_next(ports, 0); i < ports->n_ports; i = port_next(ports, i + 1))
		if (strlen(ports->ports[i].name) == n && !memcmp(ports->ports[i].name, name, n))
			return i;
	return digits && digits == n && port_is_configured(ports, index) ? (int)index : -1;
}

int line_read_port(struct line *line, struct word word, uint8_t *out)
{
	int port = word.n < PORT_NAME_MAX ? port_find(line->ports, word.text, word.n) : -1;
	char known[200] = "";
	size_t used = 0;

	if (port >= 0) {
		*out = port;
		return 0;
	}
	for (unsigned i = port_next(line->ports, 0);
		i < line->ports->n_ports && used < sizeof(known); i = port_next(line->ports, i + 1))
		used += snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "",
			line->ports->ports[i].name);
	return error_set(line->error, -EINVAL, "unknown port \"%.*s\"; expected one of %s",
		SHOW(word), known);
}

const char *mac_of_no_box(const struct wire_mac *mac)
{
	static const struct wire_mac none;

	if (mac->bytes[0] & 1)
		return "multicast address";
	return wire_mac_equal(mac, &none) ? "zero address" : NULL;
}

static int read_mac(struct line *line, struct word word, struct wire_mac *out)
{
	char text[WIRE_MAC_TEXT] = "";

	if (word.n < sizeof(text))
		memcpy(text, word.text, word.n);
	if (wire_mac_parse(text, out))
		return error_set(line->error, -EINVAL,
			"invalid MAC address \"%.*s\": expected six hex pairs, like "
			"02:00:00:00:00:01",
			SHOW(word));
	const char *no_box = mac_of_no_box(out);
	if (no_box)
		return error_set(line->error, -EINVAL, "%s is a %s; expected a unicast MAC address",
			text, no_box);
	return 0;
}

// Whether a host can have this address.
static bool is_host_address(const struct wire_addr *addr)
{
	static const uint8_t none[16];
	const uint8_t *b = addr->bytes;

	if (addr->family == 4)
		return b[0] && b[0] != 127 && b[0] < 224;
	return b[0] != 0xff && memcmp(b, none, 15) != 0;
}

int line_read_host(struct line *line, struct word word, struct wire_addr *out)
{
	if (!word_addr(word, out))
		return error_set(line->error, -EINVAL,
			"invalid address \"%.*s\": expected an IPv4 or IPv6 address", SHOW(word));
	if (!is_host_address(out))
		return error_set(line->error, -EINVAL, "%.*s cannot be the address of a neighbour",
			SHOW(word));
	return 0;
}

// A weight, or a TTL.
static int read_byte(struct line *line, struct word key, struct word word, uint8_t *out)
{
	unsigned value, n = read_small(word.text, word.text + word.n, &value);

	if (!n || n != word.n || !value || value > 255)
		return error_set(line->error, -EINVAL,
			"invalid %.*s \"%.*s\": expected a number from 1 to 255", SHOW(key),
			SHOW(word));
	*out = value;
	return 0;
}

// A number of up to seven digits without leading zeros, 0 to FIB_MAX_LABEL.
static bool is_label(struct word word, uint32_t *out)
{
	enum { MOST_DIGITS = 7 };

	*out = 0;
	for (unsigned i = 0; i < word.n && i < MOST_DIGITS; i++) {
		if (word.text[i] < '0' || word.text[i] > '9')
			return false;
		*out = *out * 10 + (word.text[i] - '0');
	}
	return word.n && word.n <= MOST_DIGITS && *out <= FIB_MAX_LABEL &&
	       (word.n == 1 || word.text[0] != '0');
}

int line_read_label(struct line *line, struct word word, uint32_t *out)
{
	if (!is_label(word, out))
		return error_set(line->error, -EINVAL,
			"invalid label \"%.*s\": expected a number from %u to %u", SHOW(word),
			FIB_FREE_LABEL, FIB_MAX_LABEL);
	if (*out < FIB_FREE_LABEL)
		return error_set(line->error, -EINVAL,
			"label %u is reserved (RFC 3032, 2.1): expected a number from %u to %u",
			*out, FIB_FREE_LABEL, FIB_MAX_LABEL);
	return 0;
}

// Of the reserved ones only explicit null, of IPv4 and of IPv6, may be pushed.
static int read_pushed(struct line *line, struct word word, struct fib_hop *out)
{
	enum { EXPLICIT_NULL4 = 0, EXPLICIT_NULL6 = 2 };
	uint32_t label;

	if (!is_label(word, &label))
		return error_set(line->error, -EINVAL,
			"invalid label \"%.*s\": expected a number from %u to %u, or 0 or 2 "
			"(explicit null)",
			SHOW(word), FIB_FREE_LABEL, FIB_MAX_LABEL);
	if (label < FIB_FREE_LABEL && label != EXPLICIT_NULL4 && label != EXPLICIT_NULL6)
		return error_set(line->error, -EINVAL,
			"label %u is reserved (RFC 3032, 2.1) and cannot be pushed: expected a "
			"number from %u to %u, or 0 or 2 (explicit null)",
			label, FIB_FREE_LABEL, FIB_MAX_LABEL);
	out->label[out->n_labels++] = label;
	return 0;
}

int line_read_labels(struct line *line, struct word word, struct fib_hop *out)
{
	struct word rest = word;
	int err = 0;

	while (!err) {
		const char *slash = memchr(rest.text, '/', rest.n);
		const unsigned n = slash ? slash - rest.text : rest.n;

		if (out->n_labels == FIB_MAX_PUSHED)
			return error_set(line->error, -EINVAL,
				"more than %d labels in \"%.*s\"; remove some", FIB_MAX_PUSHED,
				SHOW(word));
		err = read_pushed(line, (struct word){rest.text, n}, out);
		if (!slash)
			break;
		rest = (struct word){slash + 1, rest.n - n - 1};
	}
	return err;
}

static int read_pair(struct line *line, struct word key, struct word value, struct pairs *out)
{
	bool *has = word_is(key, "via")      ? &out->has_via
	            : word_is(key, "dev")    ? &out->has_port
	            : word_is(key, "lladdr") ? &out->has_mac
	            : word_is(key, "weight") ? &out->has_weight
	            : word_is(key, "label")  ? &out->has_labels
	            : word_is(key, "ttl")    ? &out->has_ttl
	                                     : NULL;

	if (!has)
		return error_set(line->error, -EINVAL,
			"unknown word \"%.*s\": expected via, dev, lladdr, label, ttl, or nexthop "
			"and "
			"weight",
			SHOW(key));
	if (*has)
		return error_set(line->error, -EINVAL, "duplicate \"%.*s\"; expected it once",
			SHOW(key));
	if (!value.n)
		return error_set(line->error, -EINVAL, "missing value after \"%.*s\"", SHOW(key));
	*has = true;
	if (has == &out->has_via)
		return line_read_host(line, value, &out->via);
	if (has == &out->has_port)
		return line_read_port(line, value, &out->port);
	if (has == &out->has_labels)
		return line_read_labels(line, value, &out->pushed);
	if (has == &out->has_mac)
		return read_mac(line, value, &out->mac);
	return read_byte(line, key, value, has == &out->has_ttl ? &out->ttl : &out->weight);
}

int line_read_pairs(struct line *line, unsigned first, struct pairs *out)
{
	static const struct word none = {"", 0};
	unsigned i = first;

	*out = (struct pairs){.weight = 1};
	for (; i < line->n && !word_is(line->word[i], "nexthop"); i += 2) {
		int err = read_pair(line, line->word[i], i + 1 < line->n ? line->word[i + 1] : none,
			out);
		if (err)
			return err;
	}
	return i;
}
