/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the programs that were measured on BOOM's RTL share. */
#ifndef TIPSIM_PROGRAM_H
#define TIPSIM_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "../random.h"

/* Prepares the data; not measured. */
void setup(void);

/* The program; what it returns is compared. */
uint64_t bench(void);

#endif
