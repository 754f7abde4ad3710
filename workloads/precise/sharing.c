/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two threads on two harts that share a line falsely (each has a word of its own in it), truly (they add to one word), and not at all.
 * usage: sharing ROUNDS */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE __attribute__((aligned(64)))

static LINE volatile uint64_t false_pair[8];
static LINE uint64_t true_word[8];
static LINE volatile uint64_t private_words[2][8];
static LINE int ready[16];
static long rounds;

__attribute__((noinline)) static void add_false(long thread)
{
	for (long n = 0; n < rounds; n++)
		false_pair[thread]++;
}

__attribute__((noinline)) static void add_true(void)
{
	for (long n = 0; n < rounds; n++)
		__atomic_fetch_add(&true_word[0], 1, __ATOMIC_RELAXED);
}

__attribute__((noinline)) static void add_private(long thread)
{
	for (long n = 0; n < rounds; n++)
		private_words[thread][0]++;
}

/* Both threads are here. */
static void meet(int *line)
{
	__atomic_fetch_add(line, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(line, __ATOMIC_ACQUIRE) < 2)
		;
}

static void *work(void *argument)
{
	long thread = (long)argument;
	cpu_set_t harts;

	CPU_ZERO(&harts);
	CPU_SET(thread, &harts);
	if (sched_setaffinity(0, sizeof(harts), &harts))
		return (void *)1;
	meet(&ready[0]);
	add_false(thread);
	meet(&ready[1]);
	add_true();
	meet(&ready[2]);
	add_private(thread);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t other;
	void *failed;

	rounds = argc == 2 ? atol(argv[1]) : 0;
	if (rounds <= 0) {
		fprintf(stderr, "usage: sharing ROUNDS\n");
		return 2;
	}
	if (pthread_create(&other, NULL, work, (void *)1))
		return 1;
	failed = work((void *)0);
	if (failed)
		fprintf(stderr, "sharing: expected two harts\n");
	pthread_join(other, NULL);
	return failed || true_word[0] != 2 * (uint64_t)rounds || false_pair[0] != (uint64_t)rounds;
}
