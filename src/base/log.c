// Log lines on stderr. Control threads.
#include "base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1024 };

static const char *program_name = "dl3d";
static bool is_journal;

// systemd names the device and inode of the stream that it reads.
static bool leads_to_journal(int fd)
{
	const char *text = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat state;

	return text && sscanf(text, "%llu:%llu", &device, &inode) == 2 && !fstat(fd, &state) &&
	       state.st_dev == device && state.st_ino == inode;
}

void log_start(const char *program)
{
	program_name = program;
	is_journal = leads_to_journal(STDERR_FILENO);
}

// The journal knows the program, and takes the level from a number in front (sd-daemon(3)).
static void write_line(int priority, const char *level, const char *format, va_list args)
{
	char line[LINE_MAX_BYTES];
	int n = is_journal ? snprintf(line, sizeof(line), "<%d>", priority)
	                   : snprintf(line, sizeof(line), "%s: %s", program_name, level);

	n += vsnprintf(line + n, sizeof(line) - n, format, args);
	if (n > LINE_MAX_BYTES - 2)
		n = LINE_MAX_BYTES - 2;
	for (int i = 0; i < n; i++)
		if ((unsigned char)line[i] < ' ' && line[i] != '\t')
			line[i] = '?';
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		return; // stderr is closed; there is nowhere else to report it
}

#define LOG_LEVEL(name, priority, level)                                                           \
	void name(const char *format, ...)                                                         \
	{                                                                                          \
		va_list args;                                                                      \
		va_start(args, format);                                                            \
		write_line(priority, level, format, args);                                         \
		va_end(args);                                                                      \
	}

LOG_LEVEL(log_info, LOG_INFO, "")
LOG_LEVEL(log_warn, LOG_WARNING, "warning: ")
LOG_LEVEL(log_error, LOG_ERR, "error: ")
