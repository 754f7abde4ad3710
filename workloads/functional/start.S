/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs main on bare metal: in machine mode, or with -DSV39 in supervisor mode under translation. Any machine with
 * memory at 0x80000000, a 16550 at 0x10000000 and a SiFive test device at 0x100000 will do. */
	.section .text.init, "ax"
	.globl _start
_start:
	la	sp, stack_top
	li	t0, 3 << 13
	csrs	mstatus, t0
#ifdef SV39
	/* Everything is allowed (PMP), and mapped to itself in pages of 1 GiB. */
	li	t0, -1
	csrw	pmpaddr0, t0
	li	t0, 0x1f
	csrw	pmpcfg0, t0
	la	t0, table
	srli	t0, t0, 12
	li	t1, 8 << 60
	or	t0, t0, t1
	csrw	satp, t0
	sfence.vma
	li	t0, 3 << 11
	csrc	mstatus, t0
	li	t0, 1 << 11
	csrs	mstatus, t0
	la	t0, 1f
	csrw	mepc, t0
	mret
1:
#endif
	call	main
	li	t0, 0x100000
	li	t1, 0x5555
	sw	t1, 0(t0)
2:	j	2b

	.section .data
	.align	12
table:	.dword	0xcf, 0x100000cf, 0x200000cf, 0x300000cf
	.zero	4096 - 32

	.bss
	.align	4
	.zero	65536
stack_top:
