/* Exceptions over hundreds of frames, caught in the middle of a recursion. */
#include <stdexcept>
#define NOINLINE __attribute__((noinline, noclone))
static volatile long sink;
NOINLINE void caught_inner() { for (int i = 0; i < 3000; i++) sink = sink + i; }
NOINLINE void thrower(int depth) {
    if (!depth) throw std::runtime_error("far");
    thrower(depth - 1);
    sink = sink + 1;
}
NOINLINE void catcher(int depth) {
    if (depth) { catcher(depth - 1); sink = sink + 1; return; }
    for (int i = 0; i < 20; i++) {
        try { thrower(300); } catch (const std::exception &) { sink = sink + 1; }
        caught_inner();
    }
}
int main() { catcher(5); return 0; }
