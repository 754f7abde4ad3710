/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shortest paths in a random graph, with a binary heap. */
#include "program.h"

#define N 300
#define DEGREE 5
static uint16_t to[N][DEGREE], weight[N][DEGREE];
static uint32_t dist[N];
static struct {
	uint32_t d, v;
} heap[N * DEGREE + 1];
static int size;

void setup(void)
{
	for (int i = 0; i < N; i++)
		for (int k = 0; k < DEGREE; k++) {
			to[i][k] = k ? random64() % N : (i + 1u) % N;
			weight[i][k] = 1 + random64() % 100;
		}
}
static void push(uint32_t d, uint32_t v)
{
	int i = size++;
	while (i && heap[(i - 1) / 2].d > d) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i].d = d;
	heap[i].v = v;
}
static void pop(void)
{
	uint32_t d = heap[--size].d, v = heap[size].v;
	int i = 0;
	for (;;) {
		int c = 2 * i + 1;
		if (c >= size)
			break;
		if (c + 1 < size && heap[c + 1].d < heap[c].d)
			c++;
		if (heap[c].d >= d)
			break;
		heap[i] = heap[c];
		i = c;
	}
	heap[i].d = d;
	heap[i].v = v;
}
uint64_t bench(void)
{
	for (int i = 0; i < N; i++)
		dist[i] = ~0u;
	dist[0] = 0;
	push(0, 0);
	while (size) {
		uint32_t d = heap[0].d, v = heap[0].v;
		pop();
		if (d != dist[v])
			continue;
		for (int k = 0; k < DEGREE; k++) {
			uint32_t w = to[v][k], n = d + weight[v][k];
			if (n < dist[w]) {
				dist[w] = n;
				push(n, w);
			}
		}
	}
	uint64_t h = 0;
	for (int i = 0; i < N; i++)
		h = h * 3 + dist[i];
	return h;
}
