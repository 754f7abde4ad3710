// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Reads a text of numbers, names and operators again and again and adds up what it finds: a small interpreter,
 * whose checks hardly ever fail.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 1 << 16, ROUNDS = 100, NAMES = 64 };

struct reader {
	const unsigned char *at, *end;
	unsigned long line, errors, total;
	unsigned long values[NAMES];
	char message[128];
};

static void complain(struct reader *r, const char *what)
{
	r->errors++;
	snprintf(r->message, sizeof(r->message), "line %lu: %s at %.8s", r->line, what, r->at);
	for (size_t i = 0; r->message[i]; i++)
		if (r->message[i] == '\n')
			r->message[i] = ' ';
}

/* Any of the characters may end the text, be a blank, start a comment, or be none that is known. */
static int next_char(struct reader *r)
{
	int c;

	for (;;) {
		if (r->at == r->end)
			return -1;
		c = *r->at++;
		if (c == '\n') {
			r->line++;
			continue;
		}
		if (c == ' ' || c == '\t')
			continue;
		if (c == '#') {
			while (r->at != r->end && *r->at != '\n')
				r->at++;
			continue;
		}
		if (c < 33 || c > 126) {
			complain(r, "unknown character");
			continue;
		}
		return c;
	}
}

static unsigned long number(struct reader *r, int c)
{
	unsigned long value = c - '0';

	while (r->at != r->end) {
		c = *r->at;
		if (c == '_') {
			r->at++;
			continue;
		}
		if (c == '.' || c == 'e') {
			complain(r, "no whole number");
			r->at++;
			continue;
		}
		if (c < '0' || c > '9')
			break;
		if (value > (~0ul - 9) / 10) {
			complain(r, "number too large");
			value = 0;
		}
		value = value * 10 + (c - '0');
		r->at++;
	}
	return value;
}

static unsigned long name(struct reader *r, int c)
{
	unsigned int hash = c;

	while (r->at != r->end) {
		c = *r->at;
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
			break;
		hash = hash * 31 + c;
		r->at++;
	}
	return hash % NAMES;
}

static void term(struct reader *r, int c, int operator)
{
	unsigned long value, which = NAMES;

	if (c >= '0' && c <= '9') {
		value = number(r, c);
	} else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
		which = name(r, c);
		value = r->values[which];
	} else {
		complain(r, "expected a number or a name");
		return;
	}
	switch (operator) {
	case '+':
		r->total += value;
		break;
	case '-':
		r->total -= value;
		break;
	case '^':
		r->total ^= value;
		break;
	case '=':
		if (which == NAMES) {
			complain(r, "cannot assign");
			break;
		}
		r->values[which] = r->total;
		break;
	case '/':
		if (!value) {
			complain(r, "division by zero");
			break;
		}
		r->total /= value;
		break;
	default:
		complain(r, "unknown operator");
	}
}

static void read_all(struct reader *r)
{
	int operator = '+';
	int c;

	while ((c = next_char(r)) >= 0) {
		if (c == '+' || c == '-' || c == '^' || c == '=' || c == '/') {
			operator = c;
			continue;
		}
		term(r, c, operator);
	}
}

int main(void)
{
	static unsigned char text[TEXT];
	static struct reader r;
	unsigned long state = 88172645463325252ul;
	size_t n = 0;

	while (n < TEXT - 32) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		n += sprintf((char *)text + n, state & 3 ? "%c%d" : "%cab%c", "+-^+"[state >> 8 & 3],
			     state & 3 ? (int)(state >> 40 & 0xfff) : (int)('a' + (state >> 20) % 26));
		if (!(state >> 30 & 15))
			text[n++] = '\n';
	}
	for (int round = 0; round < ROUNDS; round++) {
		r.at = text;
		r.end = text + n;
		r.line = 1;
		read_all(&r);
	}
	printf("%lu, %lu errors\n", r.total, r.errors);
	return 0;
}
