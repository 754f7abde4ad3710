/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A radix-2 FFT of doubles. */
#include "program.h"

#define N 256
static double re[N], im[N], wr[N / 2], wi[N / 2];
void setup(void)
{
	for (int i = 0; i < N; i++) {
		re[i] = (double)(int)(random64() & 255);
		im[i] = 0;
	}
	double c = 1, s = 0;
	for (int i = 0; i < N / 2; i++) {
		wr[i] = c;
		wi[i] = s;
		double c2 = c * 0.99969881869620425 - s * 0.024541228522912288;
		s = s * 0.99969881869620425 + c * 0.024541228522912288;
		c = c2;
	}
}
uint64_t bench(void)
{
	for (int i = 0, j = 0; i < N; i++) {
		if (i < j) {
			double t = re[i];
			re[i] = re[j];
			re[j] = t;
			t = im[i];
			im[i] = im[j];
			im[j] = t;
		}
		int m = N >> 1;
		while (m >= 1 && (j & m)) {
			j ^= m;
			m >>= 1;
		}
		j |= m;
	}
	for (int len = 2; len <= N; len <<= 1) {
		int st = N / len;
		for (int i = 0; i < N; i += len)
			for (int k = 0; k < len / 2; k++) {
				double c = wr[k * st], s = wi[k * st];
				int a = i + k, b = a + len / 2;
				double xr = re[b] * c - im[b] * s, xi = re[b] * s + im[b] * c;
				re[b] = re[a] - xr;
				im[b] = im[a] - xi;
				re[a] += xr;
				im[a] += xi;
			}
	}
	return (uint64_t)(re[1] * re[1]);
}
