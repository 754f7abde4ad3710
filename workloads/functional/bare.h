/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the programs of scripts/bench functional share. */
#ifndef TIPSIM_BARE_H
#define TIPSIM_BARE_H

#include "../random.h"

/* The result, on the serial port. */
static inline int result(uint64_t value)
{
	volatile uint8_t *uart = (volatile uint8_t *)0x10000000;

	for (int shift = 60; shift >= 0; shift -= 4)
		*uart = "0123456789abcdef"[value >> shift & 15];
	*uart = '\n';
	return 0;
}

#endif
