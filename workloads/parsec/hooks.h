/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The calls that PARSEC's programs make at the ends of their region of interest (ENABLE_PARSEC_HOOKS), as tipsim's marks. */
#ifndef TIPSIM_PARSEC_HOOKS_H
#define TIPSIM_PARSEC_HOOKS_H

#include "region.h"

#define __parsec_bench_begin(program) ((void)0)
#define __parsec_bench_end() ((void)0)
#define __parsec_roi_begin() TIPSIM_REGION_START()
#define __parsec_roi_end() TIPSIM_REGION_STOP()

#endif
