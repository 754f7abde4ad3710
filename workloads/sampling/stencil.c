// Jacobi iterations over a grid by bands of rows: a barrier and a sum under a lock in each iteration.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
static int n, rounds, threads;
static double *grid[2], total;
static pthread_barrier_t barrier;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// Each thread has a hart of its own: where Linux places threads differs from run to run, and is not what is compared.
static void pin(long hart) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(hart, &set);
    sched_setaffinity(0, sizeof set, &set);
}
static void *work(void *argument) {
    long me = (long)argument;
    pin(me);
    int from = 1 + me * (n - 2) / threads, to = 1 + (me + 1) * (n - 2) / threads;
    for (int round = 0; round < rounds; round++) {
        double *in = grid[round & 1], *out = grid[~round & 1], sum = 0;
        for (int y = from; y < to; y++)
            for (int x = 1; x < n - 1; x++) {
                double *at = in + y * n + x, new = (at[0] + at[-1] + at[1] + at[-n] + at[n]) * 0.2;
                out[y * n + x] = new;
                sum += new > at[0] ? new - at[0] : at[0] - new;
            }
        pthread_mutex_lock(&lock);
        total += sum;
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}
int main(int argc, char **argv) {
    threads = atoi(argv[1]), n = atoi(argv[2]), rounds = atoi(argv[3]);
    pthread_t thread[16];
    pthread_barrier_init(&barrier, NULL, threads);
    for (int g = 0; g < 2; g++) grid[g] = malloc(sizeof(double) * n * n);
    srand(1);
    for (int i = 0; i < n * n; i++) grid[0][i] = grid[1][i] = rand() % 1000;
    for (long t = 0; t < threads; t++) pthread_create(&thread[t], NULL, work, (void *)t);
    for (int t = 0; t < threads; t++) pthread_join(thread[t], NULL);
    printf("%.0f\n", total);
}
