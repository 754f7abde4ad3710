// Scaling an array: a division each, then a multiplication by the reciprocal.
#include <stdio.h>

#include "region.h"

enum { N = 1 << 10, ROUNDS = 120 };
static double data[N], scaled[N];

__attribute__((noipa)) static void scale(double by) {
#ifdef AFTER
    double reciprocal = 1 / by;
#endif
    for (int i = 0; i < N; i++)
#ifdef AFTER
        scaled[i] = data[i] * reciprocal;
#else
        scaled[i] = data[i] / by;
#endif
}

int main(void) {
    for (int i = 0; i < N; i++)
        data[i] = i;
    TIPSIM_REGION_START();
    for (int round = 0; round < ROUNDS; round++)
        scale(round + 3);
    TIPSIM_REGION_STOP();
    printf("%g\n", scaled[N - 1]);
}
