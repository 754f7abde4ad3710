/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bodies that attract each other: square roots and divisions. */
#include "program.h"

#define N 8
static double x[N], y[N], z[N], u[N], v[N], w[N], m[N];

void setup(void)
{
	for (int i = 0; i < N; i++) {
		x[i] = random64() % 1000;
		y[i] = random64() % 1000;
		z[i] = random64() % 1000;
		m[i] = 1 + random64() % 10;
	}
}
uint64_t bench(void)
{
	for (int step = 0; step < 25; step++) {
		for (int i = 0; i < N; i++)
			for (int j = i + 1; j < N; j++) {
				double a = x[i] - x[j], b = y[i] - y[j], c = z[i] - z[j];
				double d = a * a + b * b + c * c + 0.01, s;
				__asm__("fsqrt.d %0, %1" : "=f"(s) : "f"(d));
				double f = 0.5 / (d * s);
				u[i] -= a * m[j] * f, u[j] += a * m[i] * f;
				v[i] -= b * m[j] * f, v[j] += b * m[i] * f;
				w[i] -= c * m[j] * f, w[j] += c * m[i] * f;
			}
		for (int i = 0; i < N; i++)
			x[i] += 0.5 * u[i], y[i] += 0.5 * v[i], z[i] += 0.5 * w[i];
	}
	double s = 0;
	for (int i = 0; i < N; i++)
		s += x[i] + y[i] + z[i];
	return (int64_t)(s * 1000);
}
