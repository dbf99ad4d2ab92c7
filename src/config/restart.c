// Table of the settings that cannot change at run time. Control thread.
#include "config/inside.h"

#include "base/bits.h"

#include <stdio.h>
#include <string.h>

#define FIELD(type, field) offsetof(struct type, field), sizeof(((struct type *)0)->field)

// Fields to compare bytewise; all memory of a configuration is initially zero. A key may have
// several.
struct field {
	const char *key;
	size_t offset, size;
};

static const struct field port_fields[] = {
	{"name", FIELD(port_settings, name)},
	{"device", FIELD(port_settings, device)},
	{"mac", FIELD(port_settings, mac)},
	{"mac", FIELD(port_settings, has_mac)},
	{"mac", FIELD(port_settings, mac_update)},
	{"mode", FIELD(port_settings, mode)},
	{"to", FIELD(port_settings, xconnect)},
	{"queues", FIELD(port_settings, n_queues)},
	{"rx_descriptors", FIELD(port_settings, n_rx_descriptors)},
	{"tx_descriptors", FIELD(port_settings, n_tx_descriptors)},
};

static const struct field worker_fields[] = {
	{"core", FIELD(port_worker_settings, core)},
	{"idle", FIELD(port_worker_settings, idle)},
	{"receives", FIELD(port_worker_settings, receives_nothing)},
	{"hands_to", FIELD(port_worker_settings, n_hands_to)},
	{"hands_to", FIELD(port_worker_settings, hands_to)},
	{"shapes", FIELD(port_worker_settings, shapes)},
};

static const struct field other_fields[] = {
	{"burst", FIELD(config, ports.burst)},
	{"idle", FIELD(config, ports.idle)},
	{"memory.hugepages", FIELD(config, ports.huge)},
	{"memory.mib", FIELD(config, ports.memory_mib)},
	{"eal.args", FIELD(config, ports.n_eal_args)},
	{"eal.args", FIELD(config, ports.eal_args)},
	{"eal.plugins", FIELD(config, ports.n_plugins)},
	{"eal.plugins", FIELD(config, ports.plugins)},
	{"control.socket", FIELD(config, socket)},
	{"control.group", FIELD(config, group)},
	{"linux", FIELD(config, taps.is_on)},
	{"linux.namespace", FIELD(config, taps.namespace_name)},
	{"linux.keep", FIELD(config, taps.keep)},
	{"flow.ipv4", FIELD(config, flow.max4)},
	{"flow.ipv6", FIELD(config, flow.max6)},
	{"qos", FIELD(config, qos.is_on)},
	{"qos.held_packets", FIELD(config, qos.held_packets)},
};

static const char *differs(const struct field fields[], size_t n, const void *now, const void *next)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp((const char *)now + fields[i].offset,
			    (const char *)next + fields[i].offset, fields[i].size))
			return fields[i].key;
	return NULL;
}

static bool has_port(const struct port_table_settings *ports, const char *name)
{
	for (unsigned i = port_next(ports, 0); i < ports->n_ports; i = port_next(ports, i + 1))
		if (!strcmp(ports->ports[i].name, name))
			return true;
	return false;
}

// The next queue of a worker, from `k` on, on a port that `other` has, too; n_queues: none.
static unsigned next_queue(const struct port_worker_settings *worker, unsigned k,
	const struct port_table_settings *other)
{
	while (k < worker->n_queues && !has_port(other, worker->queues[k].port))
		k++;
	return k;
}

// Whether a worker polls the same queues of the ports that remain.
static bool same_queues(const struct port_table_settings *a, const struct port_table_settings *b,
	unsigned worker)
{
	const struct port_worker_settings *mine = &a->workers[worker], *other = &b->workers[worker];
	unsigned i = next_queue(mine, 0, b), k = next_queue(other, 0, a);

	// A worker without a list takes its share of all queues.
	if (!mine->n_queues != !other->n_queues)
		return false;
	for (; i < mine->n_queues && k < other->n_queues;
		i = next_queue(mine, i + 1, b), k = next_queue(other, k + 1, a))
		if (mine->queues[i].queue != other->queues[k].queue ||
			strcmp(mine->queues[i].port, other->queues[k].port))
			return false;
	return i >= mine->n_queues && k >= other->n_queues;
}

static bool same_device(const struct port_settings *a, const struct port_settings *b)
{
	size_t n = strcspn(a->device, ",");

	return strcspn(b->device, ",") == n && !memcmp(a->device, b->device, n);
}

// The name of a port that is to be added with the device of one that is to be removed: it would
// have to be closed first.
static const char *find_taken_over(const struct port_table_settings *a,
	const struct port_table_settings *b)
{
	static char answer[32];

	for (unsigned i = port_next(b, 0); i < b->n_ports; i = port_next(b, i + 1))
		for (unsigned k = port_next(a, 0); k < a->n_ports; k = port_next(a, k + 1)) {
			if (port_is_configured(a, i) || !same_device(&a->ports[k], &b->ports[i]))
				continue;
			snprintf(answer, sizeof(answer), "ports[%u].name", k);
			return answer;
		}
	return NULL;
}

const char *config_needs_restart(const struct config *now, const struct config *next)
{
	static char answer[96];
	const struct port_table_settings *a = &now->ports, *b = &next->ports;
	const char *key;

	key = find_taken_over(a, b);
	if (key)
		return key;
	for (unsigned i = 0; i < a->n_ports; i++) {
		if (!port_is_configured(a, i) || !port_is_configured(b, i))
			continue;
		key = differs(port_fields, ARRAY_LEN(port_fields), &a->ports[i], &b->ports[i]);
		if (key) {
			snprintf(answer, sizeof(answer), "ports[%u].%s", i, key);
			return answer;
		}
	}
	for (unsigned i = 0; i < a->n_ports && now->taps.is_on; i++)
		if (port_is_configured(a, i) && port_is_configured(b, i) &&
			a->ports[i].mtu != b->ports[i].mtu) {
			snprintf(answer, sizeof(answer), "ports[%u].mtu (or ip link set %s mtu %u)",
				i, a->ports[i].name, b->ports[i].mtu);
			return answer;
		}
	if (a->n_workers != b->n_workers)
		return "workers";
	for (unsigned i = 0; i < a->n_workers; i++) {
		key = differs(worker_fields, ARRAY_LEN(worker_fields), &a->workers[i],
			&b->workers[i]);
		if (!key && !same_queues(a, b, i))
			key = "receives";
		if (key) {
			snprintf(answer, sizeof(answer), "workers[%u].%s", i, key);
			return answer;
		}
	}
	return differs(other_fields, ARRAY_LEN(other_fields), now, next);
}
