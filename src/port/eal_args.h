// The argument list for rte_eal_init. Pure.
#pragma once

#include "port/plan.h"

#include <stdbool.h>

enum {
	EAL_ARGS_MAX = 2 * PORT_MAX_PLUGINS + 2 * PORT_MAX + PORT_MAX_EAL_ARGS + 24,
	EAL_ARGS_BYTES =
		32 * 1024 + (PORT_MAX_PLUGINS + PORT_MAX + PORT_MAX_EAL_ARGS) * PORT_DEVICE_MAX,
};

struct eal_args {
	int n, n_ours; // arguments from the file follow ours
	size_t used;
	char *argv[EAL_ARGS_MAX + 1];
	char text[EAL_ARGS_BYTES];
};

struct eal_memory {
	bool huge;
	unsigned mib;
	unsigned node_mib[PLAN_MAX_NODES];
};

// Worker k runs as its lcore on its core. lcore 0 is the control thread, on the allowed cores that
// no worker uses, or on all allowed ones if there are none. Only devices in the settings are
// probed, virtual ones in the order of the file. The file's own EAL arguments come last, so that
// they take precedence. `pid` distinguishes instances.
void eal_args_build(struct eal_args *args, const struct port_table_settings *settings,
	const struct plan_facts *facts, const struct plan *plan, const struct eal_memory *memory,
	int pid);
