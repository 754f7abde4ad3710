/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A binary tree: insertions by recursion, and a walk. */
#include "program.h"

struct t {
	struct t *l, *r;
	uint32_t k;
	int c;
};
static struct t p[600];
static int u;
void setup(void)
{
}
static __attribute__((noinline)) struct t *ins(struct t *n, uint32_t k)
{
	if (!n) {
		n = &p[u++];
		n->k = k;
		n->c = 1;
		return n;
	}
	if (k < n->k)
		n->l = ins(n->l, k);
	else if (k > n->k)
		n->r = ins(n->r, k);
	else
		n->c++;
	return n;
}
static uint64_t walk(struct t *n)
{
	return n ? walk(n->l) * 3 + n->k * n->c + walk(n->r) : 1;
}
uint64_t bench(void)
{
	struct t *r = 0;
	for (int i = 0; i < 550; i++)
		r = ins(r, random64() % 4096);
	return walk(r);
}
