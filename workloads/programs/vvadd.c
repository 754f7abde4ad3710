/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Vectors added. */
#include "program.h"

#define N 2000
static int a[N], b[N], c[N];
void setup(void)
{
	for (int i = 0; i < N; i++) {
		a[i] = i;
		b[i] = 2 * i;
	}
}
uint64_t bench(void)
{
	for (int r = 0; r < 4; r++)
		for (int i = 0; i < N; i++)
			c[i] = a[i] + b[i];
	return c[N - 1];
}
