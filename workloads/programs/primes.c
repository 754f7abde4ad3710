/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Modular powers: multiplications and long divisions that wait for each other. */
#include "program.h"

void setup(void)
{
}
static __attribute__((noinline)) uint64_t power(uint64_t b, uint64_t e, uint64_t m)
{
	uint64_t r = 1;
	for (; e; e >>= 1) {
		if (e & 1)
			r = r * b % m;
		b = b * b % m;
	}
	return r;
}
static int is_prime(uint64_t n)
{
	if (n % 3 == 0 || n % 5 == 0)
		return 0;
	uint64_t d = n - 1;
	int s = 0;
	for (; !(d & 1); d >>= 1)
		s++;
	for (uint64_t b = 2; b < 4; b++) {
		uint64_t x = power(b, d, n);
		if (x == 1 || x == n - 1)
			continue;
		int i = 1;
		for (; i < s && x != n - 1; i++)
			x = x * x % n;
		if (x != n - 1)
			return 0;
	}
	return 1;
}
uint64_t bench(void)
{
	uint64_t h = 0;
	for (uint64_t n = 1000001; n < 1000201; n += 2)
		if (is_prime(n))
			h = h * 7 + n;
	return h;
}
