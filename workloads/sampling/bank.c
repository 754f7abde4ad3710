// Threads take tasks from a queue: some sort numbers of their own, and all move amounts between accounts under striped locks.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { ACCOUNTS = 1 << 14, LOCKS = 64, SORT = 600, MOVES = 400 };
static long accounts[ACCOUNTS];
static pthread_mutex_t locks[LOCKS], queue = PTHREAD_MUTEX_INITIALIZER;
static int tasks, taken;
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static unsigned next(unsigned long *state) { return (*state = *state * 6364136223846793005ul + 1442695040888963407ul) >> 33; }
// Each thread has a hart of its own: where Linux places threads differs from run to run, and is not what is compared.
static void pin(long hart) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(hart, &set);
    sched_setaffinity(0, sizeof set, &set);
}
static void *work(void *argument) {
    pin((long)argument);
    long sum = 0;
    for (;;) {
        pthread_mutex_lock(&queue);
        int task = taken++;
        pthread_mutex_unlock(&queue);
        if (task >= tasks) return (void *)sum;
        unsigned long state = task * 77 + 1;
        if (task % 3 == 0) {
            int numbers[SORT];
            for (int i = 0; i < SORT; i++) numbers[i] = next(&state) >> 2;
            qsort(numbers, SORT, sizeof *numbers, compare);
            sum += numbers[SORT / 2] & 1;
        }
        for (int i = 0; i < MOVES; i++) {
            unsigned from = next(&state) % ACCOUNTS, to = next(&state) % ACCOUNTS;
            pthread_mutex_lock(&locks[from % LOCKS]);
            accounts[from] -= i;
            pthread_mutex_unlock(&locks[from % LOCKS]);
            pthread_mutex_lock(&locks[to % LOCKS]);
            accounts[to] += i;
            pthread_mutex_unlock(&locks[to % LOCKS]);
        }
    }
}
int main(int argc, char **argv) {
    int threads = atoi(argv[1]);
    tasks = atoi(argv[2]);
    pthread_t thread[16];
    for (int i = 0; i < LOCKS; i++) pthread_mutex_init(&locks[i], NULL);
    for (long t = 0; t < threads; t++) pthread_create(&thread[t], NULL, work, (void *)t);
    for (int t = 0; t < threads; t++) pthread_join(thread[t], NULL);
    long sum = 0;
    for (int i = 0; i < ACCOUNTS; i++) sum += accounts[i];
    printf("%ld\n", sum);
}
