// What the machine says of itself before DPDK starts: cores, NUMA nodes, huge pages, devices on the
// PCI bus. Control thread.
#pragma once

#include "port/plan.h"

struct facts_pages {
	bool reserved;     // the machine has huge pages at all
	unsigned free_mib; // in pages of 2 MiB and 1 GiB
	unsigned total_mib;
};

struct facts_ram {
	unsigned mib;           // 0: unknown
	unsigned available_mib; // without ending anybody; free swap counts
	bool is_limited;        // by a memory cgroup, to these figures
};

// Fills cores and, from the text of each device, what is known of the devices.
void facts_read(struct plan_facts *facts, const struct port_table_settings *settings);
void facts_read_pages(struct facts_pages *pages);
void facts_read_ram(struct facts_ram *ram);

// Frames at most that a net_pcap with infinite_rx=1 keeps in mbufs of its own; 0 for other devices.
uint32_t facts_count_looped_frames(const char *device);
