/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Quicksort. */
#include "program.h"

#define N 1024
static int32_t a[N];
void setup(void)
{
	for (int i = 0; i < N; i++)
		a[i] = random64();
}
static void qs(int32_t *p, int lo, int hi)
{
	while (lo < hi) {
		int32_t v = p[(lo + hi) / 2];
		int i = lo, j = hi;
		while (i <= j) {
			while (p[i] < v)
				i++;
			while (p[j] > v)
				j--;
			if (i <= j) {
				int32_t t = p[i];
				p[i] = p[j];
				p[j] = t;
				i++;
				j--;
			}
		}
		if (j - lo < hi - i) {
			qs(p, lo, j);
			lo = i;
		} else {
			qs(p, i, hi);
			hi = j;
		}
	}
}
uint64_t bench(void)
{
	qs(a, 0, N - 1);
	uint64_t h = 0;
	for (int i = 0; i < N; i++)
		h = h * 31 + a[i];
	return h;
}
