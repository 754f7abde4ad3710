/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A five-point stencil of floats, with divisions. */
#include "program.h"

#define N 64
static float g[N][N], h[N][N];
void setup(void)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			g[i][j] = (float)(int)(random64() & 63);
}
uint64_t bench(void)
{
	for (int r = 0; r < 2; r++) {
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++) {
				h[i][j] = 0.2f * (g[i][j] + g[i - 1][j] + g[i + 1][j] +
						  g[i][j - 1] + g[i][j + 1]);
				if (h[i][j] > 40.f)
					h[i][j] /= 1.5f;
			}
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				g[i][j] = h[i][j];
	}
	return (uint64_t)g[9][9];
}
