/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* qsort of random numbers through a comparison function. */
#include <string.h>

#include "bench.h"

#define NUMBERS 120000

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static uint64_t numbers[NUMBERS];

int main(void)
{
	uint64_t sum = 0;

	preparation_starts();
	for (int n = 0; n < NUMBERS; n++)
		numbers[n] = random64();

	work_starts();
	qsort(numbers, NUMBERS, sizeof(numbers[0]), compare);
	for (int n = 0; n < NUMBERS; n++)
		sum = sum * 31 + numbers[n];
	return work_ends(sum);
}
