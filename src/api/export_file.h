// A file that a thread of its own writes, so that the control thread waits for no disk. It is
// written beside its name, which it gets when it is complete and on the disk. Control thread.
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>

struct export_file;

// Creates PATH.new, which must not exist; `*out` is where its text is to be printed, in memory.
// NULL with `error` set. Owner: caller, export_file_close; of `*out`, too.
struct export_file *export_file_open(const char *path, FILE **out, struct error *error);
// Has the thread write what was printed. False: it is behind; try later, and print no more
// meanwhile than has to be.
bool export_file_pass(struct export_file *file);
// Nothing follows. Then ask export_file_result.
void export_file_finish(struct export_file *file);
// 1: it is not complete yet. 0: it has its name. -errno with `error` set: it cannot be written.
int export_file_result(struct export_file *file, struct error *error);
// Waits for the thread. A file that is not complete is removed. NULL is allowed.
void export_file_close(struct export_file *file);
