/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Euclid's algorithm: remainders, one after the other. */
#include "program.h"

void setup(void)
{
}
uint64_t bench(void)
{
	uint64_t h = 0;
	for (int i = 0; i < 150; i++) {
		uint64_t a = random64() >> 20 | 1, b = random64() >> 30 | 1;
		while (b) {
			uint64_t t = a % b;
			a = b;
			b = t;
		}
		h += a;
	}
	return h;
}
