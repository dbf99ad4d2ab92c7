// Compares words by edit distance. No thread, no state.
#include "base/nearest.h"

#include "base/bits.h"

#include <stdbool.h>
#include <string.h>

// The edit distance of two words, where swapping adjacent letters is one edit (optimal string
// alignment); only the first 31 letters count.
static unsigned edits(const char *a, const char *b)
{
	unsigned d[32][32], n_a = strnlen(a, 31), n_b = strnlen(b, 31);

	for (unsigned i = 0; i <= n_a; i++)
		d[i][0] = i;
	for (unsigned j = 0; j <= n_b; j++)
		d[0][j] = j;
	for (unsigned i = 1; i <= n_a; i++) {
		for (unsigned j = 1; j <= n_b; j++) {
			unsigned change = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			bool swapped =
				i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];

			d[i][j] = MIN_OF(change, MIN_OF(d[i - 1][j], d[i][j - 1]) + 1);
			if (swapped)
				d[i][j] = MIN_OF(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[n_a][n_b];
}

const char *nearest_word(const char *word, const void *words, size_t n, size_t stride)
{
	const char *best = "";
	unsigned least = MIN_OF(strlen(word) / 2, (size_t)3) + 1;

	for (size_t i = 0; i < n; i++) {
		const char *candidate = *(const char *const *)((const char *)words + i * stride);
		unsigned distance = edits(word, candidate);

		if (distance < least) {
			least = distance;
			best = candidate;
		}
	}
	return best;
}
