// Messages for the user running the program: one line each on stderr. Never called by workers.
#pragma once

// Writes "dl3d: text" (or the name given to log_start) with a level, with one write(2) per line.
// Any control thread.
void log_start(const char *program);
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
