/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A product of integer matrices. */
#include "program.h"

#define N 28
static int a[N][N], b[N][N], c[N][N];
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
		for (int k = 0; k < N; k++) {
			int x = a[i][k];
			for (int j = 0; j < N; j++)
				c[i][j] += x * b[k][j];
		}
	return c[3][4];
}
