// Two levels of inlining without a gap, in code that is laid out in one piece: forms/make lists the commands.
static volatile long total;

static inline __attribute__((always_inline)) void add(long n) {
    total += n;
}

static inline __attribute__((always_inline)) void add_and_mark(long n) {
    add(n);
    total ^= n;
}

__attribute__((noinline)) void work(long n) {
    for (long i = 0; i < n; i++)
        add_and_mark(i);
}

void _start(void) {
    work(1000);
    for (;;)
        ;
}
