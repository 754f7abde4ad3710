// A dot product: one sum, whose additions wait for each other, then four.
#include <stdio.h>

#include "region.h"

enum { N = 1 << 10, ROUNDS = 300 };
static double a[N], b[N];

__attribute__((noipa)) static double dot(void) {
#ifdef AFTER
    double s = 0, t = 0, u = 0, v = 0;
    for (int i = 0; i < N; i += 4) {
        s += a[i] * b[i];
        t += a[i + 1] * b[i + 1];
        u += a[i + 2] * b[i + 2];
        v += a[i + 3] * b[i + 3];
    }
    return s + t + (u + v);
#else
    double sum = 0;
#pragma GCC unroll 4
    for (int i = 0; i < N; i++)
        sum += a[i] * b[i];
    return sum;
#endif
}

int main(void) {
    double all = 0;
    for (int i = 0; i < N; i++)
        a[i] = i, b[i] = N - i;
    TIPSIM_REGION_START();
    for (int round = 0; round < ROUNDS; round++)
        all += dot();
    TIPSIM_REGION_STOP();
    printf("%g\n", all);
}
