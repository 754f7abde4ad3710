/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Short copies, fills and comparisons of any length and alignment. */
#include "program.h"

static uint8_t from[4096], to[4096];
static uint16_t job[300];

void setup(void)
{
	for (int i = 0; i < 4096; i++)
		from[i] = random64() & 1;
	for (int i = 0; i < 300; i++)
		job[i] = random64();
}
static __attribute__((noinline)) void copy(uint8_t *d, const uint8_t *s, unsigned n)
{
	for (; n && (uintptr_t)d & 7; n--)
		*d++ = *s++;
	if (!(((uintptr_t)d ^ (uintptr_t)s) & 7))
		for (; n >= 8; n -= 8, d += 8, s += 8)
			*(uint64_t *)d = *(const uint64_t *)s;
	while (n--)
		*d++ = *s++;
}
static __attribute__((noinline)) int compare(const uint8_t *a, const uint8_t *b, unsigned n)
{
	for (; n; n--, a++, b++)
		if (*a != *b)
			return *a - *b;
	return 0;
}
uint64_t bench(void)
{
	uint64_t h = 0;
	for (int i = 0; i < 300; i++) {
		unsigned n = job[i] & 63, at = job[i] >> 4 & 0xff0, by = job[i] >> 6 & 15;
		copy(to + (at ^ 0x50), from + (at & 0xf00) + by, n);
		h = h * 3 + compare(to + at, from + by, n);
	}
	for (int i = 0; i < 4096; i += 8)
		h = h * 5 + *(uint64_t *)(to + i);
	return h;
}
