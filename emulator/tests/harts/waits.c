// Threads that wait so often, and for so long, as they themselves say at the end, with what the kernel counted of each.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { HOLDS = 5, TURNS = 20, SLEEPS = 7, BYTES = 4, SLEEP_NS = 100000, SPIN = 100000, THREADS = 8 };

pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static volatile int holding, released;
static int turn, cond_waits, ends[2];
static char said[THREADS][256];
static int sayings;

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

// How often this thread left its hart by itself, how often not, its time on a hart, and its delay (if the kernel tells).
static void done(const char *name)
{
	struct rusage usage;
	struct timespec time;
	char path[64], delay[128] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
	file = fopen(path, "r");
	if (file && fgets(delay, sizeof(delay), file))
		strtok(delay, "\n");
	int at = __atomic_fetch_add(&sayings, 1, __ATOMIC_RELAXED);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	getrusage(RUSAGE_THREAD, &usage);
	snprintf(said[at], sizeof(said[at]), "thread %s %ld %ld %ld %lld %s", name, syscall(SYS_gettid), usage.ru_nvcsw,
		 usage.ru_nivcsw, time.tv_sec * 1000000000LL + time.tv_nsec, delay);
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
	done("holder");
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
	done("waiter");
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
	done(own ? "pong" : "ping");
	return side;
}

static void *sleeper(void *unused)
{
	named("sleeper");
	for (int n = 0; n < SLEEPS; n++)
		sleep_ns(SLEEP_NS);
	done("sleeper");
	return unused;
}

static void *reader(void *unused)
{
	char byte;

	named("reader");
	for (int n = 0; n < BYTES; n++)
		if (read(ends[0], &byte, 1) != 1)
			exit(1);
	done("reader");
	return unused;
}

static void both(void *(*one)(void *), void *(*other)(void *), int *sides)
{
	pthread_t threads[2];

	pthread_create(&threads[0], NULL, one, sides);
	pthread_create(&threads[1], NULL, other, sides + 1);
	for (int n = 0; n < 2; n++)
		pthread_join(threads[n], NULL);
}

int main(void)
{
	int sides[] = { 0, 1 };
	pthread_t thread;

	both(holder, waiter, sides);
	both(player, player, sides);
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
	done("main");
	for (int n = 0; n < sayings; n++)
		puts(said[n]);
	printf("held %d conditions %d sleeps %d of %d ns bytes %d\n", HOLDS, cond_waits, SLEEPS, SLEEP_NS, BYTES);
	return 0;
}
