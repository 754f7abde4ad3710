/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Merge sort of a linked list. */
#include "program.h"

struct n {
	struct n *next;
	int v;
	int pad[5];
};
static struct n pool[512];
void setup(void)
{
	for (int i = 0; i < 512; i++) {
		pool[i].v = random64() & 0xffff;
	}
}
static struct n *merge(struct n *a, struct n *b)
{
	struct n h, *t = &h;
	while (a && b) {
		if (a->v <= b->v) {
			t->next = a;
			t = a;
			a = a->next;
		} else {
			t->next = b;
			t = b;
			b = b->next;
		}
	}
	t->next = a ? a : b;
	return h.next;
}
static struct n *sort(struct n *l)
{
	if (!l || !l->next)
		return l;
	struct n *s = l, *f = l->next;
	while (f && f->next) {
		s = s->next;
		f = f->next->next;
	}
	struct n *r = s->next;
	s->next = 0;
	return merge(sort(l), sort(r));
}
uint64_t bench(void)
{
	for (int i = 0; i < 511; i++)
		pool[i].next = &pool[i + 1];
	pool[511].next = 0;
	struct n *l = sort(pool);
	uint64_t h = 0;
	while (l) {
		h = h * 7 + l->v;
		l = l->next;
	}
	return h;
}
