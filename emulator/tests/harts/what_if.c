// Two threads, each pinned to a hart if there are as many, that lose time to each other in a way that the argument says, and not any more with another
// argument. "line": both count in words of one cache line; "lines": of a line each. "lock": both work under one lock; "locks": under a lock
// each. "uneven": before each of some barriers one thread has four times the work of the other; "even": both have the mean of that.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "region.h"

enum { WORK = 100000, HOLDS = 10, ADDITIONS = 50000, STEPS = 10 };

static _Alignas(64) long counters[16];
static pthread_mutex_t held[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static pthread_barrier_t step;
static const char *how;

__attribute__((noipa)) static void work(long times)
{
	for (volatile long n = 0; n < times; n++)
		;
}

static int is(const char *name)
{
	return !strcmp(how, name);
}

static void *thread(void *argument)
{
	long number = (long)argument;
	volatile long *counter = &counters[is("lines") ? 8 * number : number];
	pthread_mutex_t *lock = &held[is("locks") ? number : 0];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(number % sysconf(_SC_NPROCESSORS_ONLN), &set);
	sched_setaffinity(0, sizeof(set), &set);
	if (is("line") || is("lines")) {
		for (int n = 0; n < ADDITIONS; n++)
			++*counter;
	} else if (is("lock") || is("locks")) {
		for (int n = 0; n < HOLDS; n++) {
			pthread_mutex_lock(lock);
			work(WORK);
			pthread_mutex_unlock(lock);
			work(WORK / 4);
		}
	} else {
		for (int n = 0; n < STEPS; n++) {
			work(is("even") ? WORK * 5 / 2 : number == n % 2 ? 4 * WORK : WORK);
			pthread_barrier_wait(&step);
		}
	}
	return NULL;
}

int main(int count, char **arguments)
{
	pthread_t other;

	how = count > 1 ? arguments[1] : "even";
	if (pthread_barrier_init(&step, NULL, 2))
		return EXIT_FAILURE;
	TIPSIM_REGION_START();
	if (pthread_create(&other, NULL, thread, (void *)1))
		return EXIT_FAILURE;
	thread(NULL);
	pthread_join(other, NULL);
	TIPSIM_REGION_STOP();
	return 0;
}
