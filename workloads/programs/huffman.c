/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A Huffman code: built, written and read bit by bit. */
#include "program.h"

#define N 700
#define SYMBOLS 24
static uint8_t in[N], bits[2 * N];
static struct {
	uint32_t weight;
	int16_t left, right, parent;
} node[2 * SYMBOLS];
static uint32_t code[SYMBOLS], length[SYMBOLS];

void setup(void)
{
	for (int i = 0; i < N; i++) {
		uint64_t r = random64();
		in[i] = r >> 40 & 1;
		for (r |= 1 << 11; !(r & 1); r >>= 1)
			in[i] += 2;
	}
}
static int build(void)
{
	for (int i = 0; i < SYMBOLS; i++)
		node[i].weight = 1, node[i].left = node[i].parent = -1;
	for (int i = 0; i < N; i++)
		node[in[i]].weight++;
	int n = SYMBOLS;
	for (; n < 2 * SYMBOLS - 1; n++) {
		int a = -1, b = -1;
		for (int i = 0; i < n; i++) {
			if (node[i].parent >= 0)
				continue;
			if (a < 0 || node[i].weight < node[a].weight)
				b = a, a = i;
			else if (b < 0 || node[i].weight < node[b].weight)
				b = i;
		}
		node[n].weight = node[a].weight + node[b].weight;
		node[n].left = a, node[n].right = b, node[n].parent = -1;
		node[a].parent = node[b].parent = n;
	}
	return n - 1;
}
uint64_t bench(void)
{
	int root = build();
	for (int s = 0; s < SYMBOLS; s++)
		for (int i = s; i != root; i = node[i].parent) {
			code[s] |= (uint32_t)(node[node[i].parent].right == i) << length[s];
			length[s]++;
		}
	uint32_t at = 0;
	for (int i = 0; i < N; i++)
		for (int k = length[in[i]]; k-- > 0; at++)
			bits[at >> 3] |= (code[in[i]] >> k & 1) << (at & 7);
	uint64_t h = at;
	for (uint32_t p = 0; p < at;) {
		int i = root;
		for (; node[i].left >= 0; p++)
			i = bits[p >> 3] >> (p & 7) & 1 ? node[i].right : node[i].left;
		h = h * 29 + i;
	}
	return h;
}
