/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The rounds of SHA-256. */
#include "program.h"

static uint32_t K[64];
static uint8_t d[1024];
void setup(void)
{
	for (int i = 0; i < 64; i++)
		K[i] = random64();
	for (int i = 0; i < 1024; i++)
		d[i] = random64();
}
#define R(x, n) ((x) >> (n) | (x) << (32 - (n)))
static __attribute__((noinline)) void blk(uint32_t *h, const uint8_t *p)
{
	uint32_t w[64];
	for (int i = 0; i < 16; i++)
		w[i] = p[4 * i] << 24 | p[4 * i + 1] << 16 | p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];
		w[i] = w[i - 16] + w[i - 7] + (R(a, 7) ^ R(a, 18) ^ a >> 3) +
		       (R(b, 17) ^ R(b, 19) ^ b >> 10);
	}
	uint32_t a = h[0], b = h[1], c = h[2], D = h[3], e = h[4], f = h[5], g = h[6], hh = h[7];
	for (int i = 0; i < 64; i++) {
		uint32_t t1 = hh + (R(e, 6) ^ R(e, 11) ^ R(e, 25)) + ((e & f) ^ (~e & g)) + K[i] +
			      w[i],
			 t2 = (R(a, 2) ^ R(a, 13) ^ R(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
		hh = g;
		g = f;
		f = e;
		e = D + t1;
		D = c;
		c = b;
		b = a;
		a = t1 + t2;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += D;
	h[4] += e;
	h[5] += f;
	h[6] += g;
	h[7] += hh;
}
uint64_t bench(void)
{
	uint32_t h[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	for (int i = 0; i < 16; i++)
		blk(h, d + 64 * i);
	return h[0] ^ h[5];
}
