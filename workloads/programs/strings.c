/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Strings: copies and comparisons, a byte at a time. */
#include "program.h"

static char buf[64][32];
static char text[2048];
static __attribute__((noinline)) int cmp(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a - *b;
}
static __attribute__((noinline)) char *cpy(char *d, const char *s)
{
	char *r = d;
	while ((*d++ = *s++))
		;
	return r;
}
void setup(void)
{
	for (int i = 0; i < 2047; i++) {
		int c = random64() % 40;
		text[i] = c < 26 ? 'a' + c : c < 36 ? '0' + c - 26 : ' ';
	}
}
uint64_t bench(void)
{
	int n = 0;
	char w[32];
	int l = 0;
	uint64_t h = 0;
	for (int i = 0; text[i]; i++) {
		char c = text[i];
		if (c == ' ' || l == 30) {
			w[l] = 0;
			l = 0;
			int j;
			for (j = 0; j < n; j++) {
				int r = cmp(buf[j], w);
				if (r == 0)
					break;
				if (r > 0) {
					h++;
				}
			}
			if (j == n && n < 64)
				cpy(buf[n++], w);
		} else if (c >= '0' && c <= '9') {
			h = h * 10 + c - '0';
			w[l++] = c;
		} else
			w[l++] = c;
	}
	return h + n;
}
