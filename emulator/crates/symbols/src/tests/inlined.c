// riscv64-linux-gnu-gcc -g -O2 -march=rv64gc -nostdlib -static -ffile-prefix-map=$PWD=/src \
//     -fno-stack-protector -fasynchronous-unwind-tables -Wl,--build-id=sha1 inlined.c -o inlined.elf
static inline __attribute__((always_inline)) long square(long x) {
    return x * x;
}

static inline __attribute__((always_inline)) long sum_of_squares(const long *v, long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += square(v[i]);
    return sum;
}

__attribute__((noinline)) long length(const long *v, long n) {
    return sum_of_squares(v, n) / n;
}

void _start(void) {
    long v[4] = {1, 2, 3, 4};
    *(volatile long *)v = length(v, 4);
    for (;;)
        ;
}
