// Parses a route or neighbour from its text form. Control thread.
#include "config/words.h"

#include "base/bits.h"
#include "fib/fib_fast.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static const char ROUTE_FORMS[] =
	"\"PREFIX via ADDRESS dev PORT\", \"PREFIX dev PORT\", \"ADDRESS MASK PORT\" or "
	"\"blackhole PREFIX\"";
static const char LABEL_FORMS[] = "\"mpls LABEL via ADDRESS dev PORT\", with \"label LABELS\" or "
				  "without, or \"mpls LABEL pop\"";

// Reads one next hop given as pairs, starting at word `first`; returns the index of the next word.
static int read_member(struct line *line, unsigned first, struct route_line *out)
{
	struct route_member *member = &out->member[out->n_members++];
	struct pairs pairs;
	int next = line_read_pairs(line, first, &pairs);

	if (next < 0)
		return next;
	if (!pairs.has_port)
		return error_set(line->error, -EINVAL,
			"missing \"dev PORT\"; expected the egress port");
	if (pairs.has_mac && !pairs.has_via)
		return error_set(line->error, -EINVAL,
			"\"lladdr\" without \"via ADDRESS\"; expected the address of the "
			"neighbour");
	if (out->route.prefix.addr.family == 6 && pairs.via.family == 4)
		return error_set(line->error, -EINVAL,
			"an IPv6 prefix via an IPv4 address; expected an IPv6 address");
	if (pairs.has_ttl && !pairs.has_labels)
		return error_set(line->error, -EINVAL,
			"\"ttl\" without \"label LABELS\"; expected the labels that get it");
	if (pairs.has_labels && !pairs.has_via && !line->ports->ports[pairs.port].has_peer)
		return error_set(line->error, -EINVAL,
			"\"label\" without \"via ADDRESS\", and the port has no peer; expected one "
			"of the two");
	member->hop = pairs.pushed;
	member->hop.via = pairs.via;
	member->hop.iface = pairs.port;
	member->hop.label_ttl = pairs.ttl;
	member->hop.kind = pairs.has_via ? FIB_VIA : pairs.has_labels ? FIB_PEER : FIB_CONNECTED;
	member->mac = pairs.mac;
	member->has_mac = pairs.has_mac;
	member->weight = pairs.weight;
	member->has_weight = pairs.has_weight;
	return next;
}

// PREFIX [via ADDRESS] dev PORT [lladdr MAC]
static int read_forward(struct line *line, struct route_line *out)
{
	struct wire_prefix *prefix = &out->route.prefix;
	int err = line_read_prefix(line, line->word[0], prefix);
	int next = err ? err : read_member(line, 1, out);

	if (next < 0)
		return next;
	if ((unsigned)next < line->n || out->member[0].has_weight)
		return error_set(line->error, -EINVAL,
			"several next hops, or a weight; expected \"nexthop\" before each next "
			"hop");
	if (word_is(line->word[0], "default") && out->member[0].hop.via.family)
		prefix->addr.family = out->member[0].hop.via.family;
	out->route.hop = out->member[0].hop;
	return 0;
}

// A member of a group must be a single host; without an address it is the port's peer. On-link
// members would need a neighbour for each destination.
static int settle_members(const struct line *line, struct route_line *out)
{
	for (unsigned i = 0; i < out->n_members; i++) {
		struct fib_hop *hop = &out->member[i].hop;

		if (hop->kind != FIB_CONNECTED)
			continue;
		if (!line->ports->ports[hop->iface].has_peer)
			return error_set(line->error, -EINVAL,
				"next hop %u has no \"via ADDRESS\", and its port has no peer; "
				"expected one of the two",
				i + 1);
		hop->kind = FIB_PEER;
	}
	return 0;
}

// The next hops from word `first` on, a "nexthop". 0, or -EINVAL.
static int read_members(struct line *line, int first, struct route_line *out)
{
	int next = first;

	while (next > 0 && (unsigned)next < line->n) {
		if (out->n_members == CONFIG_MAX_MEMBERS)
			return error_set(line->error, -EINVAL,
				"more than %d next hops; remove some", CONFIG_MAX_MEMBERS);
		next = read_member(line, next + 1, out);
	}
	return MIN_OF(next, 0);
}

// PREFIX nexthop [via ADDRESS] dev PORT [weight NUMBER] [lladdr MAC] nexthop ...
static int read_group(struct line *line, struct route_line *out)
{
	struct wire_prefix *prefix = &out->route.prefix;
	int err = line_read_prefix(line, line->word[0], prefix);

	if (!err)
		err = read_members(line, 1, out);
	if (err)
		return err;
	if (word_is(line->word[0], "default") && out->member[0].hop.via.family)
		prefix->addr.family = out->member[0].hop.via.family;
	for (unsigned i = 0; i < out->n_members; i++)
		if (prefix->addr.family == 6 && out->member[i].hop.via.family == 4)
			return error_set(line->error, -EINVAL,
				"an IPv6 prefix via an IPv4 address; expected an IPv6 address");
	if (out->n_members == 1) {
		out->route.hop = out->member[0].hop;
		return 0;
	}
	out->route.hop = (struct fib_hop){.iface = IFACE_NONE, .kind = FIB_GROUP};
	return settle_members(line, out);
}

// The prefix length of a dotted mask; -1: not a mask.
static int mask_len(const uint8_t quad[4])
{
	uint32_t mask, hole;

	memcpy(&mask, quad, 4);
	mask = ntohl(mask);
	hole = ~mask;
	return hole & (hole + 1) ? -1 : __builtin_popcount(mask);
}

// A prefix without "via" or "dev" after it.
static int not_via(struct line *line, struct route_line *out)
{
	int err = line_read_prefix(line, line->word[0], &out->route.prefix);

	return err ? err
	           : error_set(line->error, -EINVAL,
			     "unknown word \"%.*s\": expected via, dev or nexthop",
			     SHOW(line->word[1]));
}

// ADDRESS MASK PORT
static int read_triple(struct line *line, struct route_line *out)
{
	struct wire_prefix *prefix = &out->route.prefix;
	struct word addr = line->word[0], mask = line->word[1];
	uint8_t quad[4];

	if (word_is(addr, "default") || memchr(addr.text, '/', addr.n))
		return not_via(line, out);
	if (!word_addr(addr, &prefix->addr))
		return error_set(line->error, -EINVAL, "invalid address \"%.*s\": expected %s",
			SHOW(addr), ROUTE_FORMS);
	if (!word_len(mask, prefix)) {
		bool is_quad = prefix->addr.family == 4 && word_quad(mask, quad);
		int len = is_quad ? mask_len(quad) : -1;

		if (len < 0)
			return error_set(line->error, -EINVAL,
				"invalid mask \"%.*s\": expected a length%s", SHOW(mask),
				prefix->addr.family == 4 ? " or a mask like 255.255.255.0" : "");
		prefix->len = len;
	}
	uint8_t port;
	int err = line_check_host_bits(line, addr, prefix);

	if (!err)
		err = line_read_port(line, line->word[2], &port);
	if (!err)
		out->route.hop = (struct fib_hop){.iface = port,
			.kind = line->ports->ports[port].has_peer ? FIB_PEER : FIB_CONNECTED};
	return err;
}

static int drop_kind(struct word word)
{
	if (word_is(word, "blackhole"))
		return FIB_BLACKHOLE;
	if (word_is(word, "unreachable"))
		return FIB_UNREACHABLE;
	return word_is(word, "prohibit") ? FIB_PROHIBIT : -1;
}

// blackhole PREFIX, in either order
static int read_drop(struct line *line, unsigned place, struct route_line *out)
{
	out->route.hop.kind = drop_kind(line->word[place]);
	out->route.hop.iface = IFACE_NONE;
	if (line->n != 2)
		return error_set(line->error, -EINVAL,
			"invalid \"%.*s\" route: expected one prefix and nothing else",
			SHOW(line->word[place]));
	return line_read_prefix(line, line->word[!place], &out->route.prefix);
}

static bool is_key(struct word word)
{
	return word_is(word, "dev") || word_is(word, "via") || word_is(word, "lladdr") ||
	       word_is(word, "nexthop") || word_is(word, "label");
}

static int refuse_ttl(const struct line *line, const struct fib_hop *hop)
{
	return hop->label_ttl ? error_set(line->error, -EINVAL,
					"\"ttl\" of a received label; its TTL is that of the "
					"labels that take its place")
	                      : 0;
}

// The next hop, or several, from word `first` on.
static int read_label_hops(struct line *line, unsigned first, struct route_line *out)
{
	const bool is_group = word_is(line->word[first], "nexthop");
	int next = is_group ? read_members(line, first, out) : read_member(line, first, out);

	if (next < 0)
		return next;
	if (!is_group && ((unsigned)next < line->n || out->member[0].has_weight))
		return error_set(line->error, -EINVAL,
			"several next hops, or a weight; expected \"nexthop\" before each next "
			"hop");
	int err = settle_members(line, out);
	for (unsigned i = 0; i < out->n_members && !err; i++)
		err = refuse_ttl(line, &out->member[i].hop);
	out->route.hop = out->n_members == 1
	                         ? out->member[0].hop
	                         : (struct fib_hop){.iface = IFACE_NONE, .kind = FIB_GROUP};
	return err;
}

// mpls LABEL [pipe] pop, or mpls LABEL [pipe] [via ADDRESS] dev PORT [label LABELS] ..., or mpls
// LABEL [pipe] encap KIND ...
static int read_label(struct line *line, struct route_line *out)
{
	unsigned at = 2;

	if (line->n < 3)
		return error_set(line->error, -EINVAL, "invalid label: expected %s", LABEL_FORMS);
	int err = line_read_label(line, line->word[1], &out->label.label);
	if (err)
		return err;
	out->is_label = true;
	out->label.is_pipe = word_is(line->word[at], "pipe");
	at += out->label.is_pipe;
	if (at < line->n && word_is(line->word[at], "pop")) {
		out->label.op = FIB_LABEL_LOOKUP;
		return at + 1 == line->n ? 0
		                         : error_set(line->error, -EINVAL,
						   "unknown word \"%.*s\" after \"pop\"; remove it",
						   SHOW(line->word[at + 1]));
	}
	if (at == line->n)
		return error_set(line->error, -EINVAL, "invalid label: expected %s", LABEL_FORMS);
	out->label.op = FIB_LABEL_FORWARD;
	if (!word_is(line->word[at], "encap"))
		return read_label_hops(line, at, out);
	err = tunnel_read(line, at + 1, out);
	return err ? err : refuse_ttl(line, &out->route.hop);
}

int route_read(const struct port_table_settings *ports, const char *text, size_t n,
	struct route_line *out, struct error *error)
{
	struct line line;

	line.ports = ports;
	line.error = error;
	if (!line_split(&line, text, n))
		return error_set(error, -EINVAL, "too many words: expected %s", ROUTE_FORMS);
	if (!line.n)
		return 1;
	memset(&out->route, 0, sizeof(out->route));
	memset(&out->label, 0, sizeof(out->label));
	memset(&out->tunnel, 0, sizeof(out->tunnel));
	out->has_tunnel = false;
	out->is_label = false;
	out->n_members = 0;
	if (word_is(line.word[0], "mpls"))
		return read_label(&line, out);
	if (drop_kind(line.word[0]) >= 0)
		return read_drop(&line, 0, out);
	if (line.n > 1 && drop_kind(line.word[1]) >= 0)
		return read_drop(&line, 1, out);
	if (line.n > 1 && word_is(line.word[1], "encap")) {
		int err = line_read_prefix(&line, line.word[0], &out->route.prefix);

		return err ? err : tunnel_read(&line, 2, out);
	}
	if (line.n == 3 && !is_key(line.word[1]))
		return read_triple(&line, out);
	if (line.n < 2)
		return error_set(error, -EINVAL, "invalid route \"%.*s\": expected %s",
			SHOW(line.word[0]), ROUTE_FORMS);
	return word_is(line.word[1], "nexthop") ? read_group(&line, out) : read_forward(&line, out);
}

int neighbour_read(const struct port_table_settings *ports, const char *text, size_t n,
	struct neighbour *out, struct error *error)
{
	struct line line;
	struct pairs pairs;

	line.ports = ports;
	line.error = error;
	if (!line_split(&line, text, n))
		return error_set(error, -EINVAL,
			"too many words: expected \"ADDRESS lladdr MAC dev PORT\"");
	if (!line.n)
		return 1;
	int err = line_read_host(&line, line.word[0], &out->addr);
	if (!err)
		err = line_read_pairs(&line, 1, &pairs);
	if (err < 0)
		return err;
	if (!pairs.has_mac || !pairs.has_port || pairs.has_via || pairs.has_weight ||
		pairs.has_labels || pairs.has_ttl || (unsigned)err < line.n)
		return error_set(error, -EINVAL,
			"invalid neighbour: expected \"ADDRESS lladdr MAC dev PORT\"");
	out->mac = pairs.mac;
	out->port = pairs.port;
	return 0;
}
