// The file of ended flows. The thread formats and writes without the lock; it protects everything
// else here, and rows up to `written`, which the control thread may overwrite.
#include "api/flow_ended_file.h"

#include "api/flows.h"
#include "base/bits.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROWS_AT_ONCE = 512, LINE_MAX_BYTES = 512, RETRY_MS = 100 };

struct flow_ended_file {
	const struct flow_ended_row *ring;
	uint64_t n_ring;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int fd, next_fd; // next_fd: if has_next
	bool is_stopping, is_writing, has_next;
	uint64_t last, written; // sequence numbers
	struct flow_ended_file_usage usage;
	char text[ROWS_AT_ONCE * LINE_MAX_BYTES]; // the thread's
};

const char *flow_reason_word(unsigned reason)
{
	static const char *const words[] = {
		[FLOW_ALIVE] = "alive",
		[FLOW_DELETED] = "deleted",
		[FLOW_IDLE] = "idle",
		[FLOW_REACHED_END] = "end",
	};

	return reason < ARRAY_LEN(words) ? words[reason] : NULL;
}

// printf would take three times as long, and millions of flows may end in a second.
static void put(char **at, const char *text)
{
	const size_t n = strlen(text);

	memcpy(*at, text, n);
	*at += n;
}

static void put_number(char **at, uint64_t number)
{
	char digits[20];
	unsigned n = 0;

	do
		digits[n++] = '0' + number % 10;
	while (number /= 10);
	while (n)
		*(*at)++ = digits[--n];
}

static void put_addr(char **at, const struct wire_addr *addr)
{
	char text[WIRE_ADDR_TEXT];

	if (addr->family != 4) {
		put(at, wire_addr_print(addr, text));
		return;
	}
	for (unsigned i = 0; i < 4; i++) {
		if (i)
			put(at, ".");
		put_number(at, addr->bytes[i]);
	}
}

// Linux permits almost any character in names.
static void put_name(char **at, const char name[IF_NAMESIZE])
{
	for (size_t i = 0; i < IF_NAMESIZE && name[i]; i++) {
		const bool is_plain =
			name[i] >= ' ' && name[i] < 0x7f && name[i] != '"' && name[i] != '\\';
		*(*at)++ = is_plain ? name[i] : '?';
	}
}

static void put_key(char **at, const struct flow_ended_row *row)
{
	struct flow_tuple tuple;

	flow_key_tuple(&row->key, &tuple);
	const char *protocol = flow_protocol_word(tuple.proto);
	put(at, "\"src\":\"");
	put_addr(at, &tuple.src);
	put(at, "\",\"dst\":\"");
	put_addr(at, &tuple.dst);
	put(at, protocol ? "\",\"protocol\":\"" : "\",\"protocol\":");
	if (protocol)
		put(at, protocol);
	else
		put_number(at, tuple.proto);
	put(at, protocol ? "\",\"src_port\":" : ",\"src_port\":");
	put_number(at, tuple.src_port);
	put(at, ",\"dst_port\":");
	put_number(at, tuple.dst_port);
	put(at, ",\"vrf\":\"");
	put_name(at, row->vrf);
}

// At most LINE_MAX_BYTES.
static size_t write_line(char *to, const struct flow_ended_row *row)
{
	char *at = to;

	put(&at, "{\"start\":");
	put_number(&at, row->start);
	put(&at, ",\"seq\":");
	put_number(&at, row->seq);
	put(&at, ",\"ended_ms\":");
	put_number(&at, row->ended_ms);
	put(&at, ",\"reason\":\"");
	put(&at, flow_reason_word(row->reason));
	put(&at, "\",");
	put_key(&at, row);
	put(&at, "\",\"do\":\"");
	put(&at, flow_effect_word(row->effect));
	put(&at, "\",\"subscriber\":");
	put_number(&at, row->subscriber);
	put(&at, ",\"idle_for_s\":");
	put_number(&at, row->idle_ms / 1000);
	put(&at, ".");
	put_number(&at, row->idle_ms % 1000 / 100); // a tick is longer than that
	put(&at, ",\"packets\":");
	put_number(&at, row->packets);
	put(&at, ",\"bytes\":");
	put_number(&at, row->bytes);
	put(&at, "}\n");
	return at - to;
}

// All of it, or nothing: half a line would spoil the next one.
static int append(int fd, const char *text, size_t n)
{
	const off_t end = lseek(fd, 0, SEEK_END);

	for (size_t done = 0; done < n;) {
		ssize_t now = write(fd, text + done, n - done);
		if (now < 0 && errno == EINTR)
			continue;
		if (now < 0) {
			const int err = errno;
			return end >= 0 && ftruncate(fd, end) ? -errno : -err;
		}
		done += now;
	}
	return 0;
}

static int write_rows(struct flow_ended_file *file, int fd, uint64_t first, uint64_t end)
{
	size_t n = 0;

	for (uint64_t seq = first; seq < end; seq++)
		n += write_line(file->text + n, &file->ring[seq % file->n_ring]);
	return append(fd, file->text, n);
}

static void note_error(struct flow_ended_file *file, int err)
{
	const bool was_sound = !file->usage.error.text[0];

	error_set(&file->usage.error, err, "the file of ended flows cannot be written: %s",
		strerror(-err));
	if (was_sound)
		log_error("%s; trying again", file->usage.error.text);
}

static void wait_to_retry(struct flow_ended_file *file)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += RETRY_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&file->changed, &file->lock, &until);
}

// Writes some rows, without the lock. -errno: they cannot be written.
static int work(struct flow_ended_file *file)
{
	const uint64_t first = file->written + 1;
	const uint64_t end = MIN_OF(first + ROWS_AT_ONCE, file->last + 1);
	const int fd = file->fd;

	file->is_writing = true;
	pthread_mutex_unlock(&file->lock);
	int err = write_rows(file, fd, first, end);
	pthread_mutex_lock(&file->lock);
	file->is_writing = false;
	if (err)
		return err;
	file->written = end - 1;
	file->usage.n_written += end - first;
	file->usage.error.text[0] = '\0';
	return 0;
}

static void use_file(struct flow_ended_file *file, int fd)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = fd;
	file->has_next = false;
	file->usage.error.text[0] = '\0';
}

static void *run(void *file_)
{
	struct flow_ended_file *file = file_;

	setpriority(PRIO_PROCESS, gettid(), 0); // not that of the control thread
	pthread_mutex_lock(&file->lock);
	while (true) {
		if (file->has_next)
			use_file(file, file->next_fd);
		if (file->fd < 0)
			file->written = file->last;
		if (file->written == file->last) {
			if (file->is_stopping)
				break;
			pthread_cond_wait(&file->changed, &file->lock);
			continue;
		}
		int err = work(file);
		if (!err)
			continue;
		note_error(file, err);
		if (file->is_stopping)
			break;
		wait_to_retry(file);
	}
	pthread_mutex_unlock(&file->lock);
	return NULL;
}

// Signals are for the other threads.
static int start(struct flow_ended_file *file)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int err = pthread_create(&file->thread, NULL, run, file);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

struct flow_ended_file *flow_ended_file_start(const struct flow_ended_row *ring, uint64_t n, int fd,
	struct error *error)
{
	struct flow_ended_file *file = calloc(1, sizeof(*file));
	int err = -ENOMEM;

	if (file) {
		file->ring = ring;
		file->n_ring = n;
		file->fd = fd;
		pthread_mutex_init(&file->lock, NULL);
		pthread_cond_init(&file->changed, NULL);
		err = start(file);
	}
	if (!err)
		return file;
	error_set(error, err, "cannot start a thread for ended flows: %s", strerror(-err));
	if (fd >= 0)
		close(fd);
	free(file);
	return NULL;
}

void flow_ended_file_stop(struct flow_ended_file *file)
{
	pthread_mutex_lock(&file->lock);
	file->is_stopping = true;
	pthread_cond_broadcast(&file->changed);
	pthread_mutex_unlock(&file->lock);
	pthread_join(file->thread, NULL);
	if (file->written != file->last)
		log_error("%llu ended flows are not in the file",
			(unsigned long long)(file->last - file->written));
	if (file->fd >= 0)
		close(file->fd);
	pthread_cond_destroy(&file->changed);
	pthread_mutex_destroy(&file->lock);
	free(file);
}

void flow_ended_file_change(struct flow_ended_file *file, int fd)
{
	pthread_mutex_lock(&file->lock);
	if (file->has_next && file->next_fd >= 0)
		close(file->next_fd);
	file->next_fd = fd;
	file->has_next = true;
	pthread_cond_broadcast(&file->changed);
	pthread_mutex_unlock(&file->lock);
}

void flow_ended_file_wake(struct flow_ended_file *file, uint64_t last)
{
	pthread_mutex_lock(&file->lock);
	if (file->last != last) {
		file->last = last;
		if (file->fd < 0 && !file->has_next)
			file->written = last;
		else
			pthread_cond_broadcast(&file->changed);
	}
	pthread_mutex_unlock(&file->lock);
}

uint64_t flow_ended_file_behind(struct flow_ended_file *file, uint64_t last)
{
	pthread_mutex_lock(&file->lock);
	const bool has_file = file->fd >= 0 || file->has_next;
	const uint64_t behind = has_file ? last - file->written : 0;
	pthread_mutex_unlock(&file->lock);
	return behind;
}

bool flow_ended_file_fails(struct flow_ended_file *file)
{
	pthread_mutex_lock(&file->lock);
	const bool fails = file->usage.error.text[0];
	pthread_mutex_unlock(&file->lock);
	return fails;
}

void flow_ended_file_lose(struct flow_ended_file *file, uint64_t last)
{
	pthread_mutex_lock(&file->lock);
	if (file->usage.error.text[0] && !file->is_writing) {
		file->last = last;
		file->written += file->n_ring / 2;
		file->usage.n_lost += file->n_ring / 2;
	}
	pthread_mutex_unlock(&file->lock);
}

void flow_ended_file_usage(struct flow_ended_file *file, struct flow_ended_file_usage *usage)
{
	pthread_mutex_lock(&file->lock);
	*usage = file->usage;
	pthread_mutex_unlock(&file->lock);
}

// The last line may have been cut off when an earlier process was killed.
static int end_last_line(int fd)
{
	const off_t end = lseek(fd, 0, SEEK_END);
	char last = '\n';

	if (end > 0 && pread(fd, &last, 1, end - 1) != 1)
		return -EIO;
	return last == '\n' || write(fd, "\n", 1) == 1 ? 0 : -errno;
}

int flow_ended_open_file(const char *path, int *fd, struct error *error)
{
	const int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	struct stat status;
	int err = 0;

	*fd = -1;
	if (!path[0])
		return 0;
	*fd = open(path, flags, 0600);
	if (*fd < 0 || fstat(*fd, &status))
		err = -errno;
	else if (!S_ISREG(status.st_mode))
		err = -EINVAL;
	else
		err = end_last_line(*fd);
	if (!err)
		return 0;
	if (*fd >= 0)
		close(*fd);
	return error_set(error, err, "flow: ended_file: cannot open %s: %s", path,
		err == -EINVAL ? "not a regular file" : strerror(-err));
}
