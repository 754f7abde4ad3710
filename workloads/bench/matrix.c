/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Product of two matrices of doubles, in the order in which the inner loop runs along rows. */
#include <string.h>

#include "bench.h"

#define SIZE 160
#define ROUNDS 2

static double a[SIZE][SIZE], b[SIZE][SIZE], c[SIZE][SIZE];

int main(void)
{
	double trace = 0;
	uint64_t bits;

	preparation_starts();
	for (int i = 0; i < SIZE; i++)
		for (int j = 0; j < SIZE; j++) {
			a[i][j] = (double)(random64() >> 40) / (1 << 24);
			b[i][j] = (double)(random64() >> 40) / (1 << 24);
		}

	work_starts();
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < SIZE; i++)
			for (int k = 0; k < SIZE; k++) {
				double factor = a[i][k];

				for (int j = 0; j < SIZE; j++)
					c[i][j] += factor * b[k][j];
			}
	for (int i = 0; i < SIZE; i++)
		trace += c[i][i];
	memcpy(&bits, &trace, sizeof(bits));
	return work_ends(bits);
}
