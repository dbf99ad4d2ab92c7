// Starts and stops EAL, and captures its messages.
#include "port/eal.h"

#include "base/clock.h"
#include "base/log.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_version.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { WORDS_MAX = 256, RUNTIME_PATH_MAX = 256, WORDS_PER_SECOND = 5 };
enum { OPEN_FILES_MIN = 128, OPEN_FILES_USUAL = 1024 };

// DPDK logs from several threads.
static pthread_mutex_t words_lock = PTHREAD_MUTEX_INITIALIZER;
static char words[WORDS_MAX];
static bool words_are_error;
static bool speaks;

// The arguments, which rte_eal_init permutes; the one that it refused (NULL: no particular one);
// and its first line on stderr other than its closing message.
static char *argv[EAL_ARGS_MAX + 1];
static struct {
	const char *option, *value; // the value, if it is a separate argument
	bool has_reason;            // in `words`
} refused;
static char deferred[WORDS_MAX];

// A driver may log an error for each packet; a few messages per second are enough. Call with
// words_lock held.
static bool may_speak(void)
{
	static uint64_t second;
	static unsigned n_said;
	uint64_t now = clock_now_ns() / 1000000000;

	n_said = now == second ? n_said + 1 : 0;
	second = now;
	return n_said < WORDS_PER_SECOND;
}

// Handles a DPDK message: while ports are being opened, the first error (or else the first warning)
// is kept for our error message, since further ones are only consequences. Later errors are logged.
static ssize_t handle(void *cookie, const char *text, size_t n)
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

void eal_hush(void)
{
	speaks = false;
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
	cookie_io_functions_t functions = {.write = handle};

	if (!stream)
		stream = fopencookie(NULL, "w", functions);
	if (stream)
		rte_openlog_stream(stream);
}

// EAL prints its whole help to stdout for an invalid argument; our error message is sufficient.
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

static ssize_t handle_deferred(void *cookie, const char *text, size_t n)
{
	static const char farewell[] = "EAL: FATAL: ";
	const char *end = memchr(text, '\n', n);
	bool is_farewell = n >= strlen(farewell) && !memcmp(text, farewell, strlen(farewell));

	if (!deferred[0] && !is_farewell)
		snprintf(deferred, sizeof(deferred), "%.*s", (int)(end ? end - text : (ssize_t)n),
			text);
	return n;
}

// EAL and the libraries of drivers write to this stream instead of stderr; our own messages bypass
// it.
static FILE *hide_stderr(void)
{
	static FILE *stream;
	cookie_io_functions_t functions = {.write = handle_deferred};
	FILE *kept = stderr;

	deferred[0] = 0;
	if (!stream)
		stream = fopencookie(NULL, "w", functions);
	if (!stream)
		return kept;
	setvbuf(stream, NULL, _IOLBF, 0);
	stderr = stream;
	return kept;
}

static void show_stderr(FILE *kept)
{
	fflush(stderr);
	stderr = kept;
}

// The argument with combined single letters that contains `letter`; `otherwise` if there is none.
// EAL parses such an argument twice, the second time from its middle, so getopt's position is
// wrong.
static const char *find_letter(char letter, const char *otherwise)
{
	for (int i = 1; argv[i]; i++)
		if (argv[i][0] == '-' && argv[i][1] != '-' && strchr(argv[i], letter))
			return argv[i];
	return otherwise;
}

// EAL prints its help for the argument that getopt has just read. If it has given a reason and the
// argument has no value, the cause is not this argument, but the combination of all.
static void note_refused(const char *program)
{
	const char *last = argv[optind - 1];
	bool is_letter = optopt > 0 && optopt <= CHAR_MAX;

	refused.has_reason = words_are_error;
	if (optarg) {
		refused.value = optarg == last ? optarg : NULL;
		refused.option = refused.value ? argv[optind - 2] : last;
	} else if (!words_are_error) {
		refused.option = is_letter ? find_letter(optopt, last) : last;
	}
}

#define ADVICE "correct or remove it (see \"EAL parameters\" in the DPDK guides)"

static int argument_error(struct error *error)
{
	return error_set(error, -EINVAL, "eal: args: DPDK rejected \"%s%s%s\"%s%s; " ADVICE,
		refused.option, refused.value ? " " : "", refused.value ? refused.value : "",
		refused.has_reason ? ": " : "", refused.has_reason ? words : "");
}

static int start_error(const struct eal_args *args, struct error *error)
{
	bool has_theirs = args->n_ours < args->n;
	// All texts are contiguous, with the file's own arguments last.
	bool is_theirs = has_theirs && refused.option >= args->argv[args->n_ours];

	if (refused.option && is_theirs)
		return argument_error(error);
	if (!refused.option && refused.has_reason && has_theirs)
		return error_set(error, -EINVAL,
			"eal: args: DPDK rejected an argument in combination with others: "
			"%s; " ADVICE,
			words);
	return error_set(error, rte_errno ? -rte_errno : -EIO, "DPDK did not start: %s",
		words[0]      ? words
		: deferred[0] ? deferred
			      : rte_strerror(rte_errno));
}

// EAL leaves sockets and maps behind in its runtime directory.
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

// Removes the directory of a failed start, perhaps before its name was set.
static void remove_own_folder(void)
{
	const char *folder = rte_eal_get_runtime_dir();

	if (folder && strstr(folder, "dl3d-"))
		remove_runtime_folder(folder);
}

// Some EAL versions end the process for an invalid argument instead of returning: prints an error
// then.
static bool is_starting;

static void tell_the_end(void)
{
	if (!is_starting)
		return;
	remove_own_folder();
	dprintf(STDERR_FILENO, "dl3d: DPDK terminated the process during its start: %s\n",
		words[0]      ? words
		: deferred[0] ? deferred
			      : "no reason given");
	_exit(1);
}

// libbpf and libxdp, used by some drivers, print messages to stderr that do not help operators.
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

// Removes empty directories of instances that were killed.
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

// Drivers built into the program (docs/adr/0010-drivers-within.md) depend on DPDK's internal
// structures, so they are valid only for the release that they were built with; the library name
// alone does not identify it.
static int check_release(struct error *error)
{
	char built[32];

	snprintf(built, sizeof(built), RTE_VER_PREFIX " %u.%02u.", RTE_VER_YEAR, RTE_VER_MONTH);
	if (!strncmp(rte_version(), built, strlen(built)))
		return 0;
	return error_set(error, -ENOEXEC,
		"this program was built with " RTE_VER_PREFIX " %u.%02u but found %s: rebuild it",
		RTE_VER_YEAR, RTE_VER_MONTH, rte_version());
}

// DPDK aborts the program if it cannot open a file. Soft limits below the usual 1024 are raised as
// far as the hard limit allows.
static int check_open_files(struct error *error)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 0;
	if (limit.rlim_cur < OPEN_FILES_USUAL) {
		limit.rlim_cur = MIN_OF(limit.rlim_max, (rlim_t)OPEN_FILES_USUAL);
		setrlimit(RLIMIT_NOFILE, &limit);
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= OPEN_FILES_MIN)
		return 0;
	return error_set(error, -EMFILE,
		"this process may open %lu files but needs %u: raise the limit (ulimit -n, "
		"LimitNOFILE= of a service)",
		(unsigned long)limit.rlim_cur, OPEN_FILES_MIN);
}

int eal_start(struct eal_args *args, struct error *error)
{
	int err = check_release(error);

	if (!err)
		err = check_open_files(error);
	if (err)
		return err;
	memcpy(argv, args->argv, sizeof(argv));
	listen_to_dpdk();
	eal_words_forget();
	memset(&refused, 0, sizeof(refused));
	rte_set_application_usage_hook(note_refused);
	atexit(tell_the_end);
	int kept_stdout = hide_stdout();
	FILE *kept_stderr = hide_stderr();
	is_starting = true;
	int used = rte_eal_init(args->n, argv);
	is_starting = false;
	show_stderr(kept_stderr);
	show_stdout(kept_stdout);
	if (used < 0) {
		remove_own_folder();
		return start_error(args, error);
	}
	if (used + 1 < args->n) {
		refused.option = argv[used + 1];
		eal_stop();
		return argument_error(error);
	}
	if (rte_get_main_lcore() != 0) {
		eal_stop();
		return error_set(error, -EINVAL,
			"eal: args: lcore 0 must be the main lcore; remove --main-lcore");
	}
	if (deferred[0])
		log_warn("DPDK: %s", deferred);
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
