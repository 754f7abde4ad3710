/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A product of matrices of doubles: one chain of additions. */
#include "program.h"

#define N 24
static double a[N][N], b[N][N], c[N][N];
void setup(void)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			a[i][j] = random64() & 255;
			b[i][j] = random64() & 255;
		}
}
uint64_t bench(void)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			double s = 0;
			for (int k = 0; k < N; k++)
				s += a[i][k] * b[k][j];
			c[i][j] = s;
		}
	return (uint64_t)c[3][4];
}
