/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Heap sort. */
#include "program.h"

#define N 700
static int64_t a[N];

void setup(void)
{
	for (int i = 0; i < N; i++)
		a[i] = random64() >> 1;
}
static void sift(int i, int n)
{
	int64_t v = a[i];
	for (int c; (c = 2 * i + 1) < n; i = c) {
		if (c + 1 < n && a[c + 1] > a[c])
			c++;
		if (a[c] <= v)
			break;
		a[i] = a[c];
	}
	a[i] = v;
}
uint64_t bench(void)
{
	for (int i = N / 2; i-- > 0;)
		sift(i, N);
	for (int n = N - 1; n > 0; n--) {
		int64_t t = a[0];
		a[0] = a[n];
		a[n] = t;
		sift(0, n);
	}
	uint64_t h = 0;
	for (int i = 0; i < N; i++)
		h = h * 31 + a[i];
	return h;
}
