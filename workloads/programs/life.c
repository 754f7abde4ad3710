/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The game of life. */
#include "program.h"

#define N 32
static uint8_t now[N + 2][N + 2], next[N + 2][N + 2];

void setup(void)
{
	for (int y = 1; y <= N; y++)
		for (int x = 1; x <= N; x++)
			now[y][x] = random64() % 3 == 0;
}
uint64_t bench(void)
{
	for (int step = 0; step < 1; step++) {
		for (int y = 1; y <= N; y++)
			for (int x = 1; x <= N; x++) {
				int n = 0;
				for (int dy = -1; dy <= 1; dy++)
					for (int dx = -1; dx <= 1; dx++)
						n += (dy || dx) && now[y + dy][x + dx];
				if (now[y][x])
					next[y][x] = n == 2 || n == 3;
				else
					next[y][x] = n == 3;
			}
		for (int y = 1; y <= N; y++)
			for (int x = 1; x <= N; x++)
				now[y][x] = next[y][x];
	}
	uint64_t h = 0;
	for (int y = 1; y <= N; y++)
		for (int x = 1; x <= N; x++)
			h = h * 2 + now[y][x] + (h >> 61);
	return h;
}
