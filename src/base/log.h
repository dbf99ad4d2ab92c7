// What a person running the program should read: one line each on stderr. Never called on a worker.
#pragma once

// Writes "dl3d: text" (or the name given to log_start) with a level; one write(2) a line. Any
// control thread.
void log_start(const char *program);
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
