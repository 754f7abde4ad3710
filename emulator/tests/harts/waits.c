// Threads that wait so often, and for so long, as they themselves say at the end, with what the kernel counted of each.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { HOLDS = 5, TURNS = 20, SLEEPS = 7, BYTES = 4, SLEEP_NS = 100000, YIELDS = 6, SPIN = 100000, THREADS = 10 };

pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static volatile int holding, released;
static int turn, cond_waits, ends[2];
static char said[THREADS][256];
static int sayings;
static long long created[2];

static void spin(int times)
{
	for (volatile int n = 0; n < times; n++)
		;
}

static void sleep_ns(long ns)
{
	struct timespec time = { .tv_nsec = ns };

	nanosleep(&time, NULL);
}

static void named(const char *name)
{
	prctl(PR_SET_NAME, name);
}

static long long now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

// How often this thread left its hart by itself, how often not, its time on a hart, and the time since.
static void done(const char *name, long long since)
{
	struct rusage usage;
	int at = __atomic_fetch_add(&sayings, 1, __ATOMIC_RELAXED);
	long long time = now(CLOCK_MONOTONIC), cpu_time = now(CLOCK_THREAD_CPUTIME_ID);

	getrusage(RUSAGE_THREAD, &usage);
	snprintf(said[at], sizeof(said[at]), "thread %s %ld %ld %ld %lld %lld", name, syscall(SYS_gettid), usage.ru_nvcsw,
		 usage.ru_nivcsw, cpu_time, time - since);
}

static void *holder(void *unused)
{
	named("holder");
	for (int n = 1; n <= HOLDS; n++) {
		pthread_mutex_lock(&held);
		holding = n;
		spin(SPIN);
		pthread_mutex_unlock(&held);
		while (released < n)
			;
	}
	done("holder", 0);
	return unused;
}

// The lock is held long after each attempt to take it.
static void *waiter(void *unused)
{
	named("waiter");
	for (int n = 1; n <= HOLDS; n++) {
		while (holding < n)
			;
		pthread_mutex_lock(&held);
		pthread_mutex_unlock(&held);
		released = n;
	}
	done("waiter", 0);
	return unused;
}

static void *player(void *side)
{
	int own = *(int *)side;

	named(own ? "pong" : "ping");
	for (int n = 0; n < TURNS; n++) {
		pthread_mutex_lock(&table);
		while (turn != own) {
			cond_waits++;
			pthread_cond_wait(&turned, &table);
		}
		spin(SPIN / 20);
		turn = !own;
		pthread_cond_signal(&turned);
		pthread_mutex_unlock(&table);
	}
	done(own ? "pong" : "ping", 0);
	return side;
}

static void *sleeper(void *unused)
{
	named("sleeper");
	for (int n = 0; n < SLEEPS; n++)
		sleep_ns(SLEEP_NS);
	done("sleeper", 0);
	return unused;
}

static void *reader(void *unused)
{
	char byte;

	named("reader");
	for (int n = 0; n < BYTES; n++)
		if (read(ends[0], &byte, 1) != 1)
			exit(1);
	done("reader", 0);
	return unused;
}

// Two of them share a hart, and wait for nothing else.
static void *sharer(void *side)
{
	int own = *(int *)side;

	named(own ? "right" : "left");
	for (int n = 0; n < YIELDS; n++) {
		spin(SPIN);
		sched_yield();
	}
	done(own ? "right" : "left", created[own]);
	return side;
}

static void both(void *(*one)(void *), void *(*other)(void *), int *sides)
{
	pthread_t threads[2];

	created[0] = now(CLOCK_MONOTONIC);
	pthread_create(&threads[0], NULL, one, sides);
	created[1] = now(CLOCK_MONOTONIC);
	pthread_create(&threads[1], NULL, other, sides + 1);
	for (int n = 0; n < 2; n++)
		pthread_join(threads[n], NULL);
}

int main(void)
{
	int sides[] = { 0, 1 };
	cpu_set_t all, first = { 0 };
	pthread_t thread;

	both(holder, waiter, sides);
	both(player, player, sides);
	CPU_SET(0, &first);
	if (sched_getaffinity(0, sizeof(all), &all) || sched_setaffinity(0, sizeof(first), &first))
		return 1;
	both(sharer, sharer, sides);
	if (sched_setaffinity(0, sizeof(all), &all))
		return 1;
	pthread_create(&thread, NULL, sleeper, NULL);
	pthread_join(thread, NULL);
	if (pipe(ends))
		return 1;
	pthread_create(&thread, NULL, reader, NULL);
	for (int n = 0; n < BYTES; n++) {
		sleep_ns(SLEEP_NS);
		if (write(ends[1], "", 1) != 1)
			return 1;
	}
	pthread_join(thread, NULL);
	done("main", 0);
	for (int n = 0; n < sayings; n++)
		puts(said[n]);
	printf("held %d conditions %d sleeps %d of %d ns bytes %d\n", HOLDS, cond_waits, SLEEPS, SLEEP_NS, BYTES);
	return 0;
}
