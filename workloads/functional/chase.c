/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A chain of pointers through 8 MiB in random order. */
#include "bare.h"

#define NODES (1 << 17)
#define STEPS 20000000

static struct node {
	struct node *next;
	uint64_t value;
	char line[48];
} nodes[NODES];
static uint32_t order[NODES];

int main(void)
{
	struct node *at = nodes;
	uint64_t sum = 0;

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
	for (uint32_t n = 0; n < STEPS; n++) {
		sum = sum * 5 + at->value;
		at = at->next;
	}
	return result(sum);
}
