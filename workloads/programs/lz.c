/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* LZ77 compression with a hash of three bytes, then decompression. */
#include "program.h"

#define N 3000
static uint8_t in[N + 8], packed[2 * N], out[N + 300];
static uint16_t last[1024];

void setup(void)
{
	static const char *const words[] = {"the ", "quick ", "brown ", "fox ", "jumps ", "over ", "lazy ", "dog. "};
	int n = 0;
	while (n < N) {
		const char *w = words[random64() & 7];
		while (*w && n < N)
			in[n++] = *w++;
		if (n < N && !(random64() & 3))
			in[n++] = 'a' + random64() % 26;
	}
}
static int compress(void)
{
	int n = 0, p = 0;
	while (p < N) {
		uint32_t three = in[p] | in[p + 1] << 8 | in[p + 2] << 16;
		uint32_t h = three * 2654435761u >> 22;
		int from = last[h] - 1, len = 0;
		last[h] = p + 1;
		if (from >= 0 && p - from < 4096)
			while (len < 130 && p + len < N && in[from + len] == in[p + len])
				len++;
		if (len >= 3) {
			packed[n++] = 0x80 | (len - 3);
			packed[n++] = (p - from) & 255;
			packed[n++] = (p - from) >> 8;
			p += len;
		} else {
			packed[n++] = in[p++] & 0x7f;
		}
	}
	return n;
}
static int expand(int n)
{
	int o = 0;
	for (int i = 0; i < n;) {
		uint8_t c = packed[i++];
		if (c & 0x80) {
			int d = packed[i] | packed[i + 1] << 8;
			i += 2;
			for (int len = (c & 0x7f) + 3; len; len--, o++)
				out[o] = out[o - d];
		} else {
			out[o++] = c;
		}
	}
	return o;
}
uint64_t bench(void)
{
	int n = compress(), o = expand(n);
	uint64_t h = (uint64_t)n * 65536 + o;
	for (int i = 0; i < o; i++)
		h = h * 5 + (out[i] ^ in[i]);
	return h;
}
