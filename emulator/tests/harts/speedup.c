// Four threads, each pinned to a hart if there are as many, that lose their speed-up to what the argument says:
// "serial": the first thread does most of the work before there are others; "imbalance": another thread than the first has five times
// the work of the others; "lock": most of the work is done under one lock; "spinlock": under one that is waited for in a loop;
// "barrier": all wait in a loop for the slowest, again and again; "line": each thread counts in a word of its own, all of them in one
// cache line; "none": nothing of this.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "region.h"

enum { THREADS = 4, WORK = 100000, HOLDS = 10, ADDITIONS = 20000, PHASES = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(64) long counters[THREADS];
static _Alignas(64) int taken;
static _Alignas(64) long arrived;
static _Alignas(64) long phase;
static const char *cause;
static long harts;

__attribute__((noipa)) static void work(long times)
{
	for (volatile long n = 0; n < times; n++)
		;
}

/* What the first thread does before there are others. */
__attribute__((noipa)) static void serial_work(long times)
{
	for (volatile long n = 0; n < times; n++)
		;
}

static void spin_barrier(void)
{
	long now = __atomic_load_n(&phase, __ATOMIC_ACQUIRE);

	if (__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL) % THREADS == 0)
		__atomic_store_n(&phase, now + 1, __ATOMIC_RELEASE);
	else
		while (__atomic_load_n(&phase, __ATOMIC_ACQUIRE) == now)
			;
}

static void *thread(void *argument)
{
	long number = (long)argument;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(number % harts, &set);
	sched_setaffinity(0, sizeof(set), &set);
	if (!strcmp(cause, "imbalance")) {
		work(number == 1 ? 5 * WORK : WORK);
	} else if (!strcmp(cause, "lock")) {
		for (int n = 0; n < HOLDS; n++) {
			pthread_mutex_lock(&lock);
			work(WORK / HOLDS);
			pthread_mutex_unlock(&lock);
			work(WORK / HOLDS / 10);
		}
	} else if (!strcmp(cause, "spinlock")) {
		for (int n = 0; n < HOLDS; n++) {
			while (__atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE))
				while (__atomic_load_n(&taken, __ATOMIC_RELAXED))
					;
			work(WORK / HOLDS);
			__atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
			work(WORK / HOLDS / 10);
		}
	} else if (!strcmp(cause, "barrier")) {
		for (int n = 0; n < PHASES; n++) {
			work(n % THREADS == number ? WORK / 4 : WORK / 40);
			spin_barrier();
		}
	} else if (!strcmp(cause, "line")) {
		for (int n = 0; n < ADDITIONS; n++)
			__atomic_fetch_add(&counters[number], 1, __ATOMIC_RELAXED);
	} else {
		work(WORK);
	}
	return NULL;
}

int main(int count, char **arguments)
{
	pthread_t others[THREADS];

	cause = count > 1 ? arguments[1] : "none";
	harts = sysconf(_SC_NPROCESSORS_ONLN);
	TIPSIM_REGION_START();
	if (!strcmp(cause, "serial"))
		serial_work(4 * WORK);
	for (long n = 1; n < THREADS; n++)
		if (pthread_create(&others[n], NULL, thread, (void *)n))
			return EXIT_FAILURE;
	thread(NULL);
	for (long n = 1; n < THREADS; n++)
		pthread_join(others[n], NULL);
	TIPSIM_REGION_STOP();
	printf("%s: done\n", cause);
	return 0;
}
