/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The towers of Hanoi. */
#include "program.h"

static int st[3][16], top[3];
static uint64_t moves;
void setup(void)
{
	for (int i = 0; i < 10; i++)
		st[0][i] = 10 - i;
	top[0] = 10;
}
static __attribute__((noinline)) void mv(int a, int b)
{
	int v = st[a][--top[a]];
	st[b][top[b]++] = v;
	moves++;
}
static __attribute__((noinline)) void han(int n, int a, int b, int c)
{
	if (n == 0)
		return;
	han(n - 1, a, c, b);
	mv(a, b);
	han(n - 1, c, b, a);
}
uint64_t bench(void)
{
	han(10, 0, 1, 2);
	han(10, 1, 2, 0);
	return moves * 1000 + st[2][3];
}
