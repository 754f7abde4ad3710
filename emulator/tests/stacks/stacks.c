/* Ways in which a program leaves and enters functions that are no plain calls and returns. Each way has a function
   that takes nearly all of its time, and whose callers are known. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define WORK(name, rounds)                                                                                             \
    NOINLINE void name(void) {                                                                                         \
        for (int i = 0; i < (rounds); i++)                                                                             \
            sink += i;                                                                                                 \
    }

static volatile long sink;

/* Handlers on the program's own stack and on one of theirs, one within another. */
WORK(signalled_inner, 3000)
WORK(handler_work, 100)
NOINLINE void nested_handler(int number) { handler_work(); sink += number; }
NOINLINE void handler(int number) {
    handler_work();
    if (number == SIGALRM)
        raise(SIGUSR1);
    sink += number;
}
NOINLINE void signalled_outer(void) {
    for (int i = 0; i < 20; i++)
        signalled_inner();
    sink++;
}
static void signals(int flags) {
    static char stack[1 << 16];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&other, 0);
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(SIGALRM, &action, 0);
    action.sa_handler = nested_handler;
    sigaction(SIGUSR1, &action, 0);
    struct itimerval timer = {{0, 300}, {0, 300}};
    setitimer(ITIMER_REAL, &timer, 0);
    for (int i = 0; i < 40; i++)
        signalled_outer();
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, 0);
}

/* A handler that never returns. */
static sigjmp_buf out_of_handler;
WORK(after_handler, 3000)
NOINLINE void leaving_handler(int number) { siglongjmp(out_of_handler, number); }
NOINLINE void handler_left(void) {
    signal(SIGUSR2, leaving_handler);
    for (volatile int i = 0; i < 50; i++) {
        if (!sigsetjmp(out_of_handler, 1))
            raise(SIGUSR2);
        after_handler();
    }
    sink++;
}

/* A jump over a thousand frames, and one in which the function that set it is on the stack several times. */
static jmp_buf target;
WORK(after_jump, 3000)
NOINLINE void dig(int depth) {
    if (!depth)
        longjmp(target, 1);
    dig(depth - 1);
    sink++;
}
NOINLINE void jumped(void) {
    for (volatile int i = 0; i < 50; i++) {
        if (!setjmp(target))
            dig(1000);
        after_jump();
    }
    sink++;
}

/* Two coroutines, each with a stack of its own and in the middle of other functions. */
static ucontext_t of_main, of_left, of_right;
WORK(left_inner, 2000)
WORK(right_inner, 2000)
NOINLINE void left_deep(int depth) {
    if (depth)
        left_deep(depth - 1);
    else
        for (int i = 0; i < 50; i++) {
            left_inner();
            swapcontext(&of_left, &of_right);
        }
    sink++;
}
NOINLINE void right_deep(int depth) {
    if (depth)
        right_deep(depth - 1);
    else
        for (int i = 0; i < 50; i++) {
            right_inner();
            swapcontext(&of_right, &of_left);
        }
    sink++;
}
NOINLINE void left(void) { left_deep(20); sink++; }
NOINLINE void right(void) { right_deep(30); sink++; }
NOINLINE void coroutines(void) {
    static char stacks[2][1 << 16];
    ucontext_t *of[] = {&of_left, &of_right};
    for (int i = 0; i < 2; i++) {
        getcontext(of[i]);
        of[i]->uc_stack.ss_sp = stacks[i];
        of[i]->uc_stack.ss_size = sizeof stacks[i];
        of[i]->uc_link = &of_main;
        makecontext(of[i], i ? right : left, 0);
    }
    swapcontext(&of_main, &of_left);
    sink++;
}

/* A child on its parent's stack, which runs another program. */
WORK(before_exec, 20000)
WORK(after_vfork, 20000)
NOINLINE void vforked(void) {
    for (int i = 0; i < 3; i++) {
        pid_t child = vfork();
        if (!child) {
            before_exec();
            execl("/bin/true", "true", (char *)0);
            _exit(1);
        }
        after_vfork();
        waitpid(child, 0, 0);
    }
    sink++;
}
WORK(forked_inner, 20000)
NOINLINE void forked(void) {
    pid_t child = fork();
    forked_inner();
    if (!child)
        _exit(0);
    waitpid(child, 0, 0);
    sink++;
}

/* A call at a function's end, and a return to an address that nobody pushed. */
WORK(tail_inner, 20000)
NOINLINE void tail(void) { sink++; tail_inner(); }
NOINLINE void tail_caller(void) { tail(); sink++; }
WORK(returned_inner, 20000)
NOINLINE void returned_to(void) {
    for (int i = 0; i < 10; i++) {
        __asm__ volatile("lla ra, 1f\n ret\n 1:" ::: "ra");
        returned_inner();
    }
    sink++;
}

/* Threads with names. */
NOINLINE void spin(long rounds) {
    for (long i = 0; i < rounds; i++)
        sink += i;
}
static void *alpha(void *none) { pthread_setname_np(pthread_self(), "alpha"); spin(900000); return none; }
static void *beta(void *none) { pthread_setname_np(pthread_self(), "beta"); spin(300000); return none; }
static void *passing(void *none) { pthread_setname_np(pthread_self(), "passing"); spin(300); return none; }
NOINLINE void threads(void) {
    pthread_t a, b;
    pthread_create(&a, 0, alpha, 0);
    pthread_create(&b, 0, beta, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    for (int i = 0; i < 40; i++) {
        pthread_create(&a, 0, passing, 0);
        pthread_join(a, 0);
    }
}

int main(int count, char **words) {
    for (int i = 1; i < count; i++) {
        if (!strcmp(words[i], "signals")) { signals(SA_NODEFER); signals(SA_ONSTACK | SA_NODEFER); }
        if (!strcmp(words[i], "handler")) handler_left();
        if (!strcmp(words[i], "jump")) jumped();
        if (!strcmp(words[i], "coroutines")) coroutines();
        if (!strcmp(words[i], "vfork")) vforked();
        if (!strcmp(words[i], "fork")) forked();
        if (!strcmp(words[i], "tail")) tail_caller();
        if (!strcmp(words[i], "returned")) returned_to();
        if (!strcmp(words[i], "threads")) threads();
    }
    return 0;
}
