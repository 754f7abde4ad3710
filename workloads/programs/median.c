/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A median filter: branches that depend on data. */
#include "program.h"

#define N 2000
static int a[N], b[N];
void setup(void)
{
	for (int i = 0; i < N; i++)
		a[i] = random64() % 1000;
}
uint64_t bench(void)
{
	uint64_t h = 0;
	for (int r = 0; r < 2; r++) {
		b[0] = 0;
		b[N - 1] = 0;
		for (int i = 1; i < N - 1; i++) {
			int A = a[i - 1], B = a[i], C = a[i + 1];
			if (A < B) {
				if (B < C)
					b[i] = B;
				else if (C < A)
					b[i] = A;
				else
					b[i] = C;
			} else {
				if (A < C)
					b[i] = A;
				else if (C < B)
					b[i] = B;
				else
					b[i] = C;
			}
		}
		for (int i = 0; i < N; i++)
			h += b[i];
	}
	return h;
}
