// Routes into tunnels: "PREFIX encap KIND remote ADDRESS ...". Routes with the same words lead into
// the same tunnel, and what comes from its remote end is taken out of it. Control thread.
#include "base/bits.h"
#include "base/vector.h"
#include "config/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_TUNNEL = IFACE_MAX_PORTS, MAX_TUNNELS = 4096, OUTER_TTL = 64, MTU = 9600 };

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

static int read_kind(struct line *line, struct word word, struct iface_tunnel *out)
{
	out->flags = IFACE_TUNNEL_IP4 | IFACE_TUNNEL_IP6 | IFACE_TUNNEL_DF | IFACE_TUNNEL_TOS;
	out->ttl = OUTER_TTL;
	out->kind = word_is(word, "gre") ? IFACE_GRE : IFACE_IPIP;
	out->flags |= word_is(word, "fou") ? IFACE_TUNNEL_UDP : 0;
	if (out->kind == IFACE_GRE || word_is(word, "ipip") || word_is(word, "fou"))
		return 0;
	return error_set(line->error, -EINVAL,
		"unknown encapsulation \"%.*s\": expected gre, ipip or fou", SHOW(word));
}

static int read_key(struct line *line, struct word word, struct iface_tunnel *out)
{
	if (out->kind != IFACE_GRE)
		return error_set(line->error, -EINVAL,
			"\"key\" of a tunnel that is not of GRE; remove it");
	if (!read_number(word, UINT32_MAX, &out->key))
		return error_set(line->error, -EINVAL,
			"invalid key \"%.*s\": expected a number from 0 to 4294967295", SHOW(word));
	out->wanted_key = out->key;
	out->flags |= IFACE_TUNNEL_KEY | IFACE_TUNNEL_WANTS_KEY;
	return 0;
}

static int read_port(struct line *line, struct word word, struct iface_tunnel *out)
{
	uint32_t port;

	if (!(out->flags & IFACE_TUNNEL_UDP))
		return error_set(line->error, -EINVAL,
			"\"dport\" of a tunnel that is not of fou; remove it");
	if (!read_number(word, UINT16_MAX, &port) || !port)
		return error_set(line->error, -EINVAL,
			"invalid dport \"%.*s\": expected a number from 1 to 65535", SHOW(word));
	out->dest_port = port;
	return 0;
}

static int read_pair(struct line *line, struct word key, struct word value,
	struct iface_tunnel *out)
{
	if (!value.n)
		return error_set(line->error, -EINVAL, "missing value after \"%.*s\"", SHOW(key));
	if ((word_is(key, "remote") && out->remote.family) ||
		(word_is(key, "local") && out->local.family) ||
		(word_is(key, "key") && out->flags & IFACE_TUNNEL_KEY) ||
		(word_is(key, "dport") && out->dest_port))
		return error_set(line->error, -EINVAL, "duplicate \"%.*s\"; expected it once",
			SHOW(key));
	if (word_is(key, "remote"))
		return line_read_host(line, value, &out->remote);
	if (word_is(key, "local"))
		return line_read_host(line, value, &out->local);
	if (word_is(key, "key"))
		return read_key(line, value, out);
	if (word_is(key, "dport"))
		return read_port(line, value, out);
	return error_set(line->error, -EINVAL,
		"unknown word \"%.*s\": expected remote, local, key or dport", SHOW(key));
}

int tunnel_read(struct line *line, struct route_line *out)
{
	static const struct word none = {"", 0};
	struct iface_tunnel *tunnel = &out->tunnel;
	int err = line_read_prefix(line, line->word[0], &out->route.prefix);

	if (!err && line->n < 3)
		err = error_set(line->error, -EINVAL,
			"missing encapsulation after \"encap\": expected gre, ipip or fou");
	if (!err)
		err = read_kind(line, line->word[2], tunnel);
	for (unsigned i = 3; i < line->n && !err; i += 2)
		err = read_pair(line, line->word[i], i + 1 < line->n ? line->word[i + 1] : none,
			tunnel);
	if (err)
		return err;
	if (!tunnel->remote.family)
		return error_set(line->error, -EINVAL,
			"missing \"remote ADDRESS\"; expected the other end of the tunnel");
	if (tunnel->flags & IFACE_TUNNEL_UDP && !tunnel->dest_port)
		return error_set(line->error, -EINVAL,
			"missing \"dport PORT\"; expected the UDP port of the other end");
	if (tunnel->local.family && tunnel->local.family != tunnel->remote.family)
		return error_set(line->error, -EINVAL,
			"local and remote are of different families; expected two of one");
	if (tunnel->remote.family == 6) // RFC 8200, 8.1
		tunnel->flags |= tunnel->flags & IFACE_TUNNEL_UDP ? IFACE_TUNNEL_CHECKSUM : 0;
	out->has_tunnel = true;
	out->route.hop = (struct fib_hop){.kind = FIB_PEER, .iface = IFACE_NONE};
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
	for (size_t i = 0; i < routes->n; i++) {
		struct fib_hop *hop = &routes->change[i].route.hop;

		if (hop->kind == FIB_PEER && hop->iface >= FIRST_TUNNEL)
			hop->iface = next->tunnel[hop->iface - FIRST_TUNNEL].iface;
	}
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

int tunnels_fill(const struct config *config, struct fib *fib, struct error *error)
{
	for (size_t i = 0; i < config->tunnels.n; i++) {
		const struct config_tunnel *tunnel = &config->tunnels.tunnel[i];
		struct iface iface = {.mtu = MTU, .has_peer = true, .tunnel = tunnel->settings};
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
			tunnel->flags & IFACE_TUNNEL_UDP ? "fou"
			: tunnel->kind == IFACE_GRE      ? "gre"
							 : "ipip",
			text);
		return true;
	}
	return false;
}
