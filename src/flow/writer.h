// Writes a file with a thread of its own, so that nobody else waits for the disk. The file is
// written beside its name, which it gets when it is complete and on the disk.
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct writer;

enum { WRITER_CHUNK_BYTES = 128 << 10, WRITER_CHUNKS = 16, WRITER_HEAD_BYTES = 64 };

// Creates the file PATH.new, after removing one that a killed program left incomplete; any other
// file, link or pipe of that name is refused, and stays. Its first WRITER_HEAD_BYTES are left out
// until writer_finish. NULL with `error` set. Owner: caller. All functions: one thread.
struct writer *writer_open(const char *path, struct error *error);
// Where to put the next WRITER_CHUNK_BYTES at most. NULL: the disk is behind; try later.
void *writer_space(struct writer *writer);
// The first `n` bytes there are part of the file.
void writer_add(struct writer *writer, size_t n);
// Nothing follows; these are its first bytes.
void writer_finish(struct writer *writer, const void *head);
// 1: it is not complete yet. 0: it is complete. -errno with `error` set: it cannot be completed.
int writer_result(struct writer *writer, struct error *error);
// Waits for a write that is under way. An incomplete file is removed. NULL is allowed.
void writer_close(struct writer *writer);
