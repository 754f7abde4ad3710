/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The sieve of Eratosthenes: stores of bytes. */
#include "program.h"

#define N 8192
static uint8_t s[N];
void setup(void)
{
}
uint64_t bench(void)
{
	int n = 0;
	for (int i = 2; i < N; i++)
		if (!s[i]) {
			n++;
			for (int j = 2 * i; j < N; j += i)
				s[j] = 1;
		}
	return n;
}
