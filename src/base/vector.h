// Growing an array. No thread, no state.
#pragma once

#include <stddef.h>

// Makes space for at least `n` elements of `each` bytes, at least doubling the capacity if there is
// less. `array`: address of the pointer to the elements, which may move; NULL at first, with a
// capacity of 0; owner: caller, free. 0, or -ENOMEM: array and capacity are unchanged.
int vector_reserve(void *array, size_t *capacity, size_t n, size_t each);
