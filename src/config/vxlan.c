// The key `vxlan` of a bridge: its VNI, and the remote ends that get floods. Control thread.
#include "config/inside.h"

#include "base/bits.h"
#include "fib/fib_fast.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MTU = 9600, DEFAULT_PORT = 4789, DEFAULT_TTL = 64 };

// While it is read.
struct parts {
	uint32_t vni;
	uint16_t port;
	uint8_t ttl, has_no_sum;
	const struct node *local, *remotes;
};

#define PARTS(field)                                                                               \
	.size = sizeof(((struct parts *)0)->field), .offset = offsetof(struct parts, field)

static const struct row rows[] = {
	{"vni", ROW_NUMBER, PARTS(vni), .min = 1, .max = IFACE_MAX_VNI},
	{"local", ROW_NODE, PARTS(local)},
	{"remotes", ROW_NODE, PARTS(remotes)},
	{"port", ROW_NUMBER, PARTS(port), .min = 1, .max = UINT16_MAX},
	{"ttl", ROW_NUMBER, PARTS(ttl), .min = 1, .max = UINT8_MAX},
	{"udp_checksum", ROW_WORD, PARTS(has_no_sum), .words = "on|off"},
};
const struct key_table vxlan_keys = {"bridges[i].vxlan", rows, ARRAY_LEN(rows)};

static struct config_vxlan *last(struct config *config)
{
	return &config->bridges.vxlan[config->bridges.n - 1];
}

static int read_addr(struct reader *reader, const struct node *node, struct wire_addr *out)
{
	char found[ROWS_FOUND_MAX];

	if (node->kind == NODE_TEXT && !wire_addr_parse(node->text, out))
		return 0;
	return rows_mistake(reader, node->line,
		"%svxlan: found %s, expected an address like 192.0.2.1 or 2001:db8::1",
		reader->where, rows_found(node, found));
}

static int read_remote(struct reader *reader, const struct node *node, unsigned i)
{
	struct config_vxlan *vxlan = last(reader->ctx);
	struct wire_addr *remote = &vxlan->remote[i];
	char text[WIRE_ADDR_TEXT];
	int err = read_addr(reader, node, remote);

	if (err)
		return err;
	wire_addr_print(remote, text);
	if (remote->family != vxlan->tunnel.local.family)
		return rows_mistake(reader, node->line,
			"%s: %s is not of the family of local; expected one that is", reader->where,
			text);
	if (own_has(reader->ctx, remote))
		return rows_mistake(reader, node->line,
			"%s: %s is an address of the router itself; expected a remote end",
			reader->where, text);
	for (unsigned k = 0; k < i; k++)
		if (wire_addr_equal(remote, &vxlan->remote[k]))
			return rows_mistake(reader, node->line, "%s: %s is there twice; remove one",
				reader->where, text);
	vxlan->n_remotes = i + 1;
	return 0;
}

// Workers receive on so many UDP ports.
static bool is_port_too_many(const struct config_bridges *bridges)
{
	uint16_t port[FIB_MAX_VXLAN_PORTS + 1];
	unsigned n = 0;

	for (unsigned i = 0; i < bridges->n && n <= FIB_MAX_VXLAN_PORTS; i++) {
		const struct iface_tunnel *tunnel = &bridges->vxlan[i].tunnel;
		unsigned k = 0;

		while (k < n && port[k] != tunnel->dest_port)
			k++;
		if (tunnel->kind && k == n)
			port[n++] = tunnel->dest_port;
	}
	return n > FIB_MAX_VXLAN_PORTS;
}

static int check(struct reader *reader, const struct node *node, struct config *config)
{
	const struct iface_tunnel *is = &last(config)->tunnel;

	if (!own_has(config, &is->local))
		return rows_mistake(reader, node->line,
			"%svxlan.local: no port has this address; expected one of those under "
			"ports",
			reader->where);
	for (unsigned i = 0; i + 1 < config->bridges.n; i++) {
		const struct iface_tunnel *other = &config->bridges.vxlan[i].tunnel;

		if (other->kind && other->key == is->key && other->dest_port == is->dest_port &&
			other->local.family == is->local.family)
			return rows_mistake(reader, node->line,
				"%svxlan: bridge \"%s\" has VNI %u on UDP port %u already; use "
				"another one",
				reader->where, config->bridges.bridge[i].name, is->key,
				is->dest_port);
	}
	if (is_port_too_many(&config->bridges))
		return rows_mistake(reader, node->line,
			"%svxlan.port: %u is one more UDP port than the %d that can be received "
			"on; use that of another bridge",
			reader->where, is->dest_port, FIB_MAX_VXLAN_PORTS);
	return 0;
}

int vxlan_read(struct reader *reader, const struct node *node, struct config *config)
{
	struct parts parts = {.port = DEFAULT_PORT, .ttl = DEFAULT_TTL};
	struct config_vxlan *vxlan = last(config);
	int err = rows_read(reader, node, &vxlan_keys, &parts);

	if (!err && (!parts.vni || !parts.local || !parts.remotes))
		err = rows_mistake(reader, node->line,
			"%svxlan: missing key \"%s\"; expected vni, local and remotes",
			reader->where,
			!parts.vni     ? "vni"
			: !parts.local ? "local"
				       : "remotes");
	if (!err)
		err = read_addr(reader, parts.local, &vxlan->tunnel.local);
	if (err)
		return err;
	vxlan->tunnel.kind = IFACE_VXLAN;
	vxlan->tunnel.key = parts.vni;
	vxlan->tunnel.dest_port = parts.port;
	vxlan->tunnel.ttl = parts.ttl;
	vxlan->tunnel.vxlan = config->bridges.n - 1;
	vxlan->tunnel.flags =
		IFACE_TUNNEL_ONLY_LOCAL | (parts.has_no_sum ? 0 : IFACE_TUNNEL_CHECKSUM);
	if (parts.has_no_sum && vxlan->tunnel.local.family == 6)
		vxlan->tunnel.flags |= IFACE_TUNNEL_ZERO_CHECKSUM;
	err = check(reader, node, config);
	if (err)
		return err;
	snprintf(reader->where + strlen(reader->where),
		sizeof(reader->where) - strlen(reader->where), "vxlan.");
	return rows_each(reader, parts.remotes, CONFIG_MAX_REMOTES, read_remote);
}

static bool is_taken(const struct config_bridges *bridges, unsigned n, uint16_t number)
{
	for (unsigned i = 0; i < n; i++)
		if (bridges->vxlan[i].tunnel.kind && bridges->vxlan[i].tunnel.vxlan == number)
			return true;
	return false;
}

// Whether the bridge had VXLAN before; its number.
static bool find_kept(const struct config_bridges *now, const char *name, uint16_t *number)
{
	for (unsigned i = 0; i < now->n; i++)
		if (now->vxlan[i].tunnel.kind && !strcmp(now->bridge[i].name, name)) {
			*number = now->vxlan[i].tunnel.vxlan;
			return true;
		}
	return false;
}

void vxlans_place(struct config_bridges *next, const struct config_bridges *now)
{
	for (unsigned is_new = 0; is_new < 2; is_new++)
		for (unsigned i = 0; i < next->n; i++) {
			uint16_t *number = &next->vxlan[i].tunnel.vxlan;
			const bool is_kept = find_kept(now, next->bridge[i].name, number);

			if (!next->vxlan[i].tunnel.kind || is_kept)
				continue;
			*number = IFACE_MAX_VXLANS - 1;
			for (uint16_t k = 0; is_new && k < IFACE_MAX_VXLANS; k++)
				if (!is_taken(now, now->n, k) && !is_taken(next, next->n, k)) {
					*number = k;
					break;
				}
		}
}

int vxlans_fill(const struct config *config, struct fib *fib, struct error *error)
{
	for (unsigned i = 0; i < config->bridges.n; i++) {
		const struct config_vxlan *vxlan = &config->bridges.vxlan[i];
		const struct iface iface = {.mtu = MTU, .is_bridge = true, .tunnel = vxlan->tunnel};

		if (vxlan->tunnel.kind &&
			fib_iface_set(fib, CONFIG_FIRST_VXLAN + vxlan->tunnel.vxlan, &iface))
			return error_set(error, -ENOSPC,
				"%s: no space for the VXLAN device of bridge \"%s\"", config->path,
				config->bridges.bridge[i].name);
	}
	return 0;
}

const struct config_vxlan *config_vxlan(const struct config *config, unsigned bridge)
{
	const struct config_vxlan *vxlan = &config->bridges.vxlan[bridge];

	return vxlan->tunnel.kind ? vxlan : NULL;
}
