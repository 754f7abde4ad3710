/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A chase of pointers through 512 KiB. */
#include "program.h"

#define N 8192
static struct {
	uint32_t n;
	uint32_t pad[15];
} r[N];
void setup(void)
{
	for (int i = 0; i < N; i++)
		r[i].n = (i * 2731 + 17) & (N - 1);
}
uint64_t bench(void)
{
	uint32_t i = 0;
	uint64_t s = 0;
	for (int k = 0; k < 3000; k++) {
		i = r[i].n;
		s += i;
	}
	return s;
}
