/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Quicksort of random numbers, recursive, insertion sort at the end. */
#include "bare.h"

#define NUMBERS 200000
#define ROUNDS 8

static uint64_t numbers[NUMBERS];

static void sort(uint64_t *low, uint64_t *high)
{
	while (high - low > 12) {
		uint64_t pivot = low[(high - low) / 2], *left = low, *right = high;

		while (left <= right) {
			while (*left < pivot)
				left++;
			while (pivot < *right)
				right--;
			if (left <= right) {
				uint64_t kept = *left;

				*left++ = *right;
				*right-- = kept;
			}
		}
		sort(low, right);
		low = left;
	}
	for (uint64_t *next = low + 1; next <= high; next++) {
		uint64_t value = *next, *to = next;

		for (; to > low && to[-1] > value; to--)
			*to = to[-1];
		*to = value;
	}
}

int main(void)
{
	uint64_t sum = 0;

	for (int round = 0; round < ROUNDS; round++) {
		for (int n = 0; n < NUMBERS; n++)
			numbers[n] = random64();
		sort(numbers, numbers + NUMBERS - 1);
		for (int n = 0; n < NUMBERS; n++)
			sum = sum * 31 + numbers[n];
	}
	return result(sum);
}
