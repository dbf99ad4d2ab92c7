// Reads /sys and the scheduler. Collects facts only; decisions are made in plan.c.
#include "port/facts.h"

#include "base/bits.h"
#include "port/cgroup.h"
#include "port/kind.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

// The shortest frame in a capture file: a record header and an Ethernet header.
enum { PCAP_RECORD_BYTES = 16, SHORTEST_FRAME_BYTES = 14 };

// The first number in the file, or `otherwise`.
static long read_number(const char *path, long otherwise)
{
	FILE *file = fopen(path, "re");
	long value;

	if (!file)
		return otherwise;
	if (fscanf(file, "%ld", &value) != 1)
		value = otherwise;
	fclose(file);
	return value;
}

static int read_core_numa(unsigned core)
{
	char path[96];
	struct stat st;

	for (int node = 0; node < PLAN_MAX_NODES; node++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/node%d", core, node);
		if (stat(path, &st) == 0)
			return node;
	}
	return 0;
}

static void read_cores(struct plan_facts *facts)
{
	cpu_set_t allowed;
	char path[96];
	struct stat st;

	CPU_ZERO(&allowed);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (unsigned c = 0; c < PLAN_MAX_CORES && c < CPU_SETSIZE; c++) {
		struct plan_core *core = &facts->cores[c];

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u", c);
		core->exists = stat(path, &st) == 0 || CPU_ISSET(c, &allowed);
		if (!core->exists)
			continue;
		facts->n_cores = c + 1;
		// The boot core often has no such file: it cannot be taken offline.
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", c);
		core->online = read_number(path, 1) == 1;
		core->allowed = CPU_ISSET(c, &allowed);
		core->numa = read_core_numa(c);
	}
}

void facts_read_device(struct plan_device *device, const char *text)
{
	struct kind kind;
	char path[160];

	kind_read(text, &kind);
	memset(device, 0, sizeof(*device));
	device->numa = -1;
	device->n_rx_own = kind.n_rx;
	device->n_rx_most = kind.n_rx_most;
	device->hashes = true;
	device->is_steered = kind.is_vhost;
	device->tx_like_rx = kind.bus == KIND_VIRTUAL && kind.tx == KIND_TX_LIKE_RX;
	if (kind.bus != KIND_PCI)
		return;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", kind.name);
	device->numa = read_number(path, -1);
}

void facts_read(struct plan_facts *facts, const struct port_table_settings *settings)
{
	memset(facts, 0, sizeof(*facts));
	read_cores(facts);
	for (unsigned i = 0; i < settings->n_ports; i++)
		facts_read_device(&facts->devices[i], settings->ports[i].device);
}

void facts_read_pages(struct facts_pages *pages)
{
	static const unsigned sizes_kib[] = {2048, 1048576};
	char path[96];

	memset(pages, 0, sizeof(*pages));
	for (unsigned i = 0; i < ARRAY_LEN(sizes_kib); i++) {
		unsigned mib = sizes_kib[i] / 1024;

		snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%ukB/nr_hugepages",
			sizes_kib[i]);
		long total = read_number(path, 0);
		snprintf(path, sizeof(path),
			"/sys/kernel/mm/hugepages/hugepages-%ukB/free_hugepages", sizes_kib[i]);
		long n_free = read_number(path, 0);
		snprintf(path, sizeof(path),
			"/sys/kernel/mm/hugepages/hugepages-%ukB/resv_hugepages", sizes_kib[i]);
		long promised = read_number(path, 0);

		pages->reserved |= total > 0;
		pages->total_mib += total * mib;
		pages->free_mib += MAX_OF(n_free - promised, 0L) * mib;
	}
}

// A cgroup may be allowed to swap: free swap counts for it as for the machine.
static void apply_cgroup(struct facts_ram *ram, unsigned long swap_mib)
{
	struct cgroup_limits limits;

	cgroup_read(&limits, "/proc/self/cgroup", "/sys/fs/cgroup");
	uint64_t mib = limits.limit_bytes >> 20,
		 available_mib = (limits.available_bytes >> 20) + swap_mib;
	ram->is_limited = mib < ram->mib;
	ram->mib = MIN_OF(ram->mib, mib);
	ram->available_mib = MIN_OF(ram->available_mib, available_mib);
}

void facts_read_ram(struct facts_ram *ram)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long kib, swap_mib = 0;
	char line[128];

	*ram = (struct facts_ram){0};
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemTotal: %lu", &kib) == 1)
			ram->mib = kib / 1024;
		else if (sscanf(line, "MemAvailable: %lu", &kib) == 1)
			ram->available_mib += kib / 1024;
		else if (sscanf(line, "SwapFree: %lu", &kib) == 1)
			swap_mib = kib / 1024;
	}
	ram->available_mib += swap_mib;
	if (file)
		fclose(file);
	apply_cgroup(ram, swap_mib);
}

uint32_t facts_count_looped_frames(const char *device)
{
	char path[PORT_DEVICE_MAX], loops[8];
	struct stat st;

	if (!kind_argument(device, "infinite_rx", loops, sizeof(loops)) || loops[0] != '1')
		return 0;
	if (!kind_argument(device, "rx_pcap", path, sizeof(path)) || stat(path, &st) != 0)
		return 0;
	return st.st_size / (PCAP_RECORD_BYTES + SHORTEST_FRAME_BYTES);
}
