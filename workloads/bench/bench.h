/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the programs of scripts/bench timing share. Preparation runs before the region of interest. */
#ifndef TIPSIM_BENCH_H
#define TIPSIM_BENCH_H

#include <stdio.h>
#include <stdlib.h>

#include "../random.h"
#include "region.h"

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
