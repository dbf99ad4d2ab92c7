// Builds EAL's argument list from settings and plan.
#include "port/eal_args.h"

#include "port/kind.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void add(struct eal_args *args, const char *format,
	...)
{
	size_t room = sizeof(args->text) - args->used;
	char *at = args->text + args->used;
	va_list list;

	assert(args->n < EAL_ARGS_MAX);
	va_start(list, format);
	int n = vsnprintf(at, room, format, list);
	va_end(list);
	assert(n >= 0 && (size_t)n < room);
	args->argv[args->n++] = at;
	args->used += n + 1;
}

static bool is_worker_core(const struct plan *plan, int core)
{
	for (unsigned i = 0; i < plan->n_workers; i++)
		if (plan->workers[i].core == core)
			return true;
	return false;
}

// Writes the allowed cores, such as "0,3,4", without those of the plan's workers (NULL: all of
// them). Returns their number.
static unsigned list_cores(char *text, size_t size, const struct plan_facts *facts,
	const struct plan *without)
{
	unsigned n = 0;
	size_t used = 0;

	text[0] = 0;
	for (unsigned c = 0; c < facts->n_cores; c++) {
		if (!facts->cores[c].online || !facts->cores[c].allowed)
			continue;
		if (without && is_worker_core(without, c))
			continue;
		used += snprintf(text + used, size - used, "%s%u", n++ ? "," : "", c);
		assert(used < size);
	}
	return n;
}

static void add_cores(struct eal_args *args, const struct plan_facts *facts,
	const struct plan *plan)
{
	char control[5 * PLAN_MAX_CORES], workers[16 * STATS_MAX_WORKERS] = "";
	size_t used = 0;

	if (!list_cores(control, sizeof(control), facts, plan))
		list_cores(control, sizeof(control), facts, NULL);
	for (unsigned i = 0; i < plan->n_workers; i++)
		used += snprintf(workers + used, sizeof(workers) - used, ",%u@%d",
			plan->workers[i].lcore, plan->workers[i].core);
	add(args, "--lcores=0@(%s)%s", control, workers);
	add(args, "--main-lcore=0");
}

static void add_devices(struct eal_args *args, const struct port_table_settings *settings)
{
	struct kind kind;
	bool any_bus = false;

	for (unsigned i = 0; i < settings->n_ports; i++) {
		const char *device = settings->ports[i].device;

		kind_read(device, &kind);
		if (kind.bus == KIND_VIRTUAL) {
			add(args, "--vdev=%s", device);
			continue;
		}
		any_bus = true;
		add(args, "-a");
		add(args, "%s%s", kind.name, device + strcspn(device, ","));
	}
	if (any_bus)
		return;
	add(args, "--no-pci");
	add(args, "--iova-mode=va");
}

static void add_memory(struct eal_args *args, const struct plan_facts *facts,
	const struct eal_memory *memory)
{
	char nodes[12 * PLAN_MAX_NODES];
	size_t used = 0;
	int top = 0;

	for (unsigned c = 0; c < facts->n_cores; c++)
		if (facts->cores[c].numa > top)
			top = facts->cores[c].numa;
	if (!memory->huge) {
		// Without shared configuration no files are left in the runtime directory.
		add(args, "--no-huge");
		add(args, "--no-shconf");
	} else {
		add(args, "--in-memory");
		// One file for all pages of a node: vhost-user supports at most eight.
		add(args, "--single-file-segments");
	}
	if (!memory->huge || top == 0) {
		add(args, "-m");
		add(args, "%u", memory->mib);
		return;
	}
	for (int node = 0; node <= top; node++)
		used += snprintf(nodes + used, sizeof(nodes) - used, "%s%u", node ? "," : "",
			memory->node_mib[node]);
	add(args, "--socket-mem=%s", nodes);
}

void eal_args_build(struct eal_args *args, const struct port_table_settings *settings,
	const struct plan_facts *facts, const struct plan *plan, const struct eal_memory *memory,
	int pid)
{
	args->n = 0;
	args->used = 0;
	add(args, "dl3d");
	add_cores(args, facts, plan);
	add_memory(args, facts, memory);
	add(args, "--file-prefix=dl3d-%d", pid);
	add(args, "--no-telemetry");
	add(args, "--log-level=warning");
	add_devices(args, settings);
	for (unsigned i = 0; i < settings->n_plugins; i++) {
		add(args, "-d");
		add(args, "%s", settings->plugins[i]);
	}
	args->n_ours = args->n;
	for (unsigned i = 0; i < settings->n_eal_args; i++)
		add(args, "%s", settings->eal_args[i]);
	args->argv[args->n] = NULL;
}
