// Starts and ends EAL, and listens to what it says.
#include "port/eal.h"

#include "base/clock.h"
#include "base/log.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MAX = 256, RUNTIME_PATH_MAX = 256, WORDS_PER_SECOND = 5 };

// DPDK logs from several threads.
static pthread_mutex_t words_lock = PTHREAD_MUTEX_INITIALIZER;
static char words[WORDS_MAX];
static bool words_are_error;
static bool speaks;

// A driver may complain once a packet; a few sentences a second are enough. With words_lock.
static bool may_speak(void)
{
	static uint64_t second;
	static unsigned n_said;
	uint64_t now = clock_now_ns() / 1000000000;

	n_said = now == second ? n_said + 1 : 0;
	second = now;
	return n_said < WORDS_PER_SECOND;
}

// A message of DPDK: while the room opens the first error (or else the first warning) is kept for
// the complaint: what follows is only its consequences. Later errors are shown.
static ssize_t hear(void *cookie, const char *text, size_t n)
{
	int level = rte_log_cur_msg_loglevel();
	int length = n;

	while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
		length--;
	if (length == 0)
		return n;
	pthread_mutex_lock(&words_lock);
	bool is_error = level <= (int)RTE_LOG_ERR;
	if (!words[0] || (is_error && !words_are_error)) {
		snprintf(words, sizeof(words), "%.*s", length, text);
		words_are_error = is_error;
	}
	bool shows = level <= (int)RTE_LOG_CRIT || (speaks && is_error && may_speak());
	pthread_mutex_unlock(&words_lock);
	if (shows)
		log_warn("DPDK: %.*s", length, text);
	return n;
}

void eal_speak(void)
{
	speaks = true;
}

const char *eal_words(void)
{
	return words;
}

void eal_words_forget(void)
{
	pthread_mutex_lock(&words_lock);
	words[0] = 0;
	words_are_error = false;
	pthread_mutex_unlock(&words_lock);
}

static void listen_to_dpdk(void)
{
	static FILE *stream;
	cookie_io_functions_t functions = {.write = hear};

	if (!stream)
		stream = fopencookie(NULL, "w", functions);
	if (stream)
		rte_openlog_stream(stream);
}

// EAL prints its whole help to stdout over a bad argument; the complaint says enough.
static int hide_stdout(void)
{
	int kept = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	fflush(stdout);
	if (kept >= 0 && null >= 0)
		dup2(null, STDOUT_FILENO);
	if (null >= 0)
		close(null);
	return kept;
}

static void show_stdout(int kept)
{
	fflush(stdout);
	if (kept < 0)
		return;
	dup2(kept, STDOUT_FILENO);
	close(kept);
}

// EAL leaves sockets and maps behind in its runtime folder.
static void remove_runtime_folder(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;

	if (!folder)
		return;
	while ((entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(folder), entry->d_name, 0);
	closedir(folder);
	rmdir(path);
}

// libbpf and libxdp, which some drivers bring along, tell stderr what no operator can use.
static void hush_library(const char *file, const char *set_print)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
	void *(*set)(void *print);

	if (!library)
		return;
	*(void **)&set = dlsym(library, set_print);
	if (set)
		set(NULL);
	dlclose(library);
}

// Empty folders of instances that were killed.
static void remove_stale_folders(const char *own)
{
	char path[RUNTIME_PATH_MAX + 64];
	struct dirent *entry;
	int pid;

	snprintf(path, RUNTIME_PATH_MAX, "%s", own);
	char *slash = strrchr(path, '/');

	if (!slash)
		return;
	*slash = 0;
	DIR *folder = opendir(path);

	if (!folder)
		return;
	while ((entry = readdir(folder)))
		if (sscanf(entry->d_name, "dl3d-%d", &pid) == 1 && kill(pid, 0) != 0 &&
			errno == ESRCH)
			unlinkat(dirfd(folder), entry->d_name, AT_REMOVEDIR);
	closedir(folder);
}

int eal_start(struct eal_args *args, struct complaint *why)
{
	// rte_eal_init permutes the pointers.
	static char *argv[EAL_ARGS_MAX + 1];

	memcpy(argv, args->argv, sizeof(argv));
	listen_to_dpdk();
	eal_words_forget();
	int kept = hide_stdout();
	int used = rte_eal_init(args->n, argv);
	show_stdout(kept);
	if (used < 0) {
		const char *folder = rte_eal_get_runtime_dir();

		if (folder && strstr(folder, "dl3d-"))
			remove_runtime_folder(folder);
		return complain(why, rte_errno ? -rte_errno : -EIO, "DPDK did not start: %s",
			words[0] ? words : rte_strerror(rte_errno));
	}
	hush_library("libbpf.so.1", "libbpf_set_print");
	hush_library("libxdp.so.1", "libxdp_set_print");
	return 0;
}

void eal_stop(void)
{
	char folder[RUNTIME_PATH_MAX];

	snprintf(folder, sizeof(folder), "%s", rte_eal_get_runtime_dir());
	speaks = false;
	rte_eal_cleanup();
	remove_runtime_folder(folder);
	remove_stale_folders(folder);
}
