// Log lines on stderr. Control threads.
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1024 };

static const char *program_name = "dl3d";

void log_start(const char *program)
{
	program_name = program;
}

static void write_line(const char *level, const char *format, va_list args)
{
	char line[LINE_MAX_BYTES];
	int n = snprintf(line, sizeof(line), "%s: %s", program_name, level);

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

#define LOG_LEVEL(name, level)                                                                     \
	void name(const char *format, ...)                                                         \
	{                                                                                          \
		va_list args;                                                                      \
		va_start(args, format);                                                            \
		write_line(level, format, args);                                                   \
		va_end(args);                                                                      \
	}

LOG_LEVEL(log_info, "")
LOG_LEVEL(log_warn, "warning: ")
LOG_LEVEL(log_error, "error: ")
