// Runs in the thread that was hit, a worker as a rule, so it must not use what is not safe in a
// handler of signals: the list of mappings is read by system calls alone. Its file is open from the
// beginning, since a peer can use up all descriptors by the files that it sends.
#include "port/peer_memory.h"

#include "base/bits.h"

#include <errno.h>
#include <fcntl.h>
#include <rte_memory.h>
#include <rte_pause.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { KEPT = 16, LINE = 96, CHUNK = 4096 };

struct mapping {
	uintptr_t begin, end;
	bool is_shared, is_anonymous;
};

static struct mapping lost[KEPT]; // atomic, relaxed
static unsigned n_lost;           // atomic; release, acquire
static struct sigaction before;
static int maps = -1;       // /proc/self/maps
static bool is_maps_in_use; // atomic: by one thread at a time

// "BEGIN-END rwxs OFFSET MAJOR:MINOR INODE PATH" (proc(5)).
static void read_line(const char *line, struct mapping *out)
{
	char *at;

	out->begin = strtoull(line, &at, 16);
	out->end = *at ? strtoull(at + 1, &at, 16) : 0;
	out->is_shared = *at && strnlen(at, 5) == 5 && at[4] == 's';
	for (unsigned words = 0; words < 3 && *at; words++)
		at += strcspn(at + 1, " ") + 1;
	out->is_anonymous = strtoull(at, NULL, 10) == 0;
}

// The mapping with this address among the lines of `maps`; what is long in them is left out.
static bool find(uintptr_t address, struct mapping *out)
{
	char chunk[CHUNK], line[LINE];
	unsigned length = 0;
	ssize_t n;

	if (lseek(maps, 0, SEEK_SET))
		return false;
	while ((n = read(maps, chunk, sizeof(chunk))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			if (chunk[i] != '\n') {
				if (length < LINE - 1)
					line[length++] = chunk[i];
				continue;
			}
			line[length] = 0;
			length = 0;
			read_line(line, out);
			if (out->begin <= address && address < out->end)
				return true;
		}
	return false;
}

static void note(const struct mapping *mapping)
{
	unsigned number = __atomic_fetch_add(&n_lost, 1, __ATOMIC_ACQ_REL) % KEPT;

	__atomic_store_n(&lost[number].begin, mapping->begin, __ATOMIC_RELAXED);
	__atomic_store_n(&lost[number].end, mapping->end, __ATOMIC_RELEASE);
}

// Another thread may have been here before: then there are zeros already. It is not this one that
// the file is in use by, since SIGBUS is blocked here.
static bool replace(uintptr_t address)
{
	struct mapping found;

	while (__atomic_exchange_n(&is_maps_in_use, true, __ATOMIC_ACQUIRE))
		rte_pause();
	bool is_found = find(address, &found);

	__atomic_store_n(&is_maps_in_use, false, __ATOMIC_RELEASE);
	if (!is_found || rte_mem_virt2memseg_list((void *)address))
		return false;
	if (!found.is_shared)
		return found.is_anonymous;
	if (mmap((void *)found.begin, found.end - found.begin, PROT_READ | PROT_WRITE,
		    MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
		return false;
	note(&found);
	return true;
}

// Once the handler has returned, the access is repeated.
static void on_bus_error(int number, siginfo_t *info, void *context)
{
	int kept = errno;

	if (info->si_code != BUS_ADRERR || !replace((uintptr_t)info->si_addr))
		sigaction(SIGBUS, &before, NULL);
	errno = kept;
}

bool peer_memory_guard(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO}, now;

	if (maps < 0)
		maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (maps < 0)
		return false;
	if (sigaction(SIGBUS, NULL, &now) || now.sa_sigaction != on_bus_error)
		sigaction(SIGBUS, &action, &before);
	return true;
}

unsigned peer_memory_n_lost(void)
{
	return __atomic_load_n(&n_lost, __ATOMIC_ACQUIRE);
}

bool peer_memory_is_lost(uintptr_t begin, uintptr_t end, unsigned since)
{
	unsigned n = peer_memory_n_lost();

	for (unsigned i = n - MIN_OF(n - since, (unsigned)KEPT); i != n; i++)
		if (begin < __atomic_load_n(&lost[i % KEPT].end, __ATOMIC_ACQUIRE) &&
			__atomic_load_n(&lost[i % KEPT].begin, __ATOMIC_RELAXED) < end)
			return true;
	return false;
}
