/*
 * floor and ceil for LD_PRELOAD, in place of the C library's. Those save the FP exception flags (frflags) and restore them
 * (fsflags), so that the conversion's "inexact" is not seen; both instructions wait for the pipeline to drain, and flush it.
 * C (annex F.10.6.1 and F.10.6.2) allows "inexact" to be raised. With ZFA defined they are the one instruction of that extension.
 */
#ifdef ZFA
/* fround.d, static rounding mode MODE: 2 down, 3 up. */
#define ROUND(name, mode, number) \
	double name(double x) \
	{ \
		__asm__(".insn r 0x53, " number ", 0x21, %0, %0, f4" : "+f"(x)); \
		return x; \
	}
#else
#define ROUND(name, mode, number) \
	double name(double x) \
	{ \
		double size = __builtin_fabs(x), rounded; \
		long whole; \
		if (!(size < 0x1p52)) \
			return x; /* an integer, infinite, or no number */ \
		__asm__("fcvt.l.d %0, %1, " mode : "=r"(whole) : "f"(x)); \
		__asm__("fcvt.d.l %0, %1" : "=f"(rounded) : "r"(whole)); \
		return __builtin_copysign(rounded, x); \
	}
#endif

ROUND(floor, "rdn", "2")
ROUND(ceil, "rup", "3")
