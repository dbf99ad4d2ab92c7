// Makes one allocation of dl3d's own code fail: LD_PRELOAD, and DL3_FAIL_AT with its number (1 is
// the first). Allocations inside of libraries always succeed. DL3_FAIL_TOLD is a file that is
// created when it has failed. Tests only.
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
	uintptr_t begin, end; // the program's code
	uint64_t fails_at;
	uint64_t n;
	const char *told;
} state;

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *memory, size_t n);
void *__libc_memalign(size_t alignment, size_t n);

// The first object is the program.
static int take_code(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
			continue;
		state.begin = info->dlpi_addr + part->p_vaddr;
		state.end = state.begin + part->p_memsz;
	}
	return 1;
}

// Processes that the program starts are left alone.
__attribute__((constructor)) static void prepare(void)
{
	const char *at = getenv("DL3_FAIL_AT");

	state.told = getenv("DL3_FAIL_TOLD");
	state.fails_at = at ? strtoull(at, NULL, 10) : 0;
	unsetenv("LD_PRELOAD");
	dl_iterate_phdr(take_code, NULL);
}

static void tell(void)
{
	int file = state.told ? open(state.told, O_CREAT | O_WRONLY | O_CLOEXEC, 0600) : -1;

	if (file >= 0)
		close(file);
}

static int fails(const void *caller)
{
	uintptr_t at = (uintptr_t)caller;

	if (at < state.begin || at >= state.end ||
		__atomic_add_fetch(&state.n, 1, __ATOMIC_RELAXED) != state.fails_at)
		return 0;
	tell();
	errno = ENOMEM;
	return 1;
}

#define FAILS() fails(__builtin_return_address(0))

void *malloc(size_t n)
{
	return FAILS() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t each)
{
	return FAILS() ? NULL : __libc_calloc(n, each);
}

void *realloc(void *memory, size_t n)
{
	return FAILS() ? NULL : __libc_realloc(memory, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
	return FAILS() ? NULL : __libc_memalign(alignment, n);
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
	void *memory = FAILS() ? NULL : __libc_memalign(alignment, n);

	if (!memory)
		return ENOMEM;
	*out = memory;
	return 0;
}

char *strdup(const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = FAILS() ? NULL : __libc_malloc(n);

	return copy ? memcpy(copy, text, n) : NULL;
}

int asprintf(char **out, const char *format, ...)
{
	va_list args;
	int n = -1;

	if (FAILS())
		return -1;
	va_start(args, format);
	n = vasprintf(out, format, args);
	va_end(args);
	return n;
}

void *mmap64(void *at, size_t n, int protection, int flags, int file, off64_t offset)
{
	if (FAILS())
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, at, n, protection, flags, file, offset);
}
