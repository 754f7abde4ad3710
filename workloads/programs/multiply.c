/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Multiplication by shifts and additions. */
#include "program.h"

#define N 100
static int a[N], b[N], c[N];
void setup(void)
{
	for (int i = 0; i < N; i++) {
		a[i] = random64() & 0xffff;
		b[i] = random64() & 0xffff;
	}
}
static __attribute__((noinline)) int mul(int x, int y)
{
	int r = 0;
	for (int i = 0; i < 32; i++) {
		if (x & 1)
			r += y;
		x >>= 1;
		y <<= 1;
	}
	return r;
}
uint64_t bench(void)
{
	uint64_t h = 0;
	for (int k = 0; k < 4; k++)
		for (int i = 0; i < N; i++) {
			c[i] = mul(a[i], b[i]);
			h += c[i];
		}
	return h;
}
