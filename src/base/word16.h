// An aligned 16-byte word, read and written in one access. Workers read, the control thread writes;
// release and acquire. An aligned 16-byte vector move is atomic on every x86 CPU with AVX (Intel
// SDM vol. 3A 9.1.1; AMD guarantees the same).
#pragma once

#include <string.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WORD16_TSAN
#endif
#elif defined(__SANITIZE_THREAD__)
#define WORD16_TSAN
#endif

#if defined(__x86_64__)
#include <emmintrin.h>

typedef __m128i word16;

#if defined(WORD16_TSAN)
// ThreadSanitizer does not support 16-byte moves: they are hidden from it and replaced by
// annotations of their ordering.
void __tsan_acquire(void *address);
void __tsan_release(void *address);

__attribute__((noinline, no_sanitize("thread"))) static word16 word16_move(const void *from)
{
	return *(const volatile word16 *)from;
}

__attribute__((noinline, no_sanitize("thread"))) static void word16_put(void *to, word16 word)
{
	*(volatile word16 *)to = word;
}

static inline word16 word16_load(const void *from)
{
	word16 word = word16_move(from);

	__tsan_acquire((void *)(uintptr_t)from);
	return word;
}

__attribute__((unused)) static void word16_store(void *to, word16 word)
{
	__tsan_release(to);
	word16_put(to, word);
}

#else
static inline word16 word16_load(const void *from)
{
	return *(const volatile word16 *)from;
}

static inline void word16_store(void *to, word16 word)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
	*(volatile word16 *)to = word;
}
#endif

#else
typedef unsigned __int128 word16;

static inline word16 word16_load(const void *from)
{
	return __atomic_load_n((const word16 *)from, __ATOMIC_ACQUIRE);
}

static inline void word16_store(void *to, word16 word)
{
	__atomic_store_n((word16 *)to, word, __ATOMIC_RELEASE);
}
#endif
