/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A state machine that reads numbers. */
#include "program.h"

static char in[3000];
static uint32_t cnt[8];
void setup(void)
{
	static const char *pat[] = {"5012",	"1234",	    "-874",	"+122",
				    "35.54400", ".1234500", "-110.700", "+0.64400",
				    "5.500e+3", "-.123e-2", "-87e+832", "+0.6e-12",
				    "T0.3e-1F", "-T.T++Tq", "1T3.4e4z", "34.0e-T^"};
	int n = 0;
	while (n < 2900) {
		const char *s = pat[random64() & 15];
		while (*s)
			in[n++] = *s++;
		in[n++] = ',';
	}
	in[n] = 0;
}
enum { S, I, F, P, E, X, SC, INV };
static __attribute__((noinline)) int tr(const char **p)
{
	int st = S;
	const char *s = *p;
	for (; *s && st != INV; s++) {
		char c = *s;
		if (c == ',') {
			s++;
			break;
		}
		switch (st) {
		case S:
			if (c >= '0' && c <= '9')
				st = I;
			else if (c == '+' || c == '-')
				st = P;
			else if (c == '.')
				st = F;
			else {
				st = INV;
				cnt[7]++;
			}
			cnt[0]++;
			break;
		case P:
			if (c >= '0' && c <= '9')
				st = I;
			else if (c == '.')
				st = F;
			else
				st = INV;
			cnt[1]++;
			break;
		case I:
			if (c == '.')
				st = F;
			else if (!(c >= '0' && c <= '9'))
				st = INV;
			cnt[2]++;
			break;
		case F:
			if (c == 'e' || c == 'E')
				st = E;
			else if (!(c >= '0' && c <= '9'))
				st = INV;
			cnt[3]++;
			break;
		case E:
			if (c == '+' || c == '-')
				st = X;
			else
				st = INV;
			cnt[4]++;
			break;
		case X:
			if (c >= '0' && c <= '9')
				st = SC;
			else
				st = INV;
			cnt[5]++;
			break;
		case SC:
			if (!(c >= '0' && c <= '9'))
				st = INV;
			cnt[6]++;
			break;
		}
	}
	*p = s;
	return st;
}
uint64_t bench(void)
{
	uint64_t h = 0;
	const char *p = in;
	while (*p)
		h = h * 5 + tr(&p);
	for (int i = 0; i < 8; i++)
		h += cnt[i];
	return h;
}
