/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a compiler takes to be there. */
#include <stddef.h>

void *memset(void *p, int c, size_t n)
{
	unsigned char *q = p;

	while (n--)
		*q++ = c;
	return p;
}

void *memcpy(void *d, const void *s, size_t n)
{
	unsigned char *a = d;
	const unsigned char *b = s;

	while (n--)
		*a++ = *b++;
	return d;
}

void abort(void)
{
	for (;;)
		;
}
