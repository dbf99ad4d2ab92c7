// Reads one port of the file. Control thread.
#include "config/inside.h"

#include "base/bits.h"
#include "base/quantity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(field)                                                                               \
	.size = sizeof(((struct port_settings *)0)->field),                                        \
	.offset = offsetof(struct port_settings, field)

enum { NAME_LETTERS = PORT_NAME_MAX - 1 };

static bool is_name(const char *text)
{
	size_t n =
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");

	return n && !text[n] && n <= NAME_LETTERS && strspn(text, "0123456789") < n;
}

static int read_name(struct reader *reader, const struct node *node, void *base)
{
	const struct config *config = reader->ctx;
	struct port_settings *port = base;
	char found[ROWS_FOUND_MAX];

	if (node->kind != NODE_TEXT || !is_name(node->text))
		return rows_mistake(reader, node->line,
			"%sname: found %s, expected 1 to %d letters, digits and -_., not digits "
			"alone",
			reader->where, rows_found(node, found), NAME_LETTERS);
	for (unsigned i = port_next(&config->ports, 0); i < config->ports.n_ports;
		i = port_next(&config->ports, i + 1))
		if (!strcmp(config->ports.ports[i].name, node->text))
			return rows_mistake(reader, node->line,
				"duplicate port name \"%s\" (first used in line %d); choose "
				"another",
				node->text, config->ports.ports[i].line);
	strcpy(port->name, node->text);
	return 0;
}

// Devices are compared without their arguments.
static int read_device(struct reader *reader, const struct node *node, void *base)
{
	const struct config *config = reader->ctx;
	struct port_settings *port = base;
	char found[ROWS_FOUND_MAX];
	size_t n = node->kind == NODE_TEXT ? strcspn(node->text, ",") : 0;

	if (port->device[0])
		return rows_mistake(reader, node->line,
			"%sdevice: the port has the key vhost, too; expected one of both",
			reader->where);
	if (!n || strlen(node->text) >= PORT_DEVICE_MAX)
		return rows_mistake(reader, node->line,
			"%sdevice: found %s, expected a PCI address or a DPDK device",
			reader->where, rows_found(node, found));
	for (unsigned i = port_next(&config->ports, 0); i < config->ports.n_ports;
		i = port_next(&config->ports, i + 1)) {
		const struct port_settings *other = &config->ports.ports[i];

		if (strcspn(other->device, ",") == n && !memcmp(other->device, node->text, n))
			return rows_mistake(reader, node->line,
				"duplicate device %.*s (first used in line %d); choose another",
				(int)MIN_OF(n, 60ul), node->text, other->line);
	}
	strcpy(port->device, node->text);
	return 0;
}

int mac_read(struct reader *reader, const struct node *node, struct wire_mac *mac,
	const char *or_else)
{
	char found[ROWS_FOUND_MAX];

	if (node->kind != NODE_TEXT || wire_mac_parse(node->text, mac))
		return rows_mistake(reader, node->line,
			"%s%s: found %s, expected a MAC address like 02:00:00:00:00:01%s",
			reader->where, node->key, rows_found(node, found), or_else);
	const char *no_box = mac_of_no_box(mac);
	if (no_box)
		return rows_mistake(reader, node->line,
			"%s%s: found the %s %s, expected a unicast MAC address", reader->where,
			node->key, no_box, node->text);
	return 0;
}

static int read_mac(struct reader *reader, const struct node *node, void *base)
{
	struct port_settings *port = base;

	if (node->kind == NODE_TEXT && !strcmp(node->text, "update")) {
		port->mac_update = true;
		return 0;
	}
	port->has_mac = true;
	return mac_read(reader, node, &port->mac, " or the word update");
}

static int read_peer(struct reader *reader, const struct node *node, void *base)
{
	struct port_settings *port = base;

	port->has_peer = true;
	return mac_read(reader, node, &port->peer, "");
}

struct wire_addr broadcast_of(const struct wire_prefix *prefix)
{
	struct wire_addr last = prefix->addr;

	for (unsigned bit = prefix->len; bit < 32; bit++)
		last.bytes[bit / 8] |= 0x80 >> bit % 8;
	return last;
}

// Why the address is not valid for a host, or NULL.
static const char *not_for_a_host(const struct wire_addr *addr, const struct wire_prefix *prefix)
{
	static const uint8_t none[15]; // the first 15 bytes of :: and ::1
	const uint8_t *b = addr->bytes;
	struct wire_addr last = broadcast_of(prefix);

	if (addr->family == 6)
		return b[0] == 0xff ? "a multicast address"
		       : !memcmp(b, none, sizeof(none)) && b[15] <= 1
		               ? "which cannot be assigned to a host"
		       : prefix->len < 127 && wire_addr_equal(addr, &prefix->addr)
		               ? "the address of the prefix itself"
		               : NULL;
	if (!b[0] || b[0] == 127 || b[0] >= 224)
		return "which cannot be assigned to a host";
	if (prefix->len > 30)
		return NULL;
	if (wire_addr_equal(addr, &last))
		return "the broadcast address of its prefix";
	return wire_addr_equal(addr, &prefix->addr) ? "the address of the prefix itself" : NULL;
}

// Parses one of our addresses: ADDRESS/LENGTH.
static int read_own_text(struct reader *reader, const struct node *node, struct own_address *own)
{
	char found[ROWS_FOUND_MAX];
	int err = node->kind == NODE_TEXT ? wire_prefix_parse(node->text, &own->prefix) : -EINVAL;

	if ((err && err != -ERANGE) || !own->prefix.len)
		return rows_mistake(reader, node->line,
			"%s: found %s, expected ADDRESS/LENGTH like 192.0.2.1/24 (length 1 to 32, "
			"IPv6 1 to 128)",
			reader->where, rows_found(node, found));
	own->addr = own->prefix.addr;
	wire_prefix_mask(&own->prefix);
	const char *wrong = not_for_a_host(&own->addr, &own->prefix);
	if (!wrong)
		return 0;
	return rows_mistake(reader, node->line, "%s: found %s, %s; expected the address of a host",
		reader->where, node->text, wrong);
}

static uint8_t last_byte(const struct wire_addr *addr)
{
	return addr->bytes[addr->family == 4 ? 3 : 15];
}

bool own_has(const struct config *config, const struct wire_addr *addr)
{
	uint8_t last = last_byte(addr);

	if (!(config->own_last_bytes[last / 8] & 1 << last % 8))
		return false;
	for (unsigned i = 0; i < config->n_own; i++)
		if (wire_addr_equal(&config->own[i].addr, addr))
			return true;
	return false;
}

static int read_own(struct reader *reader, const struct node *node, unsigned i)
{
	struct config *config = reader->ctx;
	struct own_address *own = &config->own[config->n_own];

	if (config->n_own == CONFIG_MAX_ADDRESSES)
		return rows_mistake(reader, node->line,
			"more than %d addresses in total; remove some", CONFIG_MAX_ADDRESSES);
	*own = (struct own_address){.port = config->reading, .line = node->line};
	int err = read_own_text(reader, node, own);
	if (err)
		return err;
	for (unsigned k = 0; k < config->n_own; k++) {
		const struct own_address *other = &config->own[k];
		bool same_prefix = other->prefix.len == own->prefix.len &&
		                   wire_addr_equal(&other->prefix.addr, &own->prefix.addr);

		if (other->port != own->port && wire_addr_is_link_local(&own->addr))
			continue;
		if (wire_addr_equal(&other->addr, &own->addr))
			return rows_mistake(reader, node->line,
				"%s: duplicate address %s (first used in line %d); remove one",
				reader->where, node->text, other->line);
		if (same_prefix && other->port != own->port)
			return rows_mistake(reader, node->line,
				"%s: the prefix of %s is already connected to another port (line "
				"%d); expected one port for each prefix",
				reader->where, node->text, other->line);
	}
	config->own_last_bytes[last_byte(&own->addr) / 8] |= 1 << last_byte(&own->addr) % 8;
	config->n_own++;
	return 0;
}

static int read_addresses(struct reader *reader, const struct node *node, void *base)
{
	return rows_each(reader, node, CONFIG_MAX_ADDRESSES, read_own);
}

static int read_generator_mac(struct reader *reader, const struct node *node, void *base)
{
	struct port_settings *port = base;

	port->has_mac = true;
	return mac_read(reader, node, &port->mac, "");
}

// Two ports may be in the same network: they may be connected through a switch.
static int read_generator_address(struct reader *reader, const struct node *node, unsigned i)
{
	struct config *config = reader->ctx;
	struct port_settings *port = &config->ports.ports[config->reading];
	struct own_address own;
	int err = read_own_text(reader, node, &own);

	if (err)
		return err;
	for (unsigned p = 0; p <= config->reading; p++)
		for (unsigned k = 0; k < config->ports.ports[p].n_addresses; k++)
			if (wire_addr_equal(&config->ports.ports[p].addresses[k].addr, &own.addr))
				return rows_mistake(reader, node->line,
					"%s: duplicate address %s; expected it once in all ports",
					reader->where, node->text);
	port->addresses[port->n_addresses++] = (struct wire_prefix){own.addr, own.prefix.len};
	return 0;
}

static int read_generator_addresses(struct reader *reader, const struct node *node, void *base)
{
	return rows_each(reader, node, PORT_MAX_ADDRESSES, read_generator_address);
}

static int read_gateway(struct reader *reader, const struct node *node, struct port_settings *port)
{
	struct wire_addr addr;
	char found[ROWS_FOUND_MAX];

	if (node->kind != NODE_TEXT || wire_addr_parse(node->text, &addr))
		return rows_mistake(reader, node->line,
			"%s: found %s, expected an address like 192.0.2.254 or 2001:db8::fe, or a "
			"list with one of each family",
			reader->where, rows_found(node, found));
	if (port->gateway[addr.family == 6].family)
		return rows_mistake(reader, node->line,
			"%s: found %s, a second IPv%u gateway; expected one of each family",
			reader->where, node->text, addr.family);
	port->gateway[addr.family == 6] = addr;
	return 0;
}

static int read_listed_gateway(struct reader *reader, const struct node *node, unsigned i)
{
	struct config *config = reader->ctx;

	return read_gateway(reader, node, &config->ports.ports[config->reading]);
}

static int read_gateways(struct reader *reader, const struct node *node, void *base)
{
	struct reader here = *reader;

	if (node->kind == NODE_LIST)
		return rows_each(reader, node, 2, read_listed_gateway);
	snprintf(here.where, sizeof(here.where), "%.50s%s", reader->where, node->key);
	return read_gateway(&here, node, base);
}

// Whether the port can reach the gateway directly; any link-local address if it has IPv6 at all.
static bool is_reachable(const struct port_settings *port, const struct wire_addr *gateway)
{
	bool is_link_local = gateway->family == 6 && wire_addr_is_link_local(gateway);

	for (unsigned i = 0; i < port->n_addresses; i++) {
		struct wire_prefix ours = port->addresses[i], theirs = {*gateway, ours.len};

		if (ours.addr.family != gateway->family)
			continue;
		bool is_own = wire_addr_equal(&ours.addr, gateway);
		wire_prefix_mask(&ours);
		wire_prefix_mask(&theirs);
		if (!is_own && (wire_addr_equal(&ours.addr, &theirs.addr) || is_link_local))
			return true;
	}
	return false;
}

static int check_gateways(struct reader *reader, const struct node *node,
	const struct port_settings *port)
{
	char text[WIRE_ADDR_TEXT];

	for (unsigned i = 0; i < 2; i++)
		if (port->gateway[i].family && !is_reachable(port, &port->gateway[i]))
			return rows_mistake(reader, node->line,
				"%s: no address in the network of gateway %s; expected one in "
				"\"addresses: [ADDRESS/LENGTH]\"",
				reader->where, wire_addr_print(&port->gateway[i], text));
	return 0;
}

static int read_line_rate(struct reader *reader, const struct node *node, void *base)
{
	struct port_settings *port = base;
	char found[ROWS_FOUND_MAX];
	const char *rest;
	double bps;

	if (node->kind == NODE_TEXT && quantity_number(node->text, &bps, &rest) &&
		quantity_unit(&rest, "bit/s", &bps) && !rest[0] && bps >= 1e6 && bps <= 1e13) {
		port->line_bps = bps;
		return 0;
	}
	return rows_mistake(reader, node->line,
		"%sline_rate: found %s, expected a rate like 100 Gbit/s (1 Mbit/s to 10 Tbit/s)",
		reader->where, rows_found(node, found));
}

static int read_storm(struct reader *reader, const struct node *node, void *base)
{
	return bridge_read_storm(reader, node, ((struct port_settings *)base)->storm_pps);
}

// Keys of ports in both programs.
#define KEYS_OF_ALL                                                                                \
	{"name", ROW_OTHER, .read = read_name}, {"device", ROW_OTHER, .read = read_device},        \
		{"mtu", ROW_NUMBER, FIELD(mtu), .min = 68, .max = 9600},                           \
		{"rx_descriptors", ROW_NUMBER, FIELD(n_rx_descriptors), .min = 32, .max = 32768},  \
	{                                                                                          \
		"tx_descriptors", ROW_NUMBER, FIELD(n_tx_descriptors), .min = 32, .max = 32768     \
	}

static const struct row forwarder_rows[] = {
	KEYS_OF_ALL,
	{"vhost", ROW_OTHER, .read = vhost_read_keys},
	{"mac", ROW_OTHER, .read = read_mac},
	{"peer", ROW_OTHER, .read = read_peer},
	{"addresses", ROW_OTHER, .read = read_addresses},
	{"queues", ROW_NUMBER, FIELD(n_queues), .min = 1, .max = PORT_MAX_QUEUES},
	{"mode", ROW_WORD, FIELD(mode), .words = "route|xconnect"},
	{"to", ROW_TEXT, FIELD(xconnect), .max = NAME_LETTERS},
	{"martians", ROW_WORD, FIELD(pass_martians), .words = "drop|pass"},
	{"storm", ROW_OTHER, .read = read_storm},
	{"rpf6", ROW_WORD, FIELD(rpf6), .words = "off|strict|loose"},
};
const struct key_table forwarder_port = {"ports", forwarder_rows, ARRAY_LEN(forwarder_rows)};

static const struct row generator_rows[] = {
	KEYS_OF_ALL,
	{"mac", ROW_OTHER, .read = read_generator_mac},
	{"line_rate", ROW_OTHER, .read = read_line_rate},
	{"addresses", ROW_OTHER, .read = read_generator_addresses},
	{"gateway", ROW_OTHER, .read = read_gateways},
};
const struct key_table generator_port = {"ports", generator_rows, ARRAY_LEN(generator_rows)};

// Checks keys that require or exclude each other.
static int check_together(struct reader *reader, const struct node *node,
	const struct config *config, unsigned i)
{
	const struct port_settings *port = &config->ports.ports[i];
	bool has_address = config->n_own && config->own[config->n_own - 1].port == i;

	if (!port->name[0] || !port->device[0])
		return rows_mistake(reader, node->line,
			"%s: missing key \"%s\"; expected a name and a device", reader->where,
			port->name[0] ? "device" : "name");
	if (port->mode == PORT_XCONNECT && !port->xconnect[0])
		return rows_mistake(reader, node->line,
			"%s: \"mode: xconnect\" without \"to\"; expected \"to: PORT\"",
			reader->where);
	if (port->mode == PORT_XCONNECT && has_address)
		return rows_mistake(reader, node->line,
			"%s: \"mode: xconnect\" with addresses; expected \"mode: route\"",
			reader->where);
	if (port->mode == PORT_ROUTE && (port->xconnect[0] || port->mac_update))
		return rows_mistake(reader, node->line,
			"%s: \"%s\" without \"mode: xconnect\"; add that, or remove it",
			reader->where, port->xconnect[0] ? "to" : "mac: update");
	return check_gateways(reader, node, port);
}

int port_read(struct reader *reader, const struct node *node, unsigned i)
{
	struct config *config = reader->ctx;
	struct port_settings *port = &config->ports.ports[i];

	config->reading = i;
	port->mtu = 1500;
	port->line = node->line;
	port->n_queues = config->program->n_queues;
	int err = rows_read(reader, node, config->program->port, port);
	if (!err)
		err = check_together(reader, node, config, i);
	if (!err)
		err = vhost_finish(reader, node, port);
	config->ports.n_ports = MAX_OF(config->ports.n_ports, i + 1);
	return err;
}
