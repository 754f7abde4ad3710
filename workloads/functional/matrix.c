/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Products of matrices of doubles. */
#include "bare.h"

#define SIZE 128
#define ROUNDS 16

static double a[SIZE][SIZE], b[SIZE][SIZE], c[SIZE][SIZE];

int main(void)
{
	union {
		double value;
		uint64_t bits;
	} trace = { 0 };

	for (int i = 0; i < SIZE; i++)
		for (int j = 0; j < SIZE; j++) {
			a[i][j] = (double)(random64() >> 40) / (1 << 24);
			b[i][j] = (double)(random64() >> 40) / (1 << 24);
		}
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < SIZE; i++)
			for (int k = 0; k < SIZE; k++) {
				double factor = a[i][k];

				for (int j = 0; j < SIZE; j++)
					c[i][j] += factor * b[k][j];
			}
	for (int i = 0; i < SIZE; i++)
		trace.value += c[i][i];
	return result(trace.bits);
}
