/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Edit distances: minima that are branches. */
#include "program.h"

#define N 64
static char word[4][N];
static uint16_t row[N + 1];

void setup(void)
{
	for (int k = 0; k < 4; k++)
		for (int i = 0; i < N; i++)
			word[k][i] = 'a' + (random64() & 3);
}
static __attribute__((noinline)) int distance(const char *a, const char *b)
{
	for (int j = 0; j <= N; j++)
		row[j] = j;
	for (int i = 1; i <= N; i++) {
		int diagonal = row[0];
		row[0] = i;
		for (int j = 1; j <= N; j++) {
			int d = diagonal + (a[i - 1] != b[j - 1]);
			diagonal = row[j];
			if (row[j] + 1 < d)
				d = row[j] + 1;
			if (row[j - 1] + 1 < d)
				d = row[j - 1] + 1;
			row[j] = d;
		}
	}
	return row[N];
}
uint64_t bench(void)
{
	return distance(word[0], word[1]) * 10000 + distance(word[2], word[3]);
}
