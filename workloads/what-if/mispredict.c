// Keys on one side of a pivot: with a branch that nobody can foresee, then without.
#include <stdio.h>

#include "../random.h"
#include "region.h"

enum { N = 1 << 12, ROUNDS = 200 };
static unsigned keys[N], low[N + 1];

__attribute__((noipa)) static unsigned below(unsigned pivot) {
    unsigned n = 0;
    for (int i = 0; i < N; i++) {
#if defined AFTER || defined AFTER_SELECT
        low[n] = keys[i];
        n += keys[i] < pivot;
#else
        if (keys[i] < pivot)
            low[n++] = keys[i];
#endif
    }
    return n;
}

int main(void) {
    unsigned sum = 0;
    for (int i = 0; i < N; i++)
        keys[i] = random64() >> 33;
    TIPSIM_REGION_START();
    // Another pivot each time: its branches are never the same.
    for (int round = 0; round < ROUNDS; round++)
        sum += below((1u << 30) + round * 1000003u % (1u << 20) * 16);
    TIPSIM_REGION_STOP();
    printf("%u %u\n", sum, low[sum / ROUNDS / 2]);
}
