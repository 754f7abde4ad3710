/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The atomic operations that PARSEC's canneal uses, by the compiler's own: PARSEC 3.0 has them for older architectures alone.
 * scripts/run-spec puts this file in the place of canneal's atomic/atomic.h, in its copy of the suite. */
#ifndef TIPSIM_CANNEAL_ATOMIC_H
#define TIPSIM_CANNEAL_ATOMIC_H

static inline unsigned long atomic_load_acq_ptr(volatile unsigned long *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static inline void atomic_store_rel_ptr(volatile unsigned long *at, unsigned long value)
{
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
}

/* 1 if it was `expected`, and is `value` now. */
static inline int atomic_cmpset_ptr(volatile unsigned long *at, unsigned long expected, unsigned long value)
{
	return __atomic_compare_exchange_n(at, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

#endif
