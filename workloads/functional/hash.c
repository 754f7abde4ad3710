/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Hashes 256 KiB over and over, eight bytes at a time (multiply, rotate, xor). */
#include "bare.h"

#define WORDS 32768
#define ROUNDS 600

static uint64_t words[WORDS];

int main(void)
{
	uint64_t hash = 0;

	for (int n = 0; n < WORDS; n++)
		words[n] = random64();
	for (int round = 0; round < ROUNDS; round++)
		for (int n = 0; n < WORDS; n++) {
			hash ^= words[n];
			hash *= 0x9e3779b97f4a7c15;
			hash = hash << 31 | hash >> 33;
		}
	return result(hash);
}
