/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A sparse matrix times a vector. */
#include "program.h"

#define R 200
#define NZ 10
static double v[R * NZ], x[R], y[R];
static int col[R * NZ];
void setup(void)
{
	for (int i = 0; i < R * NZ; i++) {
		v[i] = (double)(random64() & 1023);
		col[i] = random64() % R;
	}
	for (int i = 0; i < R; i++)
		x[i] = i;
}
uint64_t bench(void)
{
	for (int r = 0; r < 4; r++)
		for (int i = 0; i < R; i++) {
			double s = 0;
			for (int k = i * NZ; k < (i + 1) * NZ; k++)
				s += v[k] * x[col[k]];
			y[i] = s;
		}
	return (uint64_t)y[17];
}
