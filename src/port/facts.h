// What the machine reports before DPDK starts: cores, NUMA nodes, huge pages, PCI devices. Control
// thread.
#pragma once

#include "port/plan.h"

struct facts_pages {
	bool reserved;     // the machine has huge pages
	unsigned free_mib; // in pages of 2 MiB and 1 GiB
	unsigned total_mib;
};

struct facts_ram {
	unsigned mib;           // 0: unknown
	unsigned available_mib; // without ending other programs; includes free swap
	bool is_limited;        // these values are limited by a memory cgroup
};

// Fills in the cores and, from the text of each device, what is known of the devices.
void facts_read(struct plan_facts *facts, const struct port_table_settings *settings);
// The same for one device.
void facts_read_device(struct plan_device *device, const char *text);
void facts_read_pages(struct facts_pages *pages);
void facts_read_ram(struct facts_ram *ram);

// The maximum number of frames that a net_pcap with infinite_rx=1 keeps in mbufs of its own; 0 for
// other devices.
uint32_t facts_count_looped_frames(const char *device);
