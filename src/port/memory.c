// Decides which pages DPDK's memory uses.
#include "port/memory.h"

#include <errno.h>

enum { PAGE_MIB = 2 };

static int complain_of_too_few(unsigned mib, const struct facts_pages *pages, struct error *error)
{
	unsigned n_now = pages->total_mib / PAGE_MIB,
		 n_missing = (mib - pages->free_mib + PAGE_MIB - 1) / PAGE_MIB;

	return error_set(error, -ENOMEM,
		"memory: %u MiB of huge pages are needed and %u MiB are free; free some, reserve "
		"more (sysctl "
		"vm.nr_hugepages=%u), or set memory: {hugepages: never}",
		mib, pages->free_mib, n_now + n_missing);
}

int memory_check(unsigned mib, const struct facts_ram *ram, const struct facts_pages *pages,
	struct error *error)
{
	if (!ram->mib || mib <= ram->mib || mib <= pages->total_mib)
		return 0;
	return error_set(error, -ENOMEM,
		"memory: mib requests %u MiB, but %s %u MiB; use less, or remove mib: it is then "
		"computed "
		"from queues and descriptors",
		mib,
		ram->is_limited ? "the memory limit of this container (cgroup) is"
				: "this machine has",
		ram->mib);
}

int memory_choose(struct memory_choice *choice, unsigned wanted, unsigned mib,
	const struct facts_pages *pages, struct error *error)
{
	choice->huge = false;
	choice->warning.text[0] = 0;
	if (wanted == PORT_HUGE_NEVER)
		return 0;
	if (wanted == PORT_HUGE_AUTO && !pages->reserved) {
		error_set(&choice->warning, 0,
			"memory: no huge pages are reserved, so buffers use 4 KiB pages: more "
			"TLB misses, fewer packets "
			"per second; sysctl vm.nr_hugepages=%u reserves enough",
			(mib + PAGE_MIB - 1) / PAGE_MIB);
		return 0;
	}
	if (pages->free_mib < mib)
		return complain_of_too_few(mib, pages, error);
	choice->huge = true;
	return 0;
}

int memory_check_ordinary(unsigned mib, const struct facts_ram *ram, struct error *error)
{
	if (!ram->mib || mib <= ram->available_mib)
		return 0;
	return error_set(error, -ENOMEM,
		"memory: %u MiB of ordinary pages are needed and %u MiB are available%s; stop "
		"other programs, or use less (memory: {mib: ...}, fewer queues or descriptors)",
		mib, ram->available_mib,
		ram->is_limited ? " within the memory limit of this container (cgroup)" : "");
}
