/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calls bench() once, in machine mode and with cold caches, and leaves cycles, instructions and its result behind: as the
 * signature, for a simulator, and in mscratch, one after the other, for a testbench that watches it. There -2 and -3 also
 * mark the measured part, and -1 the end. */
	.section .text.init,"ax"
	.globl _start
_start:
	.option push
	.option norelax
	la gp, __global_pointer$
	.option pop
	la	sp, stack_top
	li	t0, 3 << 13
	csrs	mstatus, t0
	csrw fcsr, zero
	call	setup
	li t0,-2
	csrw mscratch,t0
	csrr s4,mcycle
	csrr s5,minstret
	call	bench
	csrr s6,minstret
	csrr s7,mcycle
	li t0,-3
	csrw mscratch,t0
	mv s8,a0
	sub s6,s6,s5
	sub s7,s7,s4
	csrw mscratch,s7
	csrw mscratch,s6
	csrw mscratch,s8
	la t0, begin_signature
	sd s7,0(t0)
	sd s6,8(t0)
	sd s8,16(t0)
	fence
	li t0,-1
	csrw mscratch,t0
	la t0,tohost
	li t1,1
	sd t1,0(t0)
2:	j	2b
	.data
	.align 6
	.globl begin_signature
begin_signature: .dword 0,0,0
	.globl end_signature
end_signature:
	.align 6
	.globl tohost
tohost: .dword 0
	.globl fromhost
fromhost: .dword 0
	.bss
	.align	6
	.zero	65536
stack_top:
