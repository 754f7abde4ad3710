// A program of some pages of code whose every function says which VARIANT of it this is. Given another number, it fails: then
// it was not what the file holds that was executed.

#include <unistd.h>

#define EACH(DO) ROW(DO, 0) ROW(DO, 1) ROW(DO, 2) ROW(DO, 3) ROW(DO, 4) ROW(DO, 5) ROW(DO, 6) ROW(DO, 7)
#define ROW(DO, R) DO(R##0) DO(R##1) DO(R##2) DO(R##3) DO(R##4) DO(R##5) DO(R##6) DO(R##7)

#define DEFINE(N) \
    __attribute__((noinline, aligned(512))) static long f_##N(void) { \
        long value; \
        __asm__ volatile("li %0, %1" : "=r"(value) : "i"(VARIANT * 100000 + 1##N)); \
        return value; \
    }
EACH(DEFINE)

#define NAME(N) f_##N,
#define NUMBER(N) 1##N,
static long (*const functions[])(void) = {EACH(NAME)};
static const long numbers[] = {EACH(NUMBER)};

static int wrong(long variant) {
    for (unsigned n = 0; n < sizeof numbers / sizeof *numbers; n++)
        if (functions[n]() != variant * 100000 + numbers[n])
            return 1;
    return 0;
}

// Often enough that the second half is executed as host code.
__attribute__((used)) static void begin(const long *stack) {
    long variant = 0, failed = 0;
    for (const char *digit = (const char *)stack[2]; *digit; digit++)
        variant = variant * 10 + *digit - '0';
    for (int pass = 0; pass < 20; pass++)
        failed |= wrong(variant);
    register long a0 __asm__("a0") = failed, a7 __asm__("a7") = 93;
    __asm__ volatile("ecall" : : "r"(a0), "r"(a7));
    __builtin_unreachable();
}

__asm__(".globl _start\n_start: mv a0, sp\n j begin");
