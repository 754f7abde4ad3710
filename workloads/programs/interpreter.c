/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A bytecode interpreter: one indirect jump, badly foreseen. */
#include "program.h"

static uint8_t code[64];
void setup(void)
{
	static const uint8_t p[] = {0, 10, 1, 200, 2, 3,  1, 4,	 0, 5,	6, 3,  7,
				    1, 8,  0, 9,   4, 10, 1, 11, 2, 12, 0, 13, 9};
	for (unsigned i = 0; i < sizeof p; i++)
		code[i] = p[i];
}
uint64_t bench(void)
{
	uint64_t acc = 1, x = 3, y = 7, n = 0;
	int pc = 0;
	uint64_t st[8];
	int sp = 0;
	for (int steps = 0; steps < 9000; steps++) {
		int op = code[pc++], arg = code[pc++];
		switch (op) {
		case 0:
			acc += arg;
			break;
		case 1:
			x ^= acc + arg;
			break;
		case 2:
			acc = acc << 3 | acc >> 61;
			break;
		case 3:
			y += x;
			break;
		case 4:
			acc -= y;
			break;
		case 5:
			st[sp & 7] = acc;
			sp++;
			break;
		case 6:
			x = x * arg;
			break;
		case 7:
			if (acc & 1)
				pc += 0;
			else
				y++;
			break;
		case 8:
			sp--;
			acc ^= st[sp & 7];
			break;
		case 9:
			n++;
			break;
		case 10:
			acc ^= acc >> arg;
			break;
		case 11:
			x += n;
			break;
		case 12:
			y = y >> 1 | y << 63;
			break;
		default:
			pc = (arg == 9) ? 0 : pc;
			break;
		}
	}
	return acc + x + y + n;
}
