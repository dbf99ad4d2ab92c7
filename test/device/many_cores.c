// A machine with more cores than there are, for a program that wants one for each worker:
// LD_PRELOAD, and DL3_CORES with their number. The cores that the process really has take turns.
// Tests only.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 64 };

static struct {
	int n; // cores that there seem to be
	int n_real;
	int real[MOST];
} cores;

// Processes that the program starts are left alone.
__attribute__((constructor)) static void prepare(void)
{
	const char *n = getenv("DL3_CORES");
	cpu_set_t allowed;

	cores.n = n ? atoi(n) : 0;
	unsetenv("LD_PRELOAD");
	CPU_ZERO(&allowed);
	if (cores.n < 1 || cores.n > MOST ||
		syscall(SYS_sched_getaffinity, 0, sizeof(allowed), &allowed) < 0) {
		fprintf(stderr, "many_cores: expected DL3_CORES, 1 to %d\n", MOST);
		abort();
	}
	for (int core = 0; core < CPU_SETSIZE && cores.n_real < MOST; core++)
		if (CPU_ISSET(core, &allowed))
			cores.real[cores.n_real++] = core;
}

int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
	CPU_ZERO_S(bytes, set);
	for (int core = 0; core < cores.n; core++)
		CPU_SET_S(core, bytes, set);
	return 0;
}

int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *wanted)
{
	int (*next)(pthread_t, size_t, const cpu_set_t *);
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int core = 0; core < cores.n; core++)
		if (CPU_ISSET_S(core, bytes, wanted))
			CPU_SET(cores.real[core % cores.n_real], &set);
	next = dlsym(RTLD_NEXT, "pthread_setaffinity_np");
	return next(thread, sizeof(set), &set);
}

// EAL looks whether a core has such a file.
int access(const char *path, int mode)
{
	int (*next)(const char *, int) = dlsym(RTLD_NEXT, "access");
	char end[32];
	int core;

	if (sscanf(path, "/sys/devices/system/cpu/cpu%d/%31s", &core, end) == 2 &&
		!strcmp(end, "topology/core_id"))
		return core < cores.n ? 0 : -1;
	return next(path, mode);
}
