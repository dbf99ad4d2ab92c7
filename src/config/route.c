// One route or neighbour in its text form -> values. Fast for IPv4, since route files have millions
// of lines. Control thread.
#include "config/inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MAX_WORDS = 8 };

struct word {
	const char *text;
	unsigned n;
};

struct line {
	const struct port_room_settings *ports;
	struct complaint *why;
	struct word word[MAX_WORDS];
	unsigned n;
};

static const char ROUTE_FORMS[] =
	"\"PREFIX via ADDRESS dev PORT\", \"PREFIX dev PORT\", \"ADDRESS MASK PORT\" or "
	"\"blackhole PREFIX\"";

// The text of a word for printf, cut: "%.*s" takes both.
#define SHOW(w) (int)((w).n < 60 ? (w).n : 60), (w).text

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool is_word(struct word word, const char *text)
{
	return word.n == strlen(text) && !memcmp(word.text, text, word.n);
}

// False: more words than any line has.
static bool split(struct line *line, const char *text, size_t n)
{
	const char *end = text + n;

	while (text < end) {
		while (text < end && is_space(*text))
			text++;
		if (text == end || *text == '#')
			break;
		if (line->n == MAX_WORDS)
			return false;
		struct word *word = &line->word[line->n++];
		word->text = text;
		while (text < end && !is_space(*text))
			text++;
		word->n = text - word->text;
	}
	return true;
}

// Up to three digits of a number without leading zeros; returns how many, 0 when there is none.
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

static bool read_addr(struct word word, struct wire_addr *out)
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

static int check_host_bits(struct line *line, struct word word, const struct wire_prefix *prefix)
{
	struct wire_prefix right = *prefix;
	char text[WIRE_PREFIX_TEXT];

	if (!has_host_bits(prefix))
		return 0;
	wire_prefix_mask(&right);
	return complain(line->why, -EINVAL, "%.*s has host bits; did you mean %s?", SHOW(word),
		wire_prefix_print(&right, text));
}

// A length in bits, up to that of the address' family.
static bool read_len(struct word word, struct wire_prefix *prefix)
{
	unsigned value, n = read_small(word.text, word.text + word.n, &value);

	if (!n || n != word.n || value > (prefix->addr.family == 4 ? 32u : 128u))
		return false;
	prefix->len = value;
	return true;
}

// ADDRESS/LENGTH, ADDRESS alone (one host) or "default" (0.0.0.0/0).
static int read_prefix(struct line *line, struct word word, struct wire_prefix *out)
{
	const char *slash = memchr(word.text, '/', word.n);
	struct word addr = {word.text, slash ? slash - word.text : word.n};

	if (is_word(word, "default")) {
		out->addr.family = 4;
		return 0;
	}
	if (!read_addr(addr, &out->addr))
		return complain(line->why, -EINVAL,
			"\"%.*s\" is no prefix; ADDRESS/LENGTH is wanted", SHOW(word));
	out->len = out->addr.family == 4 ? 32 : 128;
	if (slash && !read_len((struct word){slash + 1, word.n - addr.n - 1}, out))
		return complain(line->why, -EINVAL,
			"\"%.*s\" is no prefix; a length of 0 to %d is wanted after the slash",
			SHOW(word), out->len);
	return check_host_bits(line, word, out);
}

int port_find(const struct port_room_settings *ports, const char *name, size_t n)
{
	unsigned index, digits = read_small(name, name + n, &index);

	for (unsigned i = 0; i < ports->n_ports; i++)
		if (!strncmp(ports->ports[i].name, name, n) && !ports->ports[i].name[n])
			return i;
	return digits && digits == n && index < ports->n_ports ? (int)index : -1;
}

static int read_port(struct line *line, struct word word, uint8_t *out)
{
	int port = word.n < PORT_NAME_MAX ? port_find(line->ports, word.text, word.n) : -1;
	char known[200] = "";
	size_t used = 0;

	if (port >= 0) {
		*out = port;
		return 0;
	}
	for (unsigned i = 0; i < line->ports->n_ports && used < sizeof(known); i++)
		used += snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
			line->ports->ports[i].name);
	return complain(line->why, -EINVAL, "unknown port \"%.*s\"; the ports are %s", SHOW(word),
		known);
}

static int read_mac(struct line *line, struct word word, struct wire_mac *out)
{
	char text[WIRE_MAC_TEXT] = "";

	if (word.n < sizeof(text))
		memcpy(text, word.text, word.n);
	if (wire_mac_parse(text, out))
		return complain(line->why, -EINVAL,
			"\"%.*s\" is no MAC address; six hex pairs are wanted, like "
			"02:00:00:00:00:01",
			SHOW(word));
	if (out->bytes[0] & 1)
		return complain(line->why, -EINVAL,
			"%s is a group address; the MAC address of one box is wanted", text);
	return 0;
}

// An address that a box on a wire can have.
static bool is_host_address(const struct wire_addr *addr)
{
	static const uint8_t none[16];
	const uint8_t *b = addr->bytes;

	if (addr->family == 4)
		return b[0] && b[0] != 127 && b[0] < 224;
	return b[0] != 0xff && memcmp(b, none, 15) != 0;
}

static int read_host(struct line *line, struct word word, struct wire_addr *out)
{
	if (!read_addr(word, out))
		return complain(line->why, -EINVAL,
			"\"%.*s\" is no address; an IPv4 or IPv6 address is wanted", SHOW(word));
	if (!is_host_address(out))
		return complain(line->why, -EINVAL, "%.*s cannot be the address of a neighbour",
			SHOW(word));
	return 0;
}

// What stands after a prefix or address in pairs: "via ADDRESS", "dev PORT", "lladdr MAC", each at
// most once.
struct pairs {
	struct wire_addr via;
	struct wire_mac mac;
	uint8_t port;
	bool has_via, has_mac, has_port;
};

static int read_pair(struct line *line, struct word key, struct word value, struct pairs *out)
{
	bool *has = is_word(key, "via")      ? &out->has_via
	            : is_word(key, "dev")    ? &out->has_port
	            : is_word(key, "lladdr") ? &out->has_mac
	                                     : NULL;

	if (!has)
		return complain(line->why, -EINVAL,
			"unknown word \"%.*s\"; via, dev or lladdr is wanted", SHOW(key));
	if (*has)
		return complain(line->why, -EINVAL, "\"%.*s\" for the second time; once is enough",
			SHOW(key));
	if (!value.n)
		return complain(line->why, -EINVAL, "nothing after \"%.*s\"; its value is wanted",
			SHOW(key));
	*has = true;
	if (has == &out->has_via)
		return read_host(line, value, &out->via);
	return has == &out->has_port ? read_port(line, value, &out->port)
	                             : read_mac(line, value, &out->mac);
}

static int read_pairs(struct line *line, struct pairs *out)
{
	static const struct word none = {"", 0};

	for (unsigned i = 1; i < line->n; i += 2) {
		int err = read_pair(line, line->word[i], i + 1 < line->n ? line->word[i + 1] : none,
			out);
		if (err)
			return err;
	}
	return 0;
}

// PREFIX [via ADDRESS] dev PORT [lladdr MAC]
static int read_forward(struct line *line, struct route_line *out)
{
	struct fib_route *route = &out->route;
	struct pairs pairs = {0};
	int err = read_prefix(line, line->word[0], &route->prefix);

	if (!err)
		err = read_pairs(line, &pairs);
	if (err)
		return err;
	if (!pairs.has_port)
		return complain(line->why, -EINVAL,
			"no \"dev PORT\" in the route; the port that packets leave on is wanted");
	if (pairs.has_mac && !pairs.has_via)
		return complain(line->why, -EINVAL,
			"\"lladdr\" without \"via ADDRESS\"; whose MAC address is it?");
	if (is_word(line->word[0], "default") && pairs.has_via)
		route->prefix.addr.family = pairs.via.family;
	if (route->prefix.addr.family == 6 && pairs.via.family == 4)
		return complain(line->why, -EINVAL,
			"an IPv6 prefix via an IPv4 address; an IPv6 address is wanted");
	route->hop = (struct fib_hop){.via = pairs.via,
		.port = pairs.port,
		.kind = pairs.has_via ? FIB_VIA : FIB_CONNECTED};
	out->mac = pairs.mac;
	out->has_mac = pairs.has_mac;
	return 0;
}

// The length that a dotted mask stands for; -1: not a mask.
static int mask_len(const uint8_t quad[4])
{
	uint32_t mask, hole;

	memcpy(&mask, quad, 4);
	mask = ntohl(mask);
	hole = ~mask;
	return hole & (hole + 1) ? -1 : __builtin_popcount(mask);
}

// ADDRESS MASK PORT
static int read_triple(struct line *line, struct route_line *out)
{
	struct wire_prefix *prefix = &out->route.prefix;
	struct word addr = line->word[0], mask = line->word[1];
	uint8_t quad[4];

	if (!read_addr(addr, &prefix->addr))
		return complain(line->why, -EINVAL, "\"%.*s\" is no address; a route is %s",
			SHOW(addr), ROUTE_FORMS);
	if (!read_len(mask, prefix)) {
		bool is_quad =
			prefix->addr.family == 4 && read_quad(mask.text, mask.text + mask.n, quad);
		int len = is_quad ? mask_len(quad) : -1;

		if (len < 0)
			return complain(line->why, -EINVAL,
				"\"%.*s\" is no mask; a length%s is wanted", SHOW(mask),
				prefix->addr.family == 4 ? " or a mask like 255.255.255.0" : "");
		prefix->len = len;
	}
	int err = check_host_bits(line, addr, prefix);
	if (!err)
		err = read_port(line, line->word[2], &out->route.hop.port);
	if (!err)
		out->route.hop.kind =
			line->ports->ports[out->route.hop.port].has_peer ? FIB_PEER : FIB_CONNECTED;
	return err;
}

static int drop_kind(struct word word)
{
	if (is_word(word, "blackhole"))
		return FIB_BLACKHOLE;
	if (is_word(word, "unreachable"))
		return FIB_UNREACHABLE;
	return is_word(word, "prohibit") ? FIB_PROHIBIT : -1;
}

// blackhole PREFIX, in either order
static int read_drop(struct line *line, unsigned place, struct route_line *out)
{
	out->route.hop.kind = drop_kind(line->word[place]);
	out->route.hop.port = FIB_NO_PORT;
	if (line->n != 2)
		return complain(line->why, -EINVAL, "\"%.*s\" takes one prefix and nothing else",
			SHOW(line->word[place]));
	return read_prefix(line, line->word[!place], &out->route.prefix);
}

int route_read(const struct port_room_settings *ports, const char *text, size_t n,
	struct route_line *out, struct complaint *why)
{
	struct line line;

	line.ports = ports;
	line.why = why;
	line.n = 0;
	if (!split(&line, text, n))
		return complain(why, -EINVAL, "too many words; a route is %s", ROUTE_FORMS);
	if (!line.n)
		return 1;
	memset(out, 0, sizeof(*out));
	if (drop_kind(line.word[0]) >= 0)
		return read_drop(&line, 0, out);
	if (line.n > 1 && drop_kind(line.word[1]) >= 0)
		return read_drop(&line, 1, out);
	if (line.n == 3 && !is_word(line.word[1], "dev") && !is_word(line.word[1], "via") &&
		!is_word(line.word[1], "lladdr"))
		return read_triple(&line, out);
	if (line.n < 2)
		return complain(why, -EINVAL, "\"%.*s\" is no route; a route is %s",
			SHOW(line.word[0]), ROUTE_FORMS);
	return read_forward(&line, out);
}

int neighbour_read(const struct port_room_settings *ports, const char *text, size_t n,
	struct neighbour *out, struct complaint *why)
{
	struct line line = {.ports = ports, .why = why};
	struct pairs pairs = {0};

	if (!split(&line, text, n))
		return complain(why, -EINVAL,
			"too many words; a neighbour is \"ADDRESS lladdr MAC dev PORT\"");
	if (!line.n)
		return 1;
	int err = read_host(&line, line.word[0], &out->addr);
	if (!err)
		err = read_pairs(&line, &pairs);
	if (err)
		return err;
	if (!pairs.has_mac || !pairs.has_port || pairs.has_via)
		return complain(why, -EINVAL,
			"a neighbour needs a MAC address and a port: \"ADDRESS lladdr MAC dev "
			"PORT\"");
	out->mac = pairs.mac;
	out->port = pairs.port;
	return 0;
}
