// A histogram that threads could share, then one of a thread's own.
#include <stdint.h>
#include <stdio.h>

#include "../random.h"
#include "region.h"

enum { N = 1 << 12, ROUNDS = 20 };
static uint8_t data[N];
static uint64_t counts[256];

__attribute__((noipa)) static void count(void) {
    for (int i = 0; i < N; i++)
#ifdef AFTER
        counts[data[i]]++;
#else
        __atomic_fetch_add(&counts[data[i]], 1, __ATOMIC_RELAXED);
#endif
}

int main(void) {
    for (int i = 0; i < N; i++)
        data[i] = random64() >> 40;
    TIPSIM_REGION_START();
    for (int round = 0; round < ROUNDS; round++)
        count();
    TIPSIM_REGION_STOP();
    printf("%lu\n", counts[data[0]]);
}
