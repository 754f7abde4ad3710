// Lock-free structures and locks under stress, with load-reserved and store-conditional, on as many threads as harts, each on its
// own hart or on any. Argument: times. Each says "NAME: ok" or what was wrong.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 16

static long times;
static int harts;
static atomic_long failures;

static inline uint64_t load_reserved(void *place) {
    uint64_t value;
    __asm__ volatile("lr.d.aqrl %0, (%1)" : "=r"(value) : "r"(place) : "memory");
    return value;
}

static inline int store_conditional(void *place, uint64_t value) {
    int failed;
    __asm__ volatile("sc.d.rl %0, %2, (%1)" : "=&r"(failed) : "r"(place), "r"(value) : "memory");
    return !failed;
}

static void check(int good) {
    if (!good)
        atomic_fetch_add(&failures, 1);
}

// Between the two: long enough for others to come between, mostly without.
static void linger(uint64_t passes) {
    for (volatile uint64_t n = 0; n < passes; n++) {}
}

// --- A stack without counters beside its pointers: a node that comes back between the two must not go unnoticed.

struct node {
    struct node *next;
    atomic_long owner;
};

static struct node nodes[12];
static struct node *top;

static struct node *pop(uint64_t passes) {
    for (;;) {
        struct node *first = (struct node *)load_reserved(&top);
        if (!first)
            return NULL;
        struct node *next = *(struct node *volatile *)&first->next;
        linger(passes);
        if (store_conditional(&top, (uint64_t)next))
            return first;
    }
}

static void push(struct node *node) {
    do {
        *(struct node *volatile *)&node->next = (struct node *)load_reserved(&top);
        // `fence`, since the store to the node must come first.
        atomic_thread_fence(memory_order_seq_cst);
    } while (!store_conditional(&top, (uint64_t)node));
}

// The order changes, so that a node which is on top again has another below.
static void stack(int thread) {
    for (long time = 0; time < times; time++) {
        struct node *mine[4];
        int count = 0;
        while (count <= time % 4 && (mine[count] = pop(time % 13 + 5))) {
            check(atomic_exchange(&mine[count]->owner, thread + 1) == 0);
            count++;
        }
        for (int n = 0; n < count; n++) {
            struct node *node = mine[(n + time / 4) % count];
            check(atomic_exchange(&node->owner, 0) == thread + 1);
            push(node);
        }
        if (time % 64 == 0)
            sched_yield();
    }
}

static void stack_begins(void) {
    top = NULL;
    for (unsigned n = 0; n < sizeof nodes / sizeof *nodes; n++)
        push(&nodes[n]);
}

static void stack_ends(void) {
    // A damaged list may have no end.
    unsigned all = sizeof nodes / sizeof *nodes, left = 0;
    while (left <= all && pop(0))
        left++;
    check(left == all);
}

// --- Counters: each kind of increment loses none.

static uint64_t counter;
static uint32_t word;
static struct { _Atomic unsigned char bytes[4]; _Atomic unsigned short halves[2]; } small;
static _Atomic uint64_t mixed;
static long locked;
static int lock_word;
static atomic_uint ticket, serving;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void counters(int thread) {
    for (long time = 0; time < times; time++) {
        // The shortest loop, which must come to an end.
        uint64_t scratch;
        __asm__ volatile("1: lr.d %0, (%1)\n addi %0, %0, 1\n sc.d %0, %0, (%1)\n bnez %0, 1b"
                         : "=&r"(scratch) : "r"(&counter) : "memory");
        __asm__ volatile("1: lr.w %0, (%1)\n addi %0, %0, 1\n sc.w %0, %0, (%1)\n bnez %0, 1b"
                         : "=&r"(scratch) : "r"(&word) : "memory");
        atomic_fetch_add(&small.bytes[thread % 4], 1);
        atomic_fetch_add(&small.halves[thread % 2], 1);
        uint64_t old = atomic_load(&mixed);
        while (!atomic_compare_exchange_weak(&mixed, &old, old + 1)) {}
    }
}

static void counters_end(void) {
    uint64_t all = times * harts;
    unsigned of_four = 0, of_two = 0;
    for (int n = 0; n < 4; n++)
        of_four += small.bytes[n];
    for (int n = 0; n < 2; n++)
        of_two += small.halves[n];
    check(counter == all && word == (uint32_t)all && mixed == all);
    check(of_four % 256 == all % 256 && of_two % 65536 == all % 65536);
}

static void futex(int operation, int value) {
    syscall(SYS_futex, &lock_word, operation, value, NULL, NULL, 0);
}

// 0 free, 1 taken, 2 taken and somebody waits.
static void take(void) {
    int seen = 0;
    if (__atomic_compare_exchange_n(&lock_word, &seen, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(&lock_word, 2, __ATOMIC_ACQUIRE) != 0)
        futex(FUTEX_WAIT, 2);
}

static void give(void) {
    if (__atomic_exchange_n(&lock_word, 0, __ATOMIC_RELEASE) == 2)
        futex(FUTEX_WAKE, 1);
}

static void change(void) {
    long before = *(volatile long *)&locked;
    if (before % 37 == 0)
        linger(20);
    *(volatile long *)&locked = before + 1;
}

/* A thread's work under a lock. */
#define UNDER(name, lock, unlock) \
    static void name(int thread) { \
        (void)thread; \
        for (long time = 0; time < times; time++) { \
            lock; \
            change(); \
            unlock; \
        } \
    }

UNDER(mutexes, pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex))
UNDER(futexes, take(), give())
UNDER(spins, pthread_spin_lock(&spin), pthread_spin_unlock(&spin))

static void tickets(int thread) {
    (void)thread;
    for (long time = 0; time < times; time++) {
        unsigned mine = atomic_fetch_add(&ticket, 1);
        while (atomic_load(&serving) != mine)
            sched_yield();
        change();
        atomic_store(&serving, mine + 1);
    }
}

static void readers(int thread) {
    for (long time = 0; time < times; time++) {
        if ((time + thread) % 4 == 0) {
            pthread_rwlock_wrlock(&rwlock);
            change();
            pthread_rwlock_unlock(&rwlock);
        } else {
            pthread_rwlock_rdlock(&rwlock);
            long seen = *(volatile long *)&locked;
            linger(3);
            check(seen == *(volatile long *)&locked);
            pthread_rwlock_unlock(&rwlock);
        }
    }
}

static void locks_begin(void) {
    locked = 0;
}

static void locks_end(void) {
    check(locked == times * harts);
}

static void readers_end(void) {
    long written = 0;
    for (int thread = 0; thread < harts; thread++)
        for (long time = 0; time < times; time++)
            written += (time + thread) % 4 == 0;
    check(locked == written);
}

// --- A bounded queue of any number of writers and readers (Vyukov's); and one with a condition variable.

#define CELLS 8

static struct { atomic_ulong turn; uint64_t value; } cells[CELLS];
static atomic_ulong head, tail;
static _Atomic uint64_t sum_in, sum_out;

static int offer(uint64_t value) {
    unsigned long at = atomic_load(&tail);
    for (;;) {
        long apart = atomic_load(&cells[at % CELLS].turn) - at;
        if (apart < 0)
            return 0;
        if (apart > 0)
            at = atomic_load(&tail);
        else if (atomic_compare_exchange_weak(&tail, &at, at + 1))
            break;
    }
    cells[at % CELLS].value = value;
    atomic_store(&cells[at % CELLS].turn, at + 1);
    return 1;
}

static int accept_one(uint64_t *value) {
    unsigned long at = atomic_load(&head);
    for (;;) {
        long apart = atomic_load(&cells[at % CELLS].turn) - (at + 1);
        if (apart < 0)
            return 0;
        if (apart > 0)
            at = atomic_load(&head);
        else if (atomic_compare_exchange_weak(&head, &at, at + 1))
            break;
    }
    *value = cells[at % CELLS].value;
    atomic_store(&cells[at % CELLS].turn, at + CELLS);
    return 1;
}

static void queue(int thread) {
    uint64_t value;
    for (long time = 0; time < times; time++) {
        uint64_t mine = time * THREADS + thread;
        while (!offer(mine))
            sched_yield();
        atomic_fetch_add(&sum_in, mine * mine);
        while (!accept_one(&value))
            sched_yield();
        atomic_fetch_add(&sum_out, value * value);
    }
}

static void queue_begins(void) {
    head = tail = sum_in = sum_out = 0;
    for (int n = 0; n < CELLS; n++)
        cells[n].turn = n;
}

static void queue_ends(void) {
    check(sum_in == sum_out);
}

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long turn;

static void conditions(int thread) {
    for (long time = 0; time < times / 8; time++) {
        pthread_mutex_lock(&mutex);
        while (turn % harts != thread)
            pthread_cond_wait(&changed, &mutex);
        turn++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
}

static void conditions_begin(void) {
    turn = 0;
}

static void conditions_end(void) {
    check(turn == times / 8 * harts);
}

// --- What one thread alone can see.

static uint64_t (*pages)[512];

static void alone(int thread) {
    uint64_t *mine = pages[2 * thread], *other = pages[2 * thread + 1];
    for (long time = 0; time < times; time++) {
        mine[0] = other[0] = time;
        check(!store_conditional(mine, 1) && mine[0] == (uint64_t)time);
        load_reserved(mine);
        check(!store_conditional(other, 1) && other[0] == (uint64_t)time);
        check(!store_conditional(mine, 1));
        load_reserved(other);
        load_reserved(mine);
        check(!store_conditional(other, 1));
        // Linux gives reservations up on its way back from a trap.
        load_reserved(mine);
        syscall(SYS_getppid);
        check(!store_conditional(mine, 1) && mine[0] == (uint64_t)time);
        // The store has a size of its own: what it may do is nothing, or to be done.
        uint64_t value = mine[8] = time | 1ul << 40;
        int failed;
        __asm__ volatile("lr.w zero, (%1)\n sc.d %0, %2, (%1)"
                         : "=&r"(failed) : "r"(&mine[8]), "r"(~0ul) : "memory");
        check(mine[8] == (failed ? value : ~0ul));
    }
}

// The kernel copies into the line between the two.
static void kernel(int thread) {
    uint64_t *mine = pages[2 * thread];
    int ends[2];
    check(pipe(ends) == 0);
    for (long time = 0; time < times / 8; time++) {
        uint64_t same = mine[0] = time;
        check(write(ends[1], &same, 8) == 8);
        load_reserved(mine);
        check(read(ends[0], mine, 8) == 8);
        check(!store_conditional(mine, 1));
    }
    close(ends[0]);
    close(ends[1]);
}

// ---

static void nothing(void) {}

static const struct way {
    const char *name;
    void (*begin)(void);
    void (*work)(int thread);
    void (*end)(void);
} ways[] = {
    {"stack", stack_begins, stack, stack_ends},
    {"counters", nothing, counters, counters_end},
    {"mutex", locks_begin, mutexes, locks_end},
    {"futex", locks_begin, futexes, locks_end},
    {"spin lock", locks_begin, spins, locks_end},
    {"ticket lock", locks_begin, tickets, locks_end},
    {"readers and writers", locks_begin, readers, readers_end},
    {"queue", queue_begins, queue, queue_ends},
    {"condition", conditions_begin, conditions, conditions_end},
    {"alone", nothing, alone, nothing},
    {"kernel", nothing, kernel, nothing},
};

static const struct way *present;
static int pinned;
static pthread_barrier_t barrier;

static void *run(void *number) {
    long thread = (long)number;
    if (pinned) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(thread, &set);
        check(sched_setaffinity(0, sizeof set, &set) == 0);
    }
    pthread_barrier_wait(&barrier);
    present->work(thread);
    return NULL;
}

int main(int argc, char **argv) {
    times = argc > 1 ? atol(argv[1]) : 1000;
    harts = sysconf(_SC_NPROCESSORS_ONLN);
    pages = mmap(NULL, 2 * THREADS * sizeof *pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_spin_init(&spin, 0);
    pthread_barrier_init(&barrier, NULL, harts);
    long all = 0;
    for (unsigned n = 0; n < sizeof ways / sizeof *ways; n++) {
        present = &ways[n];
        for (pinned = 0; pinned < 2; pinned++) {
            pthread_t threads[THREADS];
            failures = counter = word = mixed = 0;
            for (int k = 0; k < 4; k++)
                small.bytes[k] = 0;
            small.halves[0] = small.halves[1] = 0;
            present->begin();
            for (long thread = 0; thread < harts; thread++)
                if (pthread_create(&threads[thread], NULL, run, (void *)thread))
                    return 2;
            for (int thread = 0; thread < harts; thread++)
                pthread_join(threads[thread], NULL);
            present->end();
            all += failures;
            printf("%s%s: ", present->name, pinned ? ", pinned" : "");
            if (failures)
                printf("%ld wrong\n", failures);
            else
                printf("ok\n");
            fflush(stdout);
        }
    }
    return all != 0;
}
