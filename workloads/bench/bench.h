/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the programs of scripts/bench timing share. Preparation runs before the region of interest. */
#ifndef TIPSIM_BENCH_H
#define TIPSIM_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "region.h"

static uint64_t random_state = 88172645463325252u;

/* Marsaglia's xorshift64: the same numbers everywhere. */
static inline uint64_t random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* The region of interest starts again where preparation is over. */
static inline void preparation_starts(void) { TIPSIM_REGION_STOP(); }
static inline void work_starts(void) { TIPSIM_REGION_START(); }

static inline int work_ends(uint64_t checksum)
{
	TIPSIM_REGION_STOP();
	printf("checksum %016llx\n", (unsigned long long)checksum);
	return 0;
}

#endif
