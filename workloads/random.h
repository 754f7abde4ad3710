/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random numbers for programs, hosted or bare. */
#ifndef TIPSIM_RANDOM_H
#define TIPSIM_RANDOM_H

#include <stdint.h>

static uint64_t random_state = 88172645463325252u;

/* Marsaglia's xorshift64: the same numbers everywhere. */
static inline uint64_t random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

#endif
