/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Streams through memory: misses of the L2. */
#include "program.h"

#define N 16384
static uint64_t a[N], b[N];
void setup(void)
{
}
uint64_t bench(void)
{
	uint64_t s = 0;
	for (int i = 0; i < N; i++)
		a[i] = i;
	for (int i = 0; i < N; i++)
		b[i] = a[i] * 3;
	for (int i = 0; i < N; i++)
		s += b[i];
	return s;
}
