/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Radix sort. */
#include "program.h"

#define N 2048
static uint32_t a[N], b[N];
static uint32_t c[256];
void setup(void)
{
	for (int i = 0; i < N; i++)
		a[i] = random64();
}
uint64_t bench(void)
{
	uint32_t *s = a, *d = b;
	for (int k = 0; k < 32; k += 8) {
		for (int i = 0; i < 256; i++)
			c[i] = 0;
		for (int i = 0; i < N; i++)
			c[s[i] >> k & 255]++;
		uint32_t t = 0;
		for (int i = 0; i < 256; i++) {
			uint32_t x = c[i];
			c[i] = t;
			t += x;
		}
		for (int i = 0; i < N; i++)
			d[c[s[i] >> k & 255]++] = s[i];
		uint32_t *q = s;
		s = d;
		d = q;
	}
	return s[N / 2];
}
