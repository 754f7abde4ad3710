/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Copies of blocks, eight words at a time. */
#include "program.h"

static uint64_t a[1024], b[1024];
void setup(void)
{
	for (int i = 0; i < 1024; i++)
		a[i] = random64();
}
static __attribute__((noinline)) void cp(void *d, const void *s, size_t n)
{
	uint64_t *x = d;
	const uint64_t *y = s;
	n /= 8;
	while (n >= 8) {
		uint64_t t0 = y[0], t1 = y[1], t2 = y[2], t3 = y[3], t4 = y[4], t5 = y[5],
			 t6 = y[6], t7 = y[7];
		x[0] = t0;
		x[1] = t1;
		x[2] = t2;
		x[3] = t3;
		x[4] = t4;
		x[5] = t5;
		x[6] = t6;
		x[7] = t7;
		x += 8;
		y += 8;
		n -= 8;
	}
	while (n--)
		*x++ = *y++;
}
uint64_t bench(void)
{
	for (int i = 0; i < 12; i++) {
		cp(b, a, 8192 - 8 * (i & 3));
		cp(a + i, b, 4096);
	}
	return b[77];
}
