/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Queens on a board, by recursion on bits. */
#include "program.h"

void setup(void)
{
}
static int q(uint32_t all, uint32_t c, uint32_t l, uint32_t r)
{
	if (c == all)
		return 1;
	int n = 0;
	uint32_t p = all & ~(c | l | r);
	while (p) {
		uint32_t b = p & -p;
		p -= b;
		n += q(all, c | b, (l | b) << 1, (r | b) >> 1);
	}
	return n;
}
uint64_t bench(void)
{
	return q(127, 0, 0, 0) + q(31, 0, 0, 0);
}
