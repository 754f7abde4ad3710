// Counts from a region of machine, supervisor and user code in which nearly everything that is counted occurs. The counters stand still
// but for the region, so that they differ from the host's count only by the instructions that let them go and stop them. SELECTORS is what
// they count; their values go to the console. TURNS is how long it takes.

.option norvc
.globl _start
_start:
 bnez a0, other
 li t0, -1
 csrw mcountinhibit, t0
 csrw pmpaddr0, t0
 csrw mcounteren, t0
 csrw scounteren, t0
 li t0, 0x1f
 csrw pmpcfg0, t0
 lla t0, handler
 csrw mtvec, t0
 li t0, 0x6000
 csrs mstatus, t0
 lla t1, selectors
.altmacro
.macro select n
 ld t0, 8 * (\n - 3)(t1)
 csrw mhpmevent\n, t0
 csrw mhpmcounter\n, zero
.endm
.set n, 3
.rept 29
 select %n
 .set n, n + 1
.endr

// Sv39: a gigabyte of 4 KiB pages that are all one (supervisor at 0, user at 0x140000000), memory (at its place, user at 0x100000000),
// device registers (supervisor at 0x1c0000000, user at 0x180000000).
.macro table place, entry
 lla t2, \place
 li t1, 512
9: sd \entry, 0(t2)
 addi t2, t2, 8
 addi t1, t1, -1
 bnez t1, 9b
.endm
.macro entry register, place, bits
 la \register, \place
 srli \register, \register, 12
 slli \register, \register, 10
 ori \register, \register, \bits
.endm
 entry t0, page, 0xcf
 table pages, t0
 entry t0, pages, 1
 table middle, t0
 entry t0, page, 0xdf
 table user_pages, t0
 entry t0, user_pages, 1
 table user_middle, t0
 lla t1, root
 entry t0, middle, 1
 sd t0, 0(t1)
 li t0, 0x200000cf
 sd t0, 16(t1)
 li t0, 0x200000df
 sd t0, 32(t1)
 entry t0, user_middle, 1
 sd t0, 40(t1)
 li t0, 0xdf
 sd t0, 48(t1)
 li t0, 0xcf
 sd t0, 56(t1)
 srli t0, t1, 12
 li t1, 8
 slli t1, t1, 60
 or t0, t0, t1
 csrw satp, t0
 sfence.vma

 li s2, 88172645463325252
 li t0, 0x80
 csrw mie, t0
 li a6, -1
.align 6
.rept 8
 nop
.endr
 csrw mcountinhibit, zero
 addi x0, x1, 0

 // In machine mode, on pages that are not there yet.
 li s6, 3
 li s8, 0
 li s9, 0x03fff000
 li s11, 0x84000000
 li t0, 0x2004000
 sd zero, 0(t0)
 csrsi mstatus, 8
 jal ra, work
 csrci mstatus, 8

 // In supervisor mode.
 li s6, 1
 li s8, 0x1c0000000
 li s9, 0x3ffff000
 li s11, 0
 lla t0, 1f
 csrw mscratch, t0
 lla t0, enter
 csrw mepc, t0
 li t0, 0x1800
 csrc mstatus, t0
 li t0, 0x880
 csrs mstatus, t0
 mret
1:
 // In user mode.
 li s6, 0
 li s8, 0x180000000
 li s11, 0x140000000
 lla t0, 1f
 csrw mscratch, t0
 lla t0, enter
 li t1, 1
 slli t1, t1, 31
 add t0, t0, t1
 csrw mepc, t0
 li t0, 0x1800
 csrc mstatus, t0
 li t0, 0x80
 csrs mstatus, t0
 mret
1:
.align 6
.rept 8
 nop
.endr
 addi x0, x2, 0
 csrw mcountinhibit, a6

.macro show n
 csrr a0, mhpmcounter\n
 jal ra, print
.endm
.set n, 3
.rept 29
 show %n
 .set n, n + 1
.endr
 li t0, 0x5555
 li t1, 0x100000
 sw t0, 0(t1)
1: j 1b

// Sixteen digits and a line feed.
print:
 li t0, 60
 li t3, 0x10000000
1: srl t1, a0, t0
 andi t1, t1, 15
 addi t2, t1, -10
 addi t1, t1, 48
 bltz t2, 2f
 addi t1, t1, 39
2: sb t1, 0(t3)
 addi t0, t0, -4
 bgez t0, 1b
 li t1, 10
 sb t1, 0(t3)
 ret

// The second hart takes the first one's lines.
other:
 lla t4, heap
7: amoadd.d t5, t4, (t4)
 ld t5, 64(t4)
 j 7b

.align 2
handler:
 csrr t0, mcause
 bltz t0, 1f
 li tp, 77
 beq a7, tp, 2f
 li tp, 12
 beq t0, tp, 3f
 li tp, 1
 beq t0, tp, 3f
 csrr t0, mepc
 addi t0, t0, 4
 csrw mepc, t0
 mret
// The timer: again in 24 ticks.
1: li tp, 0x2004000
 li gp, 0x200bff8
 ld t0, 0(gp)
 addi t0, t0, 24
 sd t0, 0(tp)
 mret
// Back to machine mode.
2: csrr t0, mscratch
 jr t0
// A call to where no code is.
3: csrw mepc, ra
 mret

enter:
 jal ra, work
 li a7, 77
 ecall

recurse:
 addi sp, sp, -16
 sd ra, 0(sp)
 addi a0, a0, -1
 beqz a0, 1f
 jal ra, recurse
1: ld ra, 0(sp)
 addi sp, sp, 16
direct:
 ret
other_direct:
 nop
 ret

work:
 mv s5, ra
 lla sp, stack
 li a7, 0
 li s0, TURNS
turn:
 // A random number, and a random page with a random line of four in it.
 slli t2, s2, 13
 xor s2, s2, t2
 srli t2, s2, 7
 xor s2, s2, t2
 slli t2, s2, 17
 xor s2, s2, t2
 and t2, s2, s9
 srli t4, s2, 40
 andi t4, t4, 0xf8
 add t2, t2, t4
 add t2, t2, s11
 // Lines that are not there, more than miss registers; then stores of such lines.
 li t3, 4160
 ld t5, 0(t2)
.rept 14
 add t2, t2, t3
 ld t6, 0(t2)
.endr
.rept 24
 add t2, t2, t3
 sd s0, 0(t2)
.endr
.rept 12
 ld t6, 0(t2)
 ld t6, 16(t2)
.endr
 // Lines one after the other, which are prefetched.
 lla t4, heap
 slli t2, s0, 9
 add t4, t4, t2
 ld t6, 0x400(t4)
 div t6, s2, s0
 and t6, t6, zero
 add t6, t6, t4
 ld t6, 0x440(t6)
 // What waits for a line fills the queues: loads, branches, operations, and loads that wait for none.
 and t2, s2, s9
 add t2, t2, s11
 ld t5, 64(t2)
 lla t4, heap
 and t6, t5, zero
 add t6, t6, t4
.rept 30
 ld t3, 8(t6)
.endr
 srli t2, s2, 9
 and t2, t2, s9
 add t2, t2, s11
 ld t5, 128(t2)
.rept 30
 bne t5, t5, 1f
1:
.endr
 div t6, t5, s0
.rept 100
 addi t6, t6, 1
.endr
.rept 40
 sd s0, 8(t4)
 ld t3, 16(t4)
.endr
.rept 40
 ld t3, 16(t4)
.endr
 srli t2, s2, 11
 and t2, t2, s9
 add t2, t2, s11
 ld t5, 192(t2)
.rept 40
 sd s0, 8(t4)
.endr
 // Floating point.
 fcvt.d.l ft0, s2
 fdiv.d ft1, ft0, ft0
 fsqrt.d ft1, ft0
.rept 50
 fadd.d ft1, ft1, ft0
.endr
.rept 4
 fmul.d ft3, ft0, ft0
 fmul.d ft4, ft0, ft0
.endr
 fld ft2, 0(t4)
 fsd ft2, 8(t4)
 fsd ft1, 16(t4)
 fcvt.l.d t5, ft2
 // A random branch, divisions, and loops whose length changes.
 andi t5, s2, 1
 beqz t5, 1f
 div t6, s2, s0
 mul t6, t6, s0
1: li t3, 9
 andi t2, s0, 8
 beqz t2, 1f
 li t3, 14
1: li t6, 3
8: mv t2, t3
9: addi t2, t2, -1
 bnez t2, 9b
 addi t6, t6, -1
 bnez t6, 8b
 // Jumps.
 call direct
 lla t4, direct
 andi t2, s2, 2
 beqz t2, 1f
 lla t4, other_direct
1: jalr t4
 lla t4, 1f
 andi t2, s2, 4
 add t4, t4, t2
 jr t4
1: nop
 j 1f
1: li a0, 40
 jal ra, recurse
 // Code on each of 40 pages.
 li t2, 3
 beq s6, t2, 1f
 li t3, 4000
 add t2, s11, t3
 li t3, 4096
 li a0, 40
8: jalr ra, 0(t2)
 add t2, t2, t3
 addi a0, a0, -1
 bnez a0, 8b
1: // Fences, atomics, registers.
 lla t4, heap
 fence
 fence.i
 lr.d t5, (t4)
 sc.d t5, s0, (t4)
 sc.d t5, s0, (t4)
 amoadd.d t5, s0, (t4)
 lr.w t5, (t4)
 rdcycle t5
 frflags t5
 // A load before an older store to its bytes, one that waits for a store's data, one that finds some of its bytes, one that crosses a line.
 div t2, s2, s0
 sub t2, t2, t2
 add t2, t2, t4
 sd s2, 0(t2)
 ld t5, 0(t4)
 div t2, s2, s0
 sd t2, 16(t4)
 ld t5, 16(t4)
 sb t2, 24(t4)
 ld t5, 24(t4)
 ld t5, 61(t4)
 // A device register.
 li t2, 0x200bff8
 add t2, t2, s8
 ld t5, 0(t2)
 // Traps of every kind.
 ecall
 .word 0
 ebreak
 li t2, 0x700000000
 ld t5, 0(t2)
 sd t5, 0(t2)
 jalr ra, 0(t2)
 addi t2, t4, 4
 amoadd.d t5, s0, (t2)
 csrr t5, mscratch
 // Now and then: sleep until the timer, other translations.
 andi t5, s0, 7
 bnez t5, 2f
 sfence.vma
 beqz s6, 2f
 wfi
2: li t2, 1
 bne s6, t2, 1f
 lla t2, 1f
 csrw sepc, t2
 li t2, 0x100
 csrs sstatus, t2
 sret
1: addi s0, s0, -1
 beqz s0, 1f
 j turn
1: mv ra, s5
 ret

.data
.align 3
selectors:
 .dword SELECTORS
.align 12
root: .zero 4096
middle: .zero 4096
pages: .zero 4096
user_middle: .zero 4096
user_pages: .zero 4096
page: .zero 4000
 ret
 .zero 92
heap: .zero 262144
.zero 4096
stack: .zero 64
