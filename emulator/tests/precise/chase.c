// Loads that wait for each other, in 1 MiB of which each line is read once a round, in an order that no prefetcher knows. Prints the
// address of its data, their bytes, and the cycles of a load.
#include <stdint.h>
#include <stdio.h>

#define LINES (1 << 20 >> 6)
static struct line { struct line *next; char rest[56]; } lines[LINES] __attribute__((aligned(64)));

static uint64_t cycles(void) { uint64_t n; __asm__ volatile("rdcycle %0" : "=r"(n)); return n; }

__attribute__((noinline)) struct line *chase(struct line *at, long loads)
{
	while (loads--)
		at = at->next;
	return at;
}

int main(void)
{
	// A permutation of one cycle: an odd multiplier and an odd increment modulo a power of two, walked as a full-period generator.
	for (uint32_t n = 0; n < LINES; n++)
		lines[n].next = &lines[(n * 1664525u + 1013904223u) % LINES];
	uint64_t start = cycles();
	struct line *last = chase(lines, 100000);
	uint64_t took = cycles() - start;
	printf("%lx %lx %lu %d\n", (unsigned long)lines, (unsigned long)sizeof lines, took / 100000, last == lines);
	return 0;
}
