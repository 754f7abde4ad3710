// Rounding up: as C libraries do it, which keeps the flags of the FPU and so flushes the pipeline, then without.
#include <stdio.h>

#include "region.h"

enum { N = 1 << 10, ROUNDS = 60 };
static double data[N];

static inline double ceiling(double x) {
    long whole;
#ifdef AFTER
    __asm__("fcvt.l.d %0, %1, rup" : "=r"(whole) : "f"(x));
#else
    unsigned long flags;
    __asm__ volatile("frflags %0" : "=r"(flags));
    __asm__ volatile("fcvt.l.d %0, %1, rup" : "=r"(whole) : "f"(x));
    __asm__ volatile("fsflags %0" : : "r"(flags));
#endif
    return whole;
}

__attribute__((noipa)) static double sum(void) {
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += ceiling(data[i]) * data[i];
    return sum;
}

int main(void) {
    double all = 0;
    for (int i = 0; i < N; i++)
        data[i] = i * 0.37;
    TIPSIM_REGION_START();
    for (int round = 0; round < ROUNDS; round++)
        all += sum();
    TIPSIM_REGION_STOP();
    printf("%g\n", all);
}
