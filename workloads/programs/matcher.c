/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Patterns matched by functions that are called through pointers. */
#include "program.h"

#define N 800
static char in[N + 1];
struct item {
	int (*one)(const struct item *, char);
	char a, b, star;
};

static int is(const struct item *t, char c)
{
	return c == t->a;
}
static int within(const struct item *t, char c)
{
	return c >= t->a && c <= t->b;
}
static int any(const struct item *t, char c)
{
	return c != t->b;
}
static int other(const struct item *t, char c)
{
	return c && c != t->a;
}
static const struct item pattern[3][5] = {
	{{is, 'a', 0, 0}, {within, 'b', 'd', 1}, {is, 'e', 0, 0}, {0, 0, 0, 0}},
	{{within, 'c', 'f', 0}, {any, 0, 0, 0}, {is, 'a', 0, 1}, {is, 'b', 0, 0}, {0, 0, 0, 0}},
	{{other, 'a', 0, 0}, {other, 'b', 0, 0}, {is, 'g', 0, 0}, {0, 0, 0, 0}}};

void setup(void)
{
	for (int i = 0; i < N; i++)
		in[i] = 'a' + (random64() & 7);
}
static int match(const struct item *t, const char *s)
{
	for (; t->one; t++) {
		if (t->star) {
			for (;; s++) {
				if (match(t + 1, s))
					return 1;
				if (!t->one(t, *s))
					return 0;
			}
		}
		if (!t->one(t, *s++))
			return 0;
	}
	return 1;
}
uint64_t bench(void)
{
	uint64_t h = 0;
	for (int i = 0; i < N; i++)
		for (int k = 0; k < 3; k++)
			h = h * 3 + match(pattern[k], in + i);
	return h;
}
