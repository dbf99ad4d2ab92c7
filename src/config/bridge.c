// The key `bridges`: their ports, static addresses, limits and storm control. Control thread.
#include "config/inside.h"

#include "base/bits.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_AGEING_S = 1000000, MAX_PPS = 100000000, NAME_LETTERS = MAC_NAME_MAX - 1 };

static int no_memory(const struct reader *reader)
{
	return error_set(reader->error, -ENOMEM, "%s: not enough memory to read the file",
		reader->file);
}

// The bridge being read is the last one.
static struct mac_bridge *last_bridge(struct config *config)
{
	return &config->bridges.bridge[config->bridges.n - 1];
}

// A member while it is read.
struct member {
	char port[PORT_NAME_MAX];
	uint8_t is_deaf, is_dry, is_isolated, is_hairpin; // words
	uint32_t max_macs;
};

#define MEMBER(field)                                                                              \
	.size = sizeof(((struct member *)0)->field), .offset = offsetof(struct member, field)

static const struct row member_rows[] = {
	{"port", ROW_TEXT, MEMBER(port), .max = NAME_LETTERS},
	{"learning", ROW_WORD, MEMBER(is_deaf), .words = "on|off"},
	{"flood", ROW_WORD, MEMBER(is_dry), .words = "on|off"},
	{"isolated", ROW_WORD, MEMBER(is_isolated), .words = "off|on"},
	{"hairpin", ROW_WORD, MEMBER(is_hairpin), .words = "off|on"},
	{"max_macs", ROW_NUMBER, MEMBER(max_macs), .min = 0, .max = MAC_MAX},
};
static const struct key_table member_table = {"bridges[i].ports[i]", member_rows,
	ARRAY_LEN(member_rows)};

static int find_port(struct reader *reader, int line, const char *name)
{
	const struct config *config = reader->ctx;
	int port = name[0] ? port_find(&config->ports, name, strlen(name)) : -1;

	if (port < 0)
		rows_mistake(reader, line,
			"%s: unknown port \"%s\"; expected one of the names under ports",
			reader->where, name);
	return port;
}

const char *config_bridge_of(const struct config *config, unsigned port)
{
	for (unsigned i = 0; i < config->bridges.n; i++) {
		const struct mac_bridge *bridge = &config->bridges.bridge[i];

		for (unsigned k = 0; k < bridge->n_members; k++)
			if (bridge->member[k].port == port)
				return bridge->name;
	}
	return NULL;
}

static bool has_addresses(const struct config *config, unsigned port)
{
	for (unsigned i = 0; i < config->n_own; i++)
		if (config->own[i].port == port)
			return true;
	return false;
}

// Whether the port may be in the bridge that is being read.
static int check_member(struct reader *reader, int line, unsigned port)
{
	const struct config *config = reader->ctx;
	const char *name = config->ports.ports[port].name, *other = config_bridge_of(config, port);

	if (other)
		return rows_mistake(reader, line,
			"%s: port \"%s\" is in bridge \"%s\" already; remove it there or here",
			reader->where, name, other);
	if (config->ports.ports[port].mode == PORT_XCONNECT)
		return rows_mistake(reader, line,
			"%s: port \"%s\" has mode: xconnect, and a port cannot be in a bridge, "
			"too; remove one of them",
			reader->where, name);
	if (has_addresses(config, port))
		return rows_mistake(reader, line,
			"%s: port \"%s\" has addresses, but a port of a bridge does not route; "
			"remove them, or the port here",
			reader->where, name);
	return 0;
}

static uint8_t flags_of(const struct member *member)
{
	return (member->is_deaf ? 0 : MAC_LEARNS) | (member->is_dry ? 0 : MAC_FLOODS) |
	       (member->is_isolated ? MAC_ISOLATED : 0) | (member->is_hairpin ? MAC_HAIRPIN : 0);
}

static int read_member(struct reader *reader, const struct node *node, unsigned i)
{
	struct config *config = reader->ctx;
	struct mac_bridge *bridge = last_bridge(config);
	struct member member = {.max_macs = 0};
	const bool is_name = node->kind == NODE_TEXT;
	int err = is_name ? 0 : rows_read(reader, node, &member_table, &member);

	if (err)
		return err;
	const int port = find_port(reader, node->line, is_name ? node->text : member.port);
	if (port < 0)
		return -EINVAL;
	err = check_member(reader, node->line, port);
	if (err)
		return err;
	bridge->member[bridge->n_members] = (struct mac_member){.port = port,
		.flags = flags_of(&member),
		.max = member.max_macs};
	memcpy(bridge->member[bridge->n_members++].storm_pps, config->ports.ports[port].storm_pps,
		sizeof(bridge->member->storm_pps));
	return 0;
}

static int read_members(struct reader *reader, const struct node *node, struct mac_bridge *bridge)
{
	bridge->member = calloc(PORT_MAX, sizeof(*bridge->member));
	return bridge->member ? rows_each(reader, node, PORT_MAX, read_member) : no_memory(reader);
}

struct fixed {
	struct wire_mac mac;
	bool has_mac;
	char port[PORT_NAME_MAX];
};

static int read_fixed_mac(struct reader *reader, const struct node *node, void *base)
{
	struct fixed *fixed = base;

	fixed->has_mac = true;
	return mac_read(reader, node, &fixed->mac, "");
}

static const struct row fixed_rows[] = {
	{"mac", ROW_OTHER, .read = read_fixed_mac},
	{"port", ROW_TEXT, .size = PORT_NAME_MAX, .offset = offsetof(struct fixed, port),
		.max = NAME_LETTERS},
};
static const struct key_table fixed_table = {"bridges[i].macs[i]", fixed_rows,
	ARRAY_LEN(fixed_rows)};

static int read_fixed(struct reader *reader, const struct node *node, unsigned i)
{
	struct config *config = reader->ctx;
	struct mac_bridge *bridge = last_bridge(config);
	struct fixed fixed = {.has_mac = false};
	int err = rows_read(reader, node, &fixed_table, &fixed);

	if (!err && (!fixed.has_mac || !fixed.port[0]))
		err = rows_mistake(reader, node->line,
			"%s: missing key \"%s\"; expected mac and port", reader->where,
			fixed.has_mac ? "port" : "mac");
	if (err)
		return err;
	const int port = find_port(reader, node->line, fixed.port);
	if (port < 0)
		return -EINVAL;
	const char *of = config_bridge_of(config, port);
	if (!of || strcmp(of, bridge->name))
		return rows_mistake(reader, node->line,
			"%s: port \"%s\" is not in this bridge; expected one of its ports",
			reader->where, fixed.port);
	if (i == bridge->max)
		return rows_mistake(reader, node->line,
			"%s: more addresses than max_macs, %u; raise it, or remove some",
			reader->where, bridge->max);
	bridge->fixed[bridge->n_fixed++] = (struct mac_fixed){fixed.mac, port, 0, false};
	return 0;
}

static int compare_fixed(const void *a, const void *b)
{
	return memcmp(((const struct mac_fixed *)a)->mac.bytes,
		((const struct mac_fixed *)b)->mac.bytes, sizeof(struct wire_mac));
}

static int read_all_fixed(struct reader *reader, const struct node *node, struct mac_bridge *bridge)
{
	char text[WIRE_MAC_TEXT];

	bridge->fixed = calloc(bridge->max, sizeof(*bridge->fixed));
	if (!bridge->fixed)
		return no_memory(reader);
	int err = rows_each(reader, node, TREE_MAX_NODES, read_fixed);
	if (err)
		return err;
	qsort(bridge->fixed, bridge->n_fixed, sizeof(*bridge->fixed), compare_fixed);
	for (uint32_t i = 1; i < bridge->n_fixed; i++)
		if (!compare_fixed(&bridge->fixed[i - 1], &bridge->fixed[i]))
			return rows_mistake(reader, node->line,
				"bridge \"%s\": macs has %s twice; remove one", bridge->name,
				wire_mac_print(&bridge->fixed[i].mac, text));
	return 0;
}

// A bridge while it is read; `ports` come before `macs`.
struct parts {
	char name[MAC_NAME_MAX];
	uint32_t ageing, max_macs;
	const struct node *ports, *macs, *storm, *vxlan;
};

#define PARTS(field)                                                                               \
	.size = sizeof(((struct parts *)0)->field), .offset = offsetof(struct parts, field)

static const struct row bridge_rows[] = {
	{"name", ROW_TEXT, PARTS(name), .max = NAME_LETTERS},
	{"ports", ROW_NODE, PARTS(ports)},
	{"ageing", ROW_NUMBER, PARTS(ageing), .min = 1, .max = MAX_AGEING_S},
	{"max_macs", ROW_NUMBER, PARTS(max_macs), .min = 1, .max = MAC_MAX},
	{"macs", ROW_NODE, PARTS(macs)},
	{"storm", ROW_NODE, PARTS(storm)},
	{"vxlan", ROW_NODE, PARTS(vxlan)},
};
static const struct key_table bridge_table = {"bridges[i]", bridge_rows, ARRAY_LEN(bridge_rows)};

#define STORM(kind) .size = sizeof(uint32_t), .offset = (kind) * sizeof(uint32_t)

static const struct row storm_rows[] = {
	{"broadcast", ROW_NUMBER, STORM(MAC_BROADCAST), .min = 1, .max = MAX_PPS},
	{"multicast", ROW_NUMBER, STORM(MAC_MULTICAST), .min = 1, .max = MAX_PPS},
	{"unknown", ROW_NUMBER, STORM(MAC_UNKNOWN), .min = 1, .max = MAX_PPS},
};
static const struct key_table storm_table = {"bridges[i].storm", storm_rows, ARRAY_LEN(storm_rows)};

int bridge_read_storm(struct reader *reader, const struct node *node, uint32_t pps[MAC_STORMS])
{
	return rows_read(reader, node, &storm_table, pps);
}
static_assert((int)PORT_STORMS == (int)MAC_STORMS, "each has a limit");

const struct key_table *bridge_tables(unsigned i)
{
	const struct key_table *const tables[] = {&bridge_table, &member_table, &fixed_table,
		&storm_table, &vxlan_keys};

	static_assert(ARRAY_LEN(tables) == N_BRIDGE_TABLES, "all of them");
	return i < N_BRIDGE_TABLES ? tables[i] : NULL;
}

static int check_parts(struct reader *reader, const struct node *node, const struct config *config,
	const struct parts *parts)
{
	if (!parts->name[0] || !parts->ports)
		return rows_mistake(reader, node->line,
			"%s: missing key \"%s\"; expected a name and ports", reader->where,
			parts->name[0] ? "ports" : "name");
	for (unsigned i = 0; i < config->bridges.n; i++)
		if (!strcmp(config->bridges.bridge[i].name, parts->name))
			return rows_mistake(reader, node->line,
				"%s: duplicate bridge name \"%s\"; choose another", reader->where,
				parts->name);
	return 0;
}

static int read_bridge(struct reader *reader, const struct node *node, unsigned i)
{
	struct config *config = reader->ctx;
	struct parts parts = {.ageing = MAC_DEFAULT_AGEING_S, .max_macs = MAC_DEFAULT_MAX};
	int err = rows_read(reader, node, &bridge_table, &parts);

	if (!err)
		err = check_parts(reader, node, config, &parts);
	if (err)
		return err;
	struct mac_bridge *bridge = &config->bridges.bridge[config->bridges.n++];
	memcpy(bridge->name, parts.name, sizeof(bridge->name));
	bridge->ageing_s = parts.ageing;
	bridge->max = parts.max_macs;
	snprintf(reader->where, sizeof(reader->where), "bridges[%u].", i);
	err = read_members(reader, parts.ports, bridge);
	if (!err && parts.storm)
		err = bridge_read_storm(reader, parts.storm, bridge->storm_pps);
	if (!err && parts.vxlan) {
		snprintf(reader->where, sizeof(reader->where), "bridges[%u].", i);
		err = vxlan_read(reader, parts.vxlan, config);
	}
	if (!err && parts.macs)
		err = read_all_fixed(reader, parts.macs, bridge);
	return err;
}

int bridges_read(struct reader *reader, const struct node *node, struct config *config)
{
	uint64_t max = 0;

	config->bridges.bridge = calloc(MAC_BRIDGES, sizeof(*config->bridges.bridge));
	if (!config->bridges.bridge)
		return no_memory(reader);
	int err = rows_each(reader, node, MAC_BRIDGES, read_bridge);

	for (unsigned i = 0; i < config->bridges.n; i++)
		max += config->bridges.bridge[i].max;
	if (!err && max > MAC_MAX)
		err = rows_mistake(reader, node->line,
			"bridges: max_macs of all bridges are %llu together, expected at most %d",
			(unsigned long long)max, MAC_MAX);
	return err;
}

void bridges_free(struct config_bridges *bridges)
{
	for (unsigned i = 0; i < bridges->n; i++) {
		free(bridges->bridge[i].member);
		free(bridges->bridge[i].fixed);
	}
	free(bridges->bridge);
}

static void *copy_bytes(const void *from, size_t bytes)
{
	void *to = malloc(MAX_OF(bytes, (size_t)1));

	if (to && bytes)
		memcpy(to, from, bytes);
	return to;
}

int bridges_copy(struct config_bridges *to, const struct config_bridges *from)
{
	to->bridge = calloc(MAC_BRIDGES, sizeof(*to->bridge));
	memcpy(to->vxlan, from->vxlan, sizeof(to->vxlan));
	for (unsigned i = 0; to->bridge && i < from->n; i++) {
		struct mac_bridge *bridge = &to->bridge[to->n++];

		*bridge = from->bridge[i];
		bridge->member =
			copy_bytes(bridge->member, bridge->n_members * sizeof(*bridge->member));
		bridge->fixed = copy_bytes(bridge->fixed, bridge->n_fixed * sizeof(*bridge->fixed));
		if (!bridge->member || !bridge->fixed)
			return -ENOMEM;
	}
	return to->bridge ? 0 : -ENOMEM;
}

void bridges_renumber(struct config_bridges *bridges, const int to[])
{
	for (unsigned i = 0; i < bridges->n; i++) {
		struct mac_bridge *bridge = &bridges->bridge[i];

		for (unsigned k = 0; k < bridge->n_members; k++)
			bridge->member[k].port = to[bridge->member[k].port];
		for (uint32_t k = 0; k < bridge->n_fixed; k++)
			bridge->fixed[k].port = to[bridge->fixed[k].port];
	}
}

const struct mac_bridge *config_bridges(const struct config *config, unsigned *n)
{
	*n = config->bridges.n;
	return config->bridges.bridge;
}
