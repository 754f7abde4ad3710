/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A hash map of linked entries that also form a list by last use. */
#include "program.h"

#define CAPACITY 200
struct entry {
	struct entry *chain, *newer, *older;
	uint32_t key, value;
};
static struct entry *bucket[256], pool[CAPACITY], ends;
static int used;
static uint8_t wanted[3000];

void setup(void)
{
	for (int i = 0; i < 3000; i++) {
		uint64_t r = random64();
		wanted[i] = r & 3 ? r >> 8 & 127 : r >> 16;
	}
}
static void unlink(struct entry *e)
{
	e->newer->older = e->older;
	e->older->newer = e->newer;
}
static void use(struct entry *e)
{
	e->older = ends.older;
	e->newer = &ends;
	ends.older->newer = e;
	ends.older = e;
}
static __attribute__((noinline)) struct entry *get(uint32_t key, uint64_t *misses)
{
	uint32_t h = key * 2654435761u >> 24;
	for (struct entry *e = bucket[h]; e; e = e->chain)
		if (e->key == key) {
			unlink(e);
			use(e);
			return e;
		}
	++*misses;
	struct entry *e;
	if (used < CAPACITY) {
		e = &pool[used++];
	} else {
		e = ends.newer;
		unlink(e);
		struct entry **p = &bucket[e->key * 2654435761u >> 24];
		while (*p != e)
			p = &(*p)->chain;
		*p = e->chain;
	}
	e->key = key;
	e->value = 0;
	e->chain = bucket[h];
	bucket[h] = e;
	use(e);
	return e;
}
uint64_t bench(void)
{
	uint64_t h = 0, misses = 0;
	ends.newer = ends.older = &ends;
	for (int i = 0; i < 2500; i++) {
		struct entry *e = get(wanted[i], &misses);
		h = h * 3 + e->value++;
	}
	return h ^ misses << 40;
}
