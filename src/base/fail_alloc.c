// Stands in front of the allocators by the linker's --wrap. Tests only.
#include "base/fail_alloc.h"

#include "base/bits.h"
#include "base/pages.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
	uint64_t fails_at; // 0: none
	unsigned one_in;   // 0: none
	unsigned seed;
	uint64_t n, n_failed;
} state;

void fail_alloc_at(uint64_t n)
{
	state.fails_at = n;
	state.one_in = 0;
	state.n = state.n_failed = 0;
}

void fail_alloc_often(unsigned n, unsigned seed)
{
	fail_alloc_at(0);
	state.one_in = n;
	state.seed = seed;
}

uint64_t fail_alloc_n(void)
{
	return state.n;
}

uint64_t fail_alloc_n_failed(void)
{
	return state.n_failed;
}

static bool is_drawn(void)
{
	return state.one_in && (unsigned)rand_r(&state.seed) / 7 % state.one_in == 0;
}

static bool fails(void)
{
	bool does = ++state.n == state.fails_at || is_drawn();

	state.n_failed += does;
	if (does)
		errno = ENOMEM;
	return does;
}

#define WRAP(type, name, params, args, failed)                                                     \
	type __real_##name params;                                                                 \
	type __wrap_##name params;                                                                 \
	type __wrap_##name params                                                                  \
	{                                                                                          \
		return fails() ? (failed) : __real_##name args;                                    \
	}

WRAP(void *, malloc, (size_t n), (n), NULL)
WRAP(void *, calloc, (size_t n, size_t each), (n, each), NULL)
WRAP(void *, realloc, (void *memory, size_t n), (memory, n), NULL)
WRAP(char *, strdup, (const char *text), (text), NULL)
WRAP(void *, aligned_alloc, (size_t alignment, size_t n), (alignment, n), NULL)
WRAP(int, posix_memalign, (void **out, size_t alignment, size_t n), (out, alignment, n), ENOMEM)

// Sanitizers do not know these.
static void *mapped[256];

static void **find_mapped(void *memory)
{
	for (size_t i = 0; i < ARRAY_LEN(mapped); i++)
		if (mapped[i] == memory)
			return &mapped[i];
	fprintf(stderr, "memory of pages_alloc freed twice, or too much of it allocated\n");
	abort();
}

size_t fail_alloc_n_mapped(void)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(mapped); i++)
		n += mapped[i] != NULL;
	return n;
}

void *__real_pages_alloc(size_t bytes);
void *__wrap_pages_alloc(size_t bytes);

void *__wrap_pages_alloc(size_t bytes)
{
	void *memory = fails() ? NULL : __real_pages_alloc(bytes);

	if (memory)
		*find_mapped(NULL) = memory;
	return memory;
}

void __real_pages_free(void *memory, size_t bytes);
void __wrap_pages_free(void *memory, size_t bytes);

void __wrap_pages_free(void *memory, size_t bytes)
{
	if (memory)
		*find_mapped(memory) = NULL;
	__real_pages_free(memory, bytes);
}
