/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* 128 functions behind a table of pointers: indirect calls, more code than the predictors hold. */
#include "program.h"

#define A(n)                                                                                       \
	static __attribute__((noinline)) uint64_t f##n(uint64_t x)                                 \
	{                                                                                          \
		x ^= x << (n % 13 + 1);                                                            \
		x += n * 0x9e37;                                                                   \
		if (x & (1 << (n % 7)))                                                            \
			x ^= x >> 3;                                                               \
		else                                                                               \
			x += n;                                                                    \
		x *= 5;                                                                            \
		return x ^ (x >> (n % 29 + 1));                                                    \
	}
#define A8(n) A(n##0) A(n##1) A(n##2) A(n##3) A(n##4) A(n##5) A(n##6) A(n##7)
A8(1)
A8(2) A8(3) A8(4) A8(5) A8(6) A8(7) A8(8) A8(11) A8(12) A8(13) A8(14) A8(15) A8(16) A8(17)
    A8(18) typedef uint64_t (*F)(uint64_t);
#define T8(n) f##n##0, f##n##1, f##n##2, f##n##3, f##n##4, f##n##5, f##n##6, f##n##7
static const F tab[128] = {T8(1),  T8(2),  T8(3),  T8(4),  T8(5),  T8(6),  T8(7),  T8(8),
			   T8(11), T8(12), T8(13), T8(14), T8(15), T8(16), T8(17), T8(18)};
void setup(void)
{
}
uint64_t bench(void)
{
	uint64_t x = 1;
	for (int i = 0; i < 1500; i++)
		x = tab[(x >> 5 ^ i) & 127](x + i);
	return x;
}
