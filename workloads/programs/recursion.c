/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ackermann's function and Fibonacci's, by recursion. */
#include "program.h"

void setup(void)
{
}
static __attribute__((noinline)) uint32_t ackermann(uint32_t m, uint32_t n)
{
	if (!m)
		return n + 1;
	return ackermann(m - 1, n ? ackermann(m, n - 1) : 1);
}
static __attribute__((noinline, optimize("O1"))) uint32_t fibonacci(uint32_t n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
uint64_t bench(void)
{
	return (uint64_t)ackermann(2, 30) << 32 | fibonacci(16);
}
