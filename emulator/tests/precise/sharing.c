// Two threads on two harts that write to two words of one line, and to lines of their own. Prints the address of the shared line.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static struct { volatile long first, second; char rest[48]; } shared __attribute__((aligned(64)));
static struct { volatile long own; char rest[56]; } alone[2] __attribute__((aligned(64)));

static void *count(void *arg)
{
	long n = (long)arg;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(n, &set);
	pthread_setaffinity_np(pthread_self(), sizeof set, &set);
	for (int i = 0; i < 30000; i++) {
		if (n) shared.second++; else shared.first++;
		alone[n].own++;
	}
	return 0;
}

int main(void)
{
	pthread_t other;
	pthread_create(&other, 0, count, (void *)1);
	count(0);
	pthread_join(other, 0);
	printf("%lx %ld\n", (unsigned long)&shared, shared.first + shared.second);
	return 0;
}
