// Two threads on two harts that read, compute and write, each its own word of one line, and beside it a line of its own. Prints the address of
// the shared line.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static struct { volatile long words[8]; } shared __attribute__((aligned(64)));
static struct { volatile long own; char rest[56]; } alone[2] __attribute__((aligned(64)));
static volatile int ready[2];

static void *work(void *arg)
{
	long n = (long)arg;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(n, &set);
	pthread_setaffinity_np(pthread_self(), sizeof set, &set);
	// Both at the same time.
	ready[n] = 1;
	while (!ready[!n])
		;
	for (int i = 0; i < 4000; i++) {
		long value = shared.words[n];
		shared.words[n] = value + 1;
		// When it is read next, the store has left the queue.
		for (int k = 0; k < 40; k++)
			value = value * 3 + alone[n].own;
		alone[n].own = value;
	}
	return 0;
}

int main(void)
{
	pthread_t other;
	pthread_create(&other, 0, work, (void *)1);
	work(0);
	pthread_join(other, 0);
	printf("%lx %ld\n", (unsigned long)&shared, shared.words[0] + shared.words[1]);
	return 0;
}
