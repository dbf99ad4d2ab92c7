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
	{"queues", FIELD(port_worker_settings, n_queues)},
	{"queues", FIELD(port_worker_settings, queues)},
	{"idle", FIELD(port_worker_settings, idle)},
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
};

static const char *differs(const struct field fields[], size_t n, const void *now, const void *next)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp((const char *)now + fields[i].offset,
			    (const char *)next + fields[i].offset, fields[i].size))
			return fields[i].key;
	return NULL;
}

const char *config_needs_restart(const struct config *now, const struct config *next)
{
	static char answer[96];
	const struct port_table_settings *a = &now->ports, *b = &next->ports;
	const char *key;

	if (a->n_ports != b->n_ports)
		return "ports";
	for (unsigned i = 0; i < a->n_ports; i++) {
		key = differs(port_fields, ARRAY_LEN(port_fields), &a->ports[i], &b->ports[i]);
		if (key) {
			snprintf(answer, sizeof(answer), "ports[%u].%s", i, key);
			return answer;
		}
	}
	for (unsigned i = 0; i < a->n_ports && now->taps.is_on; i++)
		if (a->ports[i].mtu != b->ports[i].mtu) {
			snprintf(answer, sizeof(answer), "ports[%u].mtu (or ip link set %s mtu %u)",
				i, a->ports[i].name, b->ports[i].mtu);
			return answer;
		}
	if (a->n_workers != b->n_workers)
		return "workers";
	for (unsigned i = 0; i < a->n_workers; i++) {
		key = differs(worker_fields, ARRAY_LEN(worker_fields), &a->workers[i],
			&b->workers[i]);
		if (key) {
			snprintf(answer, sizeof(answer), "workers[%u].%s", i, key);
			return answer;
		}
	}
	return differs(other_fields, ARRAY_LEN(other_fields), now, next);
}
