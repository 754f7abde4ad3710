/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* CRC-32 by a table. */
#include "program.h"

static uint32_t t[256];
static uint8_t d[4096];
void setup(void)
{
	for (int i = 0; i < 256; i++) {
		uint32_t c = i;
		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0xedb88320 ^ c >> 1 : c >> 1;
		t[i] = c;
	}
	for (int i = 0; i < 4096; i++)
		d[i] = random64();
}
uint64_t bench(void)
{
	uint32_t c = ~0u;
	for (int r = 0; r < 2; r++)
		for (int i = 0; i < 4096; i++)
			c = t[(c ^ d[i]) & 255] ^ c >> 8;
	return c;
}
