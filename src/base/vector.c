// Growing an array.
#include "base/vector.h"

#include "base/bits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 16 };

int vector_reserve(void *array, size_t *capacity, size_t n, size_t each)
{
	size_t larger = *capacity ? 2 * *capacity : FIRST_CAPACITY, n_bytes;
	void *elements;

	if (n <= *capacity)
		return 0;
	larger = MAX_OF(larger, n);
	if (__builtin_mul_overflow(larger, each, &n_bytes))
		return -ENOMEM;
	memcpy(&elements, array, sizeof(elements)); // `array` points to a pointer of another type
	elements = realloc(elements, n_bytes);
	if (!elements)
		return -ENOMEM;
	memcpy(array, &elements, sizeof(elements));
	*capacity = larger;
	return 0;
}
