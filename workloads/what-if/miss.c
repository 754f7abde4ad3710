// An automaton over random input: with a table that only the last-level cache holds, then with one that fits the L1, by classes of its
// input.
#include <stdint.h>
#include <stdio.h>

#include "../random.h"
#include "region.h"

enum { STATES = 512, CLASSES = 8, N = 1 << 12, ROUNDS = 60 };
#ifdef AFTER
static uint16_t next[STATES][CLASSES];
static uint8_t class_of[256];
#else
static uint64_t next[STATES][256];
#endif
static uint8_t input[N];

__attribute__((noipa)) static uint64_t run(uint64_t state) {
    for (int i = 0; i < N; i++)
#ifdef AFTER
        state = next[state][class_of[input[i]]];
#else
        state = next[state][input[i]];
#endif
    return state;
}

int main(void) {
    static uint16_t by_class[STATES][CLASSES];
    for (int state = 0; state < STATES; state++)
        for (int class = 0; class < CLASSES; class++)
            by_class[state][class] = random64() % STATES;
    for (int state = 0; state < STATES; state++)
#ifdef AFTER
        for (int class = 0; class < CLASSES; class++)
            next[state][class] = by_class[state][class];
    for (int byte = 0; byte < 256; byte++)
        class_of[byte] = byte % CLASSES;
#else
        for (int byte = 0; byte < 256; byte++)
            next[state][byte] = by_class[state][byte % CLASSES];
#endif
    for (int i = 0; i < N; i++)
        input[i] = random64() >> 40;
    uint64_t state = 0;
    TIPSIM_REGION_START();
    for (int round = 0; round < ROUNDS; round++)
        state = run(state);
    TIPSIM_REGION_STOP();
    printf("%lu\n", state);
}
