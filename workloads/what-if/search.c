// Binary searches: with a branch that nobody can foresee; branchless, where the next load's address waits for the comparison; and eight
// searches side by side.
#include <stdio.h>

#include "../random.h"
#include "region.h"

enum { N = 1 << 12, SEARCHES = 8192, SIDE = 8 };
static unsigned sorted[N], wanted[SEARCHES];

#ifdef AFTER
__attribute__((noipa)) static unsigned search(const unsigned *x) {
    const unsigned *base[SIDE];
    for (int i = 0; i < SIDE; i++)
        base[i] = sorted;
    for (unsigned half = N / 2; half; half /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < SIDE; i++)
            base[i] += -(unsigned long)(base[i][half - 1] < x[i]) & half;
    unsigned sum = 0;
    for (int i = 0; i < SIDE; i++)
        sum += base[i] - sorted;
    return sum;
}
#else
__attribute__((noipa)) static unsigned search(const unsigned *x) {
    unsigned sum = 0;
    const unsigned *first = sorted;
    // A compiler would make the address anew for each branchless search, and the loads would wait for it.
    asm("" : "+r"(first));
    for (int i = 0; i < SIDE; i++) {
        const unsigned *base = first;
        for (unsigned long half = N / 2; half; half /= 2) {
#ifdef AFTER_SELECT
            const unsigned long mask = -(unsigned long)(base[half - 1] < x[i]);
            base = (const unsigned *)((const char *)base + (mask & half * sizeof *base));
#else
            if (base[half - 1] < x[i]) {
                base += half;
                // No compiler makes a mask of it.
                asm volatile("" : "+r"(base));
            }
#endif
        }
        sum += base - first;
    }
    return sum;
}
#endif

int main(void) {
    unsigned all = 0;
    for (int i = 0; i < N; i++)
        sorted[i] = i << 20;
    for (int i = 0; i < SEARCHES; i++)
        wanted[i] = random64() >> 32;
    TIPSIM_REGION_START();
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < SEARCHES; i += SIDE)
            all += search(&wanted[i]);
    TIPSIM_REGION_STOP();
    printf("%u\n", all);
}
