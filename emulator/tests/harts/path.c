// Two threads, each pinned to a hart if there are as many, with a critical path that is known. First a pipeline: "slow" computes
// twenty items, and "fast" takes each out of a pipe and does a tenth of that work. Then ten steps that a barrier ends: "serial"
// has ten times the work of "idler".

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "region.h"

enum { ITEMS = 20, STEPS = 10, WORK = 50000 };

static int ends[2];
static pthread_barrier_t barrier;

static void pin(long number)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(number % sysconf(_SC_NPROCESSORS_ONLN), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

__attribute__((noipa)) static void slow_work(long times)
{
	for (volatile long n = 0; n < times; n++)
		;
}

__attribute__((noipa)) static void fast_work(long times)
{
	for (volatile long n = 0; n < times; n++)
		;
}

static void *slow(void *argument)
{
	char item = 0;

	(void)argument;
	pthread_setname_np(pthread_self(), "slow");
	pin(0);
	for (int n = 0; n < ITEMS; n++) {
		slow_work(WORK);
		if (write(ends[1], &item, 1) != 1)
			abort();
	}
	return NULL;
}

static void *fast(void *argument)
{
	char item;

	(void)argument;
	pthread_setname_np(pthread_self(), "fast");
	pin(1);
	for (int n = 0; n < ITEMS; n++) {
		if (read(ends[0], &item, 1) != 1)
			abort();
		fast_work(WORK / 10);
	}
	return NULL;
}

static void *serial(void *argument)
{
	(void)argument;
	pthread_setname_np(pthread_self(), "serial");
	pin(0);
	for (int n = 0; n < STEPS; n++) {
		slow_work(WORK);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void *idler(void *argument)
{
	(void)argument;
	pthread_setname_np(pthread_self(), "idler");
	pin(1);
	for (int n = 0; n < STEPS; n++) {
		fast_work(WORK / 10);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void both(void *(*one)(void *), void *(*other)(void *))
{
	pthread_t threads[2];

	if (pthread_create(&threads[0], NULL, one, NULL) || pthread_create(&threads[1], NULL, other, NULL))
		abort();
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

int main(void)
{
	if (pipe(ends) || pthread_barrier_init(&barrier, NULL, 2))
		abort();
	TIPSIM_REGION_START();
	both(slow, fast);
	both(serial, idler);
	TIPSIM_REGION_STOP();
	return 0;
}
