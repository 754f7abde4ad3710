/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A bytecode interpreter that counts primes by trial division. */
#include "bare.h"

enum { CONSTANT, LOAD, STORE, ADD, MULTIPLY, REMAINDER, LESS, JUMP, JUMP_IF_ZERO, HALT };

#define LIMIT 9000

/* Variables: 0 primes, 1 the number, 2 the divisor; the numbers in the comments are where a label stands. */
static const int32_t program[] = {
	CONSTANT, 0, STORE, 0, CONSTANT, 2, STORE, 1,
	/* outer, 8 */ LOAD, 1, CONSTANT, LIMIT, LESS, JUMP_IF_ZERO, 64, CONSTANT, 2, STORE, 2,
	/* inner, 19 */ LOAD, 2, LOAD, 2, MULTIPLY, LOAD, 1, CONSTANT, 1, ADD, LESS, JUMP_IF_ZERO, 48,
	LOAD, 1, LOAD, 2, REMAINDER, JUMP_IF_ZERO, 55, LOAD, 2, CONSTANT, 1, ADD, STORE, 2, JUMP, 19,
	/* prime, 48 */ LOAD, 0, CONSTANT, 1, ADD, STORE, 0,
	/* next, 55 */ LOAD, 1, CONSTANT, 1, ADD, STORE, 1, JUMP, 8,
	/* end, 64 */ HALT,
};

static int64_t run(const int32_t *code)
{
	int64_t stack[16], variables[4] = { 0 }, *top = stack;
	const int32_t *pc = code;

	for (;;)
		switch (*pc++) {
		case CONSTANT: *top++ = *pc++; break;
		case LOAD: *top++ = variables[*pc++]; break;
		case STORE: variables[*pc++] = *--top; break;
		case ADD: top--; top[-1] += top[0]; break;
		case MULTIPLY: top--; top[-1] *= top[0]; break;
		case REMAINDER: top--; top[-1] %= top[0]; break;
		case LESS: top--; top[-1] = top[-1] < top[0]; break;
		case JUMP: pc = code + *pc; break;
		case JUMP_IF_ZERO: pc = *--top ? pc + 1 : code + *pc; break;
		case HALT: return variables[0];
		}
}

int main(void)
{
	uint64_t sum = 0;

	for (int round = 0; round < 4; round++)
		sum = sum * 31 + run(program);
	return result(sum);
}
