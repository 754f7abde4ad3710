/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Five phases, each limited by something else, so that every kind of sample a profiler can take occurs in one
 * short run. Each prints a checksum that depends on nothing but the scale.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PHASE __attribute__((noinline, noclone))

/* Marsaglia's xorshift: no branch predictor and no prefetcher learns it. */
static inline uint64_t next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

/* Compute: independent chains, so that several instructions commit in a cycle. */

PHASE uint64_t compute_integers(uint64_t rounds)
{
	uint64_t a = 1, b = 2, c = 3, d = 4;

	while (rounds--) {
		next(&a);
		next(&b);
		next(&c);
		next(&d);
	}
	return a + b + c + d;
}

PHASE uint64_t compute_floats(uint64_t rounds)
{
	double a = 0.1, b = 0.2, c = 0.3, d = 0.4, e = 0.5, f = 0.6, g = 0.7, h = 0.8;

	while (rounds--) {
		a = __builtin_fma(a, 0.5, 0.25);
		b = __builtin_fma(b, 0.25, 0.5);
		c = __builtin_fma(c, 0.75, 0.125);
		d = __builtin_fma(d, 0.625, 0.375);
		e = __builtin_fma(e, 0.5, 0.75);
		f = __builtin_fma(f, 0.125, 0.625);
		g = __builtin_fma(g, 0.375, 0.5);
		h = __builtin_fma(h, 0.875, 0.25);
	}
	return (uint64_t)((a + b + c + d + e + f + g + h) * 0x1p40);
}

/*
 * Flush: a C library's ceil() saves and restores the floating-point flags. Writing them waits for everything
 * before and fetches everything after again.
 */
PHASE double flush_ceil(double x)
{
#ifdef __riscv
	unsigned long flags;
	int64_t whole;

	__asm__ volatile("frflags %0" : "=r"(flags));
	__asm__ volatile("fcvt.l.d %0, %1, rup" : "=r"(whole) : "f"(x));
	x = (double)whole;
	__asm__ volatile("fsflags %0" : : "r"(flags));
	return x;
#else
	return __builtin_ceil(x);
#endif
}

PHASE uint64_t flush_ceilings(uint64_t rounds)
{
	double x = 0.3, sum = 0;

	while (rounds--) {
		sum += flush_ceil(x);
		x += 0.7;
	}
	return (uint64_t)sum;
}

/* Mispredict: branches on random bits. The empty asm keeps the compiler from doing without the branch. */
PHASE uint64_t mispredict_branches(uint64_t rounds)
{
	uint64_t random = 88172645463325252ULL, odd = 0, high = 0;

	while (rounds--) {
		uint64_t x = next(&random);

		if (x & 1) {
			odd += x >> 8;
			__asm__ volatile("" : "+r"(odd));
		}
		if (x & 2) {
			high ^= x;
			__asm__ volatile("" : "+r"(high));
		}
	}
	return odd ^ high;
}

/* Load stall: a chain of pointers through more than the second-level cache holds. */

#define NODES 65536

struct node {
	struct node *next;
	uint64_t value[7];	/* the rest of a cache line */
};

static struct node nodes[NODES] __attribute__((aligned(64)));

PHASE void stall_prepare(void)
{
	uint64_t i;

	/* A linear congruence of full period visits every node, in an order without strides. */
	for (i = 0; i < NODES; i++) {
		nodes[i].next = &nodes[(i * 40693 + 12289) % NODES];
		nodes[i].value[0] = i;
	}
}

PHASE uint64_t stall_chase(uint64_t rounds)
{
	const struct node *node = nodes;
	uint64_t sum = 0;

	while (rounds--) {
		node = node->next;
		sum += node->value[0];
	}
	return sum;
}

/* Front end: 256 functions of 1 KiB, called in random order, are eight times what the instruction cache holds. */

struct lanes {
	uint64_t a, b, c, d;
};

#define STEP(f, i) \
	a = (a ^ ((f * 7 + i * 29) & 0x7ff)) + ((f * 5 + i * 3) % 1024 + 32); \
	b = (b ^ ((f * 11 + i * 31) & 0x7ff)) + ((f * 3 + i * 7) % 1024 + 32); \
	c = (c ^ ((f * 13 + i * 37) & 0x7ff)) + ((f * 9 + i * 5) % 1024 + 32); \
	d = (d ^ ((f * 17 + i * 41) & 0x7ff)) + ((f * 7 + i * 11) % 1024 + 32);
#define STEP4(f, i) STEP(f, i) STEP(f, i + 1) STEP(f, i + 2) STEP(f, i + 3)
#define STEP16(f, i) STEP4(f, i) STEP4(f, i + 4) STEP4(f, i + 8) STEP4(f, i + 12)

#define BODY(f) \
	PHASE static void frontend_##f(struct lanes *lanes) \
	{ \
		uint64_t a = lanes->a, b = lanes->b, c = lanes->c, d = lanes->d; \
		STEP16(0x##f, 0) STEP16(0x##f, 16) \
		lanes->a = a, lanes->b = b, lanes->c = c, lanes->d = d; \
	}
#define ENTRY(f) frontend_##f,

#define ROW(m, r) m(r##0) m(r##1) m(r##2) m(r##3) m(r##4) m(r##5) m(r##6) m(r##7) \
	m(r##8) m(r##9) m(r##a) m(r##b) m(r##c) m(r##d) m(r##e) m(r##f)
#define ALL(m) ROW(m, 0) ROW(m, 1) ROW(m, 2) ROW(m, 3) ROW(m, 4) ROW(m, 5) ROW(m, 6) ROW(m, 7) \
	ROW(m, 8) ROW(m, 9) ROW(m, a) ROW(m, b) ROW(m, c) ROW(m, d) ROW(m, e) ROW(m, f)

ALL(BODY)

static void (*const frontend_table[256])(struct lanes *) = { ALL(ENTRY) };

PHASE uint64_t frontend_walk(uint64_t rounds)
{
	struct lanes lanes = { 1, 2, 3, 4 };
	uint64_t random = 2463534242;

	while (rounds--)
		frontend_table[next(&random) >> 20 & 0xff](&lanes);
	return lanes.a ^ lanes.b << 1 ^ lanes.c << 2 ^ lanes.d << 3;
}

static void print(const char *phase, uint64_t checksum)
{
	printf("%-20s %016llx\n", phase, (unsigned long long)checksum);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char *end = "";
	unsigned long scale = argc > 1 ? strtoul(argv[1], &end, 10) : 100;

	if (argc > 2 || *end || !scale) {
		fprintf(stderr, "Usage: quickstart [PERCENT]\n"
				"Runs five phases, each limited by something else; 100 is about 90 million instructions.\n");
		return 2;
	}
	print("compute_integers", compute_integers(scale * 12000));
	print("compute_floats", compute_floats(scale * 16000));
	print("flush_ceilings", flush_ceilings(scale * 4000));
	print("mispredict_branches", mispredict_branches(scale * 10500));
	stall_prepare();
	print("stall_chase", stall_chase(scale * 2600));
	print("frontend_walk", frontend_walk(scale * 600));
	return 0;
}
