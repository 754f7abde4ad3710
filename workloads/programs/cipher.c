/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rounds of a cipher by tables, as AES has them. */
#include "program.h"

static uint32_t table[4][256], key[44], block[64][4];

void setup(void)
{
	for (int i = 0; i < 256; i++)
		for (int k = 0; k < 4; k++)
			table[k][i] = random64();
	for (int i = 0; i < 44; i++)
		key[i] = random64();
	for (int i = 0; i < 64; i++)
		for (int k = 0; k < 4; k++)
			block[i][k] = random64();
}
uint64_t bench(void)
{
	uint32_t v[4] = {1, 2, 3, 4};
	for (int i = 0; i < 64; i++) {
		uint32_t a = block[i][0] ^ v[0], b = block[i][1] ^ v[1];
		uint32_t c = block[i][2] ^ v[2], d = block[i][3] ^ v[3];
		for (int r = 0; r < 40; r += 4) {
			uint32_t e = table[0][a >> 24] ^ table[1][b >> 16 & 255] ^ table[2][c >> 8 & 255] ^
				     table[3][d & 255] ^ key[r];
			uint32_t f = table[0][b >> 24] ^ table[1][c >> 16 & 255] ^ table[2][d >> 8 & 255] ^
				     table[3][a & 255] ^ key[r + 1];
			uint32_t g = table[0][c >> 24] ^ table[1][d >> 16 & 255] ^ table[2][a >> 8 & 255] ^
				     table[3][b & 255] ^ key[r + 2];
			uint32_t h = table[0][d >> 24] ^ table[1][a >> 16 & 255] ^ table[2][b >> 8 & 255] ^
				     table[3][c & 255] ^ key[r + 3];
			a = e;
			b = f;
			c = g;
			d = h;
		}
		block[i][0] = v[0] = a;
		block[i][1] = v[1] = b;
		block[i][2] = v[2] = c;
		block[i][3] = v[3] = d;
	}
	return ((uint64_t)v[0] << 32 | v[1]) ^ v[2] ^ (uint64_t)v[3] << 7;
}
