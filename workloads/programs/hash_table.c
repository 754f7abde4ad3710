/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A hash table with chains: misses of the L1. */
#include "program.h"

#define B 512
struct e {
	struct e *next;
	uint64_t k, v;
};
static struct e *tab[B];
static struct e pool[1024];
static int used;
void setup(void)
{
}
static __attribute__((noinline)) struct e *get(uint64_t k, int add)
{
	uint64_t h = (k * 0x9e3779b97f4a7c15ull) >> 55;
	struct e *e = tab[h];
	while (e) {
		if (e->k == k)
			return e;
		e = e->next;
	}
	if (!add)
		return 0;
	e = &pool[used++];
	e->k = k;
	e->v = 0;
	e->next = tab[h];
	tab[h] = e;
	return e;
}
uint64_t bench(void)
{
	uint64_t h = 0;
	for (int i = 0; i < 3000; i++) {
		uint64_t k = random64() % 1000;
		struct e *e = get(k, 1);
		e->v += i;
	}
	for (int i = 0; i < 1000; i++) {
		struct e *e = get(i, 0);
		if (e)
			h += e->v;
	}
	return h;
}
