/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loops of five slots of which 1 to 5 incur an event, the others do the same without it, so that the event's true distribution over
 * instructions is known beforehand. usage: mix KIND SHARE EVENTS
 *
 * mispredict  a branch on a random bit         else a branch that is never taken
 * l1d         a load from 1 MiB, anywhere      else a load of one line
 * dtlb        a load from 64 MiB, anywhere     else a load of one page
 * store       a store to 4 KiB                 else an addition
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "region.h"

static uint64_t state = 88172645463325252u;
static char near_lines[4096] __attribute__((aligned(4096)));
static char *far_lines;
static uint64_t sum;

/* Marsaglia's xorshift. */
static inline uint64_t random64(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

#define BRANCH(bit)                                                            \
	asm volatile("beqz %1, 1f\n\taddi %0, %0, 1\n1:"                       \
		     : "+r"(sum) : "r"((bit)))
#define LOAD(from) asm volatile("ld %0, 0(%1)" : "=r"(value) : "r"(from))

#define mispredict_yes(n) BRANCH(bits >> (9 * n) & 1)
#define mispredict_no(n) BRANCH(zero)
#define l1d_yes(n) LOAD(far_lines + (bits >> (9 * n) & 0x3fff) * 64)
#define l1d_no(n) LOAD(near_lines + 8 * n)
#define dtlb_yes(n) LOAD(far_lines + (bits >> (9 * n) & 0x3fff) * 4096 + (bits >> n & 63) * 64)
#define dtlb_no(n) LOAD(near_lines + 8 * n)
#define store_yes(n) asm volatile("sd %0, 0(%1)" ::"r"(bits), "r"(near_lines + (bits >> (9 * n) & 511) * 8) : "memory")
#define store_no(n) asm volatile("addi %0, %0, 1" : "+r"(value))

/* A function for each kind and share: its slots are instructions of its own. */
#define LOOP(kind, share, s0, s1, s2, s3, s4)                                  \
	__attribute__((noinline)) static void kind##_##share(long rounds)      \
	{                                                                      \
		uint64_t zero = 0, value = 0;                                  \
                                                                               \
		asm volatile("" : "+r"(zero), "+r"(value));                    \
		while (rounds--) {                                             \
			uint64_t bits = random64();                            \
                                                                               \
			kind##_##s0(0);                                        \
			kind##_##s1(1);                                        \
			kind##_##s2(2);                                        \
			kind##_##s3(3);                                        \
			kind##_##s4(4);                                        \
			(void)bits;                                            \
		}                                                              \
		sum += zero + value;                                           \
	}

#define KIND(kind)                                                             \
	LOOP(kind, 20, yes, no, no, no, no)                                    \
	LOOP(kind, 40, yes, no, yes, no, no)                                   \
	LOOP(kind, 60, yes, no, yes, no, yes)                                  \
	LOOP(kind, 80, yes, yes, yes, no, yes)                                 \
	LOOP(kind, 100, yes, yes, yes, yes, yes)

KIND(mispredict)
KIND(l1d)
KIND(dtlb)
KIND(store)

#define ROWS(kind, memory, slots)                                              \
	{ #kind, memory, slots, { kind##_20, kind##_40, kind##_60, kind##_80, kind##_100 } }

static const struct {
	const char *name;
	size_t memory;
	/* Slots for one event, on average. */
	int per_event;
	void (*loops[5])(long rounds);
} kinds[] = {
	ROWS(mispredict, 0, 2),
	ROWS(l1d, 1 << 20, 1),
	ROWS(dtlb, 64 << 20, 1),
	ROWS(store, 0, 1),
};

static int usage(void)
{
	fprintf(stderr, "usage: mix mispredict|l1d|dtlb|store 20|40|60|80|100 EVENTS\n");
	return 2;
}

int main(int argc, char **argv)
{
	long share, events;

	if (argc != 4)
		return usage();
	share = atol(argv[2]);
	events = atol(argv[3]);
	if (share < 20 || share > 100 || share % 20 || events <= 0)
		return usage();
	for (size_t n = 0; n < sizeof(kinds) / sizeof(*kinds); n++) {
		if (strcmp(argv[1], kinds[n].name))
			continue;
		if (kinds[n].memory) {
			far_lines = aligned_alloc(4096, kinds[n].memory);
			if (!far_lines)
				return 1;
			memset(far_lines, 1, kinds[n].memory);
		}
		/* Only this is timed (run.region = "marked"). */
		TIPSIM_REGION_START();
		kinds[n].loops[share / 20 - 1](events * kinds[n].per_event * 20 / share);
		TIPSIM_REGION_STOP();
		return sum == 42;
	}
	return usage();
}
