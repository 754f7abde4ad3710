// A branch that nobody foresees, in a leaf that two functions call.
#include <stdint.h>
#include <stdio.h>

static volatile long taken, missed;

__attribute__((noinline)) void leaf(uint64_t random)
{
	if (random & 1)
		taken++;
	else
		missed++;
}

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state >> 11;
}

__attribute__((noinline)) void often(uint64_t *state)
{
	for (int i = 0; i < 3; i++)
		leaf(next(state));
	__asm__ volatile("");
}

__attribute__((noinline)) void seldom(uint64_t *state)
{
	leaf(next(state));
	__asm__ volatile("");
}

int main(void)
{
	uint64_t state = 88172645463325252u;
	for (int i = 0; i < 15000; i++) {
		often(&state);
		seldom(&state);
	}
	printf("%ld\n", taken + missed);
	return 0;
}
