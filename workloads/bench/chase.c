/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A chain of pointers through 64 MiB in random order: eight times the last-level cache, so most loads miss it. */
#include "bench.h"

#define NODES (1 << 20)
#define STEPS 4000000

struct node {
	struct node *next;
	uint64_t value;
	char line[48];
};

int main(void)
{
	struct node *nodes, *at;
	uint32_t *order;
	uint64_t sum = 0;

	preparation_starts();
	nodes = aligned_alloc(64, NODES * sizeof(*nodes));
	order = malloc(NODES * sizeof(*order));
	if (!nodes || !order)
		return 1;
	for (uint32_t n = 0; n < NODES; n++)
		order[n] = n;
	/* Sattolo's shuffle: one cycle through all. */
	for (uint32_t n = NODES - 1; n > 0; n--) {
		uint32_t other = random64() % n, kept = order[n];

		order[n] = order[other];
		order[other] = kept;
	}
	for (uint32_t n = 0; n < NODES; n++) {
		nodes[order[n]].next = &nodes[order[(n + 1) % NODES]];
		nodes[order[n]].value = n;
	}

	work_starts();
	at = nodes;
	for (uint32_t n = 0; n < STEPS; n++) {
		sum = sum * 5 + at->value;
		at = at->next;
	}
	return work_ends(sum);
}
