// The key `vhost` of a port: the short form of a net_vhost. Control thread.
#include "config/inside.h"

#include "base/bits.h"

#include <stdio.h>
#include <string.h>

enum { SOCKET_BYTES = 108, PREFIX_BYTES = 32 };

struct keys {
	char socket[SOCKET_BYTES];
	uint8_t is_server, has_offloads;
	uint16_t n_queues, mtu;
};

#define FIELD(field)                                                                               \
	.size = sizeof(((struct keys *)0)->field), .offset = offsetof(struct keys, field)

static const struct row rows[] = {
	{"socket", ROW_TEXT, FIELD(socket), .max = SOCKET_BYTES - 1},
	{"mode", ROW_WORD, FIELD(is_server), .words = "client|server"},
	{"queues", ROW_NUMBER, FIELD(n_queues), .min = 1, .max = PORT_MAX_QUEUES},
	{"offloads", ROW_WORD, FIELD(has_offloads), .words = "off|on"},
	{"mtu", ROW_NUMBER, FIELD(mtu), .min = 68, .max = 9600},
};
const struct key_table vhost_keys = {"ports.vhost", rows, ARRAY_LEN(rows)};

// DPDK splits the arguments of a device at commas, and puts them together in brackets.
int vhost_read_keys(struct reader *reader, const struct node *node, void *base)
{
	struct port_settings *port = base;
	struct keys keys = {.n_queues = 1};

	if (port->device[0])
		return rows_mistake(reader, node->line,
			"%svhost: the port has a device, too; expected one of both", reader->where);
	int err = rows_read(reader, node, &vhost_keys, &keys);
	if (err)
		return err;
	if (keys.socket[0] != '/' || strpbrk(keys.socket, ",[]"))
		return rows_mistake(reader, node->line,
			"%svhost.socket: found \"%s\", expected an absolute path without commas "
			"and "
			"brackets",
			reader->where, keys.socket);
	snprintf(port->device, sizeof(port->device), ",iface=%s,queues=%u,client=%d%s", keys.socket,
		keys.n_queues, !keys.is_server, keys.has_offloads ? ",tso=1" : "");
	if (keys.mtu)
		port->mtu = keys.mtu;
	return 0;
}

static const struct node *find(const struct node *map, const char *key)
{
	const struct node *child = map->first;

	while (child && strcmp(child->key, key) != 0)
		child = child->next;
	return child;
}

// A device's name must stay the same while others come and go, so it has the port's.
int vhost_finish(struct reader *reader, const struct node *node, struct port_settings *port)
{
	char arguments[PORT_DEVICE_MAX - PREFIX_BYTES];
	const struct node *vhost = find(node, "vhost"), *mtu = find(node, "mtu");

	if (!vhost)
		return 0;
	if (mtu && find(vhost, "mtu"))
		return rows_mistake(reader, mtu->line, "%s: mtu is in vhost, too; expected it once",
			reader->where);
	snprintf(arguments, sizeof(arguments), "%.*s", PORT_DEVICE_MAX - PREFIX_BYTES - 1,
		port->device);
	snprintf(port->device, sizeof(port->device), "net_vhost0_%s%s", port->name, arguments);
	return 0;
}
