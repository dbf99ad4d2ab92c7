// Routes into tunnels: "PREFIX encap KIND remote ADDRESS ...", and received labels likewise. Those
// with the same words, but for the labels that they push, lead into the same tunnel, and what comes
// from its remote end is taken out of it. Control thread.
#include "base/bits.h"
#include "base/vector.h"
#include "config/words.h"
#include "fib/fib_fast.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_TUNNEL = IFACE_MAX_PORTS, MAX_TUNNELS = 4096, OUTER_TTL = 64, MTU = 9600 };
enum { MPLS_PORT = 6635 }; // RFC 7510

// What is read of one line.
struct encap {
	struct iface_tunnel *tunnel;
	struct fib_hop *hop; // its labels
	bool has_checksum, checksum;
};

static bool read_number(struct word word, uint64_t most, uint32_t *out)
{
	uint64_t value = 0;

	if (!word.n || word.n > 10 || (word.n > 1 && word.text[0] == '0'))
		return false;
	for (unsigned i = 0; i < word.n; i++) {
		if (word.text[i] < '0' || word.text[i] > '9')
			return false;
		value = value * 10 + (word.text[i] - '0');
	}
	*out = value;
	return value <= most;
}

static bool is_fou(const struct iface_tunnel *tunnel)
{
	return tunnel->flags & IFACE_TUNNEL_UDP && !(tunnel->flags & IFACE_TUNNEL_MPLS);
}

static int read_kind(struct line *line, struct word word, struct iface_tunnel *out)
{
	static const uint16_t ip = IFACE_TUNNEL_IP4 | IFACE_TUNNEL_IP6;
	static const uint16_t mpls = IFACE_TUNNEL_MPLS | IFACE_TUNNEL_LABELLED_TOS;
	static const struct {
		const char *word;
		uint8_t kind;
		uint16_t flags;
	} rows[] = {{"gre", IFACE_GRE, ip | mpls}, {"ipip", IFACE_IPIP, ip | mpls},
		{"fou", IFACE_IPIP, ip | IFACE_TUNNEL_UDP},
		{"mpls-udp", IFACE_IPIP, mpls | IFACE_TUNNEL_UDP}};

	out->ttl = OUTER_TTL;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		if (!word_is(word, rows[i].word))
			continue;
		out->kind = rows[i].kind;
		out->flags = rows[i].flags | IFACE_TUNNEL_DF | IFACE_TUNNEL_TOS;
		return 0;
	}
	return error_set(line->error, -EINVAL,
		"unknown encapsulation \"%.*s\": expected gre, ipip, fou or mpls-udp", SHOW(word));
}

static int read_key(struct line *line, struct word word, struct encap *out)
{
	struct iface_tunnel *tunnel = out->tunnel;

	if (tunnel->kind != IFACE_GRE)
		return error_set(line->error, -EINVAL,
			"\"key\" of a tunnel that is not of GRE; remove it");
	if (!read_number(word, UINT32_MAX, &tunnel->key))
		return error_set(line->error, -EINVAL,
			"invalid key \"%.*s\": expected a number from 0 to 4294967295", SHOW(word));
	tunnel->wanted_key = tunnel->key;
	tunnel->flags |= IFACE_TUNNEL_KEY | IFACE_TUNNEL_WANTS_KEY;
	return 0;
}

static int read_port(struct line *line, struct word word, struct encap *out)
{
	uint32_t port;

	if (!(out->tunnel->flags & IFACE_TUNNEL_UDP))
		return error_set(line->error, -EINVAL,
			"\"dport\" of a tunnel that is not of fou or mpls-udp; remove it");
	if (!read_number(word, UINT16_MAX, &port) || !port)
		return error_set(line->error, -EINVAL,
			"invalid dport \"%.*s\": expected a number from 1 to 65535", SHOW(word));
	out->tunnel->dest_port = port;
	return 0;
}

static int read_checksum(struct line *line, struct word word, struct encap *out)
{
	if (out->tunnel->kind == IFACE_IPIP && !(out->tunnel->flags & IFACE_TUNNEL_UDP))
		return error_set(line->error, -EINVAL,
			"\"checksum\" of a tunnel of ipip, which has none; remove it");
	if (!word_is(word, "on") && !word_is(word, "off"))
		return error_set(line->error, -EINVAL,
			"invalid checksum \"%.*s\": expected on or off", SHOW(word));
	out->has_checksum = true;
	out->checksum = word_is(word, "on");
	return 0;
}

static int read_labels(struct line *line, struct word word, struct encap *out)
{
	if (is_fou(out->tunnel))
		return error_set(line->error, -EINVAL,
			"\"label\" of a tunnel of fou; expected the encapsulation mpls-udp");
	return line_read_labels(line, word, out->hop);
}

static int read_ttl(struct line *line, struct word word, struct encap *out)
{
	uint32_t ttl;

	if (!read_number(word, UINT8_MAX, &ttl) || !ttl)
		return error_set(line->error, -EINVAL,
			"invalid ttl \"%.*s\": expected a number from 1 to 255", SHOW(word));
	out->hop->label_ttl = ttl;
	return 0;
}

static int read_remote(struct line *line, struct word word, struct encap *out)
{
	return line_read_host(line, word, &out->tunnel->remote);
}

static int read_local(struct line *line, struct word word, struct encap *out)
{
	return line_read_host(line, word, &out->tunnel->local);
}

static int read_pair(struct line *line, struct word key, struct word value, struct encap *out)
{
	const struct iface_tunnel *tunnel = out->tunnel;
	const struct {
		const char *word;
		int (*read)(struct line *line, struct word word, struct encap *out);
		bool was_read;
	} rows[] = {{"remote", read_remote, tunnel->remote.family},
		{"local", read_local, tunnel->local.family},
		{"key", read_key, tunnel->flags & IFACE_TUNNEL_KEY},
		{"dport", read_port, tunnel->dest_port},
		{"checksum", read_checksum, out->has_checksum},
		{"label", read_labels, out->hop->n_labels}, {"ttl", read_ttl, out->hop->label_ttl}};

	if (!value.n)
		return error_set(line->error, -EINVAL, "missing value after \"%.*s\"", SHOW(key));
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		if (!word_is(key, rows[i].word))
			continue;
		if (rows[i].was_read)
			return error_set(line->error, -EINVAL,
				"duplicate \"%.*s\"; expected it once", SHOW(key));
		return rows[i].read(line, value, out);
	}
	return error_set(line->error, -EINVAL,
		"unknown word \"%.*s\": expected remote, local, key, dport, checksum, label or ttl",
		SHOW(key));
}

// What a line may leave out: RFC 8200, 8.1 wants a checksum over IPv6, unless both ends know that
// there is none (RFC 6935).
static void settle(const struct encap *encap)
{
	struct iface_tunnel *tunnel = encap->tunnel;
	const bool is_udp = tunnel->flags & IFACE_TUNNEL_UDP, is_ip6 = tunnel->remote.family == 6;
	const bool has_checksum = encap->has_checksum ? encap->checksum : is_udp && is_ip6;

	if (is_udp && !is_fou(tunnel) && !tunnel->dest_port)
		tunnel->dest_port = MPLS_PORT;
	if (has_checksum)
		tunnel->flags |= IFACE_TUNNEL_CHECKSUM;
	else if (is_udp && is_ip6)
		tunnel->flags |= IFACE_TUNNEL_ZERO_CHECKSUM;
}

static int check_whole(struct line *line, const struct encap *encap)
{
	const struct iface_tunnel *tunnel = encap->tunnel;

	if (!tunnel->remote.family)
		return error_set(line->error, -EINVAL,
			"missing \"remote ADDRESS\"; expected the other end of the tunnel");
	if (is_fou(tunnel) && !tunnel->dest_port)
		return error_set(line->error, -EINVAL,
			"missing \"dport PORT\"; expected the UDP port of the other end");
	if (tunnel->flags & IFACE_TUNNEL_UDP && !is_fou(tunnel) && !encap->hop->n_labels)
		return error_set(line->error, -EINVAL,
			"missing \"label LABELS\"; expected those that packets in mpls-udp have");
	if (encap->hop->label_ttl && !encap->hop->n_labels)
		return error_set(line->error, -EINVAL,
			"\"ttl\" without \"label\"; it is the TTL of labels, remove it");
	if (tunnel->local.family && tunnel->local.family != tunnel->remote.family)
		return error_set(line->error, -EINVAL,
			"local and remote are of different families; expected two of one");
	return 0;
}

int tunnel_read(struct line *line, unsigned first, struct route_line *out)
{
	static const struct word none = {"", 0};
	struct encap encap = {.tunnel = &out->tunnel, .hop = &out->route.hop};
	int err = 0;

	out->route.hop = (struct fib_hop){.kind = FIB_PEER, .iface = IFACE_NONE};
	if (line->n <= first)
		return error_set(line->error, -EINVAL,
			"missing encapsulation after \"encap\": expected gre, ipip, fou or "
			"mpls-udp");
	err = read_kind(line, line->word[first], encap.tunnel);
	for (unsigned i = first + 1; i < line->n && !err; i += 2)
		err = read_pair(line, line->word[i], i + 1 < line->n ? line->word[i + 1] : none,
			&encap);
	if (!err)
		err = check_whole(line, &encap);
	if (err)
		return err;
	settle(&encap);
	out->has_tunnel = true;
	return 0;
}

static struct config_tunnel *find(const struct config_tunnels *tunnels,
	const struct iface_tunnel *settings)
{
	for (size_t i = 0; i < tunnels->n; i++)
		if (!memcmp(&tunnels->tunnel[i].settings, settings, sizeof(*settings)))
			return &tunnels->tunnel[i];
	return NULL;
}

uint16_t tunnels_iface(const struct config *config, const struct iface_tunnel *settings)
{
	const struct config_tunnel *tunnel = find(&config->tunnels, settings);

	return tunnel ? tunnel->iface : IFACE_NONE;
}

static int mistake(const struct config *config, struct spot spot, struct error *error,
	const char *what, const struct wire_addr *addr)
{
	char text[WIRE_ADDR_TEXT];

	return error_set(error, -EINVAL, "%s:%u: %s %s", config->routes.file[spot.file], spot.line,
		wire_addr_print(addr, text), what);
}

// What is received in UDP is known by its port alone.
static bool is_other_in_port(const struct config_tunnels *tunnels,
	const struct iface_tunnel *settings)
{
	for (size_t i = 0; i < tunnels->n && settings->flags & IFACE_TUNNEL_UDP; i++) {
		const struct iface_tunnel *other = &tunnels->tunnel[i].settings;

		if (other->dest_port == settings->dest_port && is_fou(other) != is_fou(settings))
			return true;
	}
	return false;
}

// Workers receive on so many ports.
static bool is_port_too_many(const struct config_tunnels *tunnels,
	const struct iface_tunnel *settings)
{
	uint16_t port[FIB_MAX_UDP_ENDS];
	unsigned n = 0;

	for (size_t i = 0; i < tunnels->n && settings->flags & IFACE_TUNNEL_UDP; i++) {
		const struct iface_tunnel *other = &tunnels->tunnel[i].settings;
		unsigned k = 0;

		if (!(other->flags & IFACE_TUNNEL_UDP))
			continue;
		if (other->dest_port == settings->dest_port)
			return false;
		while (k < n && port[k] != other->dest_port)
			k++;
		if (k == n)
			port[n++] = other->dest_port;
	}
	return n == FIB_MAX_UDP_ENDS;
}

int tunnels_add(struct config *config, struct spot spot, const struct iface_tunnel *settings,
	uint16_t *iface, struct error *error)
{
	struct config_tunnels *tunnels = &config->tunnels;

	*iface = tunnels_iface(config, settings);
	if (*iface != IFACE_NONE)
		return 0;
	if (own_has(config, &settings->remote))
		return mistake(config, spot, error,
			"is an address of the router itself; expected the other end of the tunnel",
			&settings->remote);
	if (settings->local.family && !own_has(config, &settings->local))
		return mistake(config, spot, error,
			"is no address of the router; expected one of those under ports",
			&settings->local);
	if (is_other_in_port(tunnels, settings))
		return error_set(error, -EINVAL,
			"%s:%u: UDP port %u has IP packets in it for fou and labels for mpls-udp; "
			"expected one of both",
			config->routes.file[spot.file], spot.line, settings->dest_port);
	if (is_port_too_many(tunnels, settings))
		return error_set(error, -ENOSPC,
			"%s:%u: UDP port %u of a tunnel is one more than the %d that can be "
			"received on; use the dport of another tunnel",
			config->routes.file[spot.file], spot.line, settings->dest_port,
			FIB_MAX_UDP_ENDS);
	if (tunnels->n == MAX_TUNNELS || vector_reserve(&tunnels->tunnel, &tunnels->capacity,
						 tunnels->n + 1, sizeof(*tunnels->tunnel)))
		return error_set(error, -ENOSPC, "%s:%u: more than %d tunnels; remove some",
			config->routes.file[spot.file], spot.line, MAX_TUNNELS);
	*iface = FIRST_TUNNEL + tunnels->n;
	struct config_tunnel *added = &tunnels->tunnel[tunnels->n++];
	*added = (struct config_tunnel){.spot = spot, .iface = *iface};
	memcpy(&added->settings, settings, sizeof(*settings)); // compared as bytes
	return 0;
}

static void place_hop(const struct config_tunnels *tunnels, struct fib_hop *hop)
{
	if (hop->kind == FIB_PEER && hop->iface >= FIRST_TUNNEL && hop->iface != IFACE_NONE)
		hop->iface = tunnels->tunnel[hop->iface - FIRST_TUNNEL].iface;
}

// Flows may lead into a tunnel that the file had before: its number is not given to another one.
void tunnels_place(struct config *config, const struct config *now)
{
	struct config_tunnels *next = &config->tunnels;
	struct route_list *routes = &config->routes;
	uint16_t end = FIRST_TUNNEL;

	for (size_t i = 0; i < now->tunnels.n; i++)
		end = MAX_OF(end, now->tunnels.tunnel[i].iface + 1);
	end = MAX_OF(end, now->tunnels.end);
	for (size_t i = 0; i < next->n; i++) {
		const uint16_t kept = tunnels_iface(now, &next->tunnel[i].settings);

		next->tunnel[i].iface = kept != IFACE_NONE         ? kept
		                        : end < CONFIG_FIRST_VXLAN ? end++
		                                                   : IFACE_NONE;
	}
	next->end = end;
	for (size_t i = 0; i < routes->n; i++)
		place_hop(next, &routes->change[i].route.hop);
	for (size_t i = 0; i < routes->n_labels; i++)
		place_hop(next, &routes->label[i].label.hop);
}

// The interface by which the remote end is reached; IFACE_NONE: by none.
static uint16_t way_out(const struct fib *fib, const struct wire_addr *remote)
{
	struct fib_member members[CONFIG_MAX_MEMBERS];
	struct fib_answer answer;

	rib_lookup(fib, 0, remote, &answer);
	if (!answer.found)
		return IFACE_NONE;
	if (answer.hop.kind == FIB_GROUP && fib_group_members(fib, &answer.hop, members, 1))
		return members[0].hop.iface;
	return answer.hop.iface;
}

static bool choose_local(const struct config *config, uint16_t port, struct iface_tunnel *tunnel)
{
	for (unsigned i = 0; i < config->n_own && !tunnel->local.family; i++)
		if (config->own[i].port == port &&
			config->own[i].addr.family == tunnel->remote.family &&
			!wire_addr_is_link_local(&config->own[i].addr))
			tunnel->local = config->own[i].addr;
	return tunnel->local.family;
}

// What is received tells them apart by their local address only.
static bool is_alike(const struct iface_tunnel *a, const struct iface_tunnel *b)
{
	return a->kind == b->kind && a->dest_port == b->dest_port &&
	       a->wanted_key == b->wanted_key &&
	       !((a->flags ^ b->flags) & IFACE_TUNNEL_WANTS_KEY) &&
	       wire_addr_equal(&a->remote, &b->remote);
}

// `tunnel` is number n of the list; those before it are in the table.
static int check_twins(const struct config *config, const struct fib *fib, size_t n,
	const struct iface_tunnel *tunnel, struct error *error)
{
	const struct config_tunnel *list = config->tunnels.tunnel;
	char text[WIRE_ADDR_TEXT];

	for (size_t i = 0; i < n; i++)
		if (is_alike(&list[i].settings, tunnel) &&
			wire_addr_equal(&fib_iface(fib, list[i].iface)->tunnel.local,
				&tunnel->local))
			return error_set(error, -EEXIST,
				"%s:%u: %s is the remote end of a tunnel with the same ends in "
				"%s:%u; use the same words, or another key or dport",
				config->routes.file[list[n].spot.file], list[n].spot.line,
				wire_addr_print(&tunnel->remote, text),
				config->routes.file[list[i].spot.file], list[i].spot.line);
	return 0;
}

int tunnels_fill(const struct config *config, struct fib *fib, struct error *error)
{
	for (size_t i = 0; i < config->tunnels.n; i++) {
		const struct config_tunnel *tunnel = &config->tunnels.tunnel[i];
		struct iface iface = {.mtu = MTU,
			.has_peer = true,
			.flags = IFACE_MPLS,
			.tunnel = tunnel->settings};
		const uint16_t out = way_out(fib, &iface.tunnel.remote);

		if (out >= FIRST_TUNNEL)
			return mistake(config, tunnel->spot, error,
				"is the remote end of a tunnel and has no route to a port; add one",
				&iface.tunnel.remote);
		if (!choose_local(config, out, &iface.tunnel))
			return mistake(config, tunnel->spot, error,
				"is reached by a port that has no address of its family; add "
				"\"local ADDRESS\"",
				&iface.tunnel.remote);
		if (check_twins(config, fib, i, &iface.tunnel, error))
			return -EEXIST;
		int err = fib_iface_set(fib, tunnel->iface, &iface);
		if (err)
			return mistake(config, tunnel->spot, error,
				"is the remote end of a tunnel for which there is no space",
				&iface.tunnel.remote);
	}
	return 0;
}

bool config_tunnel_name(const struct config *config, uint16_t iface, char name[CONFIG_TUNNEL_NAME])
{
	for (size_t i = 0; i < config->tunnels.n; i++) {
		const struct iface_tunnel *tunnel = &config->tunnels.tunnel[i].settings;
		char text[WIRE_ADDR_TEXT];

		if (config->tunnels.tunnel[i].iface != iface)
			continue;
		wire_addr_print(&tunnel->remote, text);
		snprintf(name, CONFIG_TUNNEL_NAME, "%s-%s",
			is_fou(tunnel)                     ? "fou"
			: tunnel->flags & IFACE_TUNNEL_UDP ? "mpls-udp"
			: tunnel->kind == IFACE_GRE        ? "gre"
							   : "ipip",
			text);
		return true;
	}
	return false;
}
