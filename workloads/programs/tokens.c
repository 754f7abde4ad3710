/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tokens of a text like JSON. */
#include "program.h"

#define N 4000
static char in[N + 64];

void setup(void)
{
	int n = 0;
	while (n < N) {
		uint64_t r = random64();
		switch (r & 7) {
		case 0:
			in[n++] = '{';
			break;
		case 1:
			in[n++] = '}';
			break;
		case 2:
			in[n++] = '[';
			break;
		case 3:
			in[n++] = r & 8 ? ',' : ':';
			in[n++] = ' ';
			break;
		case 4:
		case 5:
			in[n++] = '"';
			for (int k = r >> 8 & 15; k; k--)
				in[n++] = 'a' + (random64() % 26);
			if (r & 16) {
				in[n++] = 92;
				in[n++] = 'n';
			}
			in[n++] = '"';
			break;
		case 6:
			if (r & 8)
				in[n++] = '-';
			for (int k = 1 + (r >> 8 & 7); k; k--)
				in[n++] = '0' + random64() % 10;
			in[n++] = ' ';
			break;
		case 7:
			for (const char *w = r & 8 ? "true" : r & 16 ? "false" : "null"; *w; w++)
				in[n++] = *w;
			in[n++] = 10;
			break;
		}
	}
	in[n] = 0;
}
uint64_t bench(void)
{
	uint64_t h = 0;
	int depth = 0;
	const char *p = in;
	for (;;) {
		char c = *p++;
		switch (c) {
		case 0:
			return h * 31 + depth;
		case ' ':
		case 10:
			break;
		case '{':
		case '[':
			depth++;
			break;
		case '}':
		case ']':
			depth--;
			break;
		case ',':
		case ':':
			h = h * 3 + c;
			break;
		case '"':
			while ((c = *p++) != '"') {
				if (c == 92)
					c = *p++;
				h = h * 33 + c;
			}
			break;
		default:
			if ((c >= '0' && c <= '9') || c == '-') {
				int64_t v = 0, sign = 1;
				if (c == '-')
					sign = -1;
				else
					v = c - '0';
				while (*p >= '0' && *p <= '9')
					v = v * 10 + (*p++ - '0');
				h += v * sign;
			} else {
				while (*p >= 'a' && *p <= 'z')
					h = h * 7 + *p++;
			}
		}
	}
}
