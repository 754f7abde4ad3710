/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Instructions beyond RV64GC as text, for what capstone does not know. The build copies this file and riscv-insns.h
 * into perf; a test of the crate isa compares it with that crate's own disassembler.
 */
#include <stdio.h>
#include "riscv-insns.h"

static const char *riscv_register(unsigned int number)
{
	static const char names[64][5] = {
		"zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5",
		"a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
		"ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1", "fa2", "fa3", "fa4",
		"fa5", "fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8",
		"ft9", "ft10", "ft11",
	};

	return names[number & 63];
}

/* Writes one operand; 0 if it is left out. */
static int riscv_operand(char letter, unsigned int w, char *buf, size_t size)
{
	static const char modes[8][4] = { "rne", "rtz", "rdn", "rup", "rmm", "", "", "" };
	unsigned int rd = w >> 7 & 31, rs1 = w >> 15 & 31, rs2 = w >> 20 & 31, mode = w >> 12 & 7;
	int imm;

	switch (letter) {
	case 'd': return snprintf(buf, size, "%s", riscv_register(rd));
	case 's': return snprintf(buf, size, "%s", riscv_register(rs1));
	case 't': return snprintf(buf, size, "%s", riscv_register(rs2));
	case 'D': return snprintf(buf, size, "%s", riscv_register(32 + rd));
	case 'S': return snprintf(buf, size, "%s", riscv_register(32 + rs1));
	case 'T': return snprintf(buf, size, "%s", riscv_register(32 + rs2));
	case 'R': return snprintf(buf, size, "%s", riscv_register(32 + (w >> 27)));
	case '>': return snprintf(buf, size, "0x%x", w >> 20 & 63);
	case 'o': return snprintf(buf, size, "%d(%s)", (int)w >> 20, riscv_register(rs1));
	case 'q':
		imm = ((int)w >> 25) * 32 + (int)rd;
		return snprintf(buf, size, "%d(%s)", imm, riscv_register(rs1));
	case 'a':
	case 'b': return snprintf(buf, size, "(%s)", riscv_register(rs1));
	case 'f': return snprintf(buf, size, "%s", riscv_fli[rs1]);
	case 'e': return mode ? snprintf(buf, size, "%s", modes[mode]) : 0;
	case 'm': return snprintf(buf, size, "%s", modes[mode]);
	/* Zcb: the two registers of three bits, and offsets of one and two bits. */
	case 'A': return snprintf(buf, size, "%s", riscv_register(8 + (w >> 7 & 7)));
	case 'B': return snprintf(buf, size, "%s", riscv_register(8 + (w >> 2 & 7)));
	case 'X':
		imm = (w >> 6 & 1) | (w >> 4 & 2);
		return snprintf(buf, size, "%d(%s)", imm, riscv_register(8 + (w >> 7 & 7)));
	case 'H': return snprintf(buf, size, "%d(%s)", (int)(w >> 4 & 2), riscv_register(8 + (w >> 7 & 7)));
	default: return 0;
	}
}

/*
 * The instruction w (16 or 32 bits, the rest 0) as mnemonic and operands, the latter separated by ", ".
 * False if it is unknown.
 */
static int riscv_disasm(unsigned int w, char mnemonic[16], char operands[64])
{
	static const char order[4][6] = { "", ".rl", ".aq", ".aqrl" };
	const struct riscv_row *insn = riscv_rows, *end = insn + sizeof(riscv_rows) / sizeof(*insn);
	const char *letter;
	char *at = operands;

	/* Reserved values within an instruction (odd pairs, rounding modes 5 and 6) are not told apart. */
	while (insn < end && ((w & insn->mask) != insn->value ||
			      (*insn->operands == '=' && (w >> 15 & 31) != (w >> 20 & 31))))
		insn++;
	if (insn == end)
		return 0;
	*at = 0;
	snprintf(mnemonic, 16, "%s", insn->mnemonic);
	for (letter = insn->operands; *letter; letter++) {
		int comma = at > operands;
		int length = riscv_operand(*letter, w, at + 2 * comma, 16);

		if (*letter == 'a')
			snprintf(mnemonic, 16, "%s%s", insn->mnemonic, order[w >> 25 & 3]);
		if (length && comma) {
			at[0] = ',';
			at[1] = ' ';
		} else if (comma) {
			*at = 0;
		}
		if (length)
			at += 2 * comma + length;
	}
	return 1;
}
