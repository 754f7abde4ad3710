# SPDX-License-Identifier: MIT OR Apache-2.0
# Cycles from an overflow to the first instruction of its handler, without an operating system. A supervisor's loop (a pointer chase that misses
# in the caches, a division, and a branch that nobody foresees) is sampled; the handler's first instruction reads the counter by which it
# can tell. -DWAY: TIP, TIP_BUFFER, CYCLES, CYCLES_PP, PDIS or PDIS_BUFFER.
.option norvc
.equ TIP_UNIT, 0x10040000
.equ PLIC, 0x0c000000
.equ UART, 0x10000000
.equ BUFFER, 0x80400000
.equ CHAIN, 0x81000000
.equ LOG, 0x80300000
.equ STRIDE, 4160
.equ LINKS, 4000
.equ PERIOD, 20011
.equ TIMES, 200
#define TIP 1
#define TIP_BUFFER 2
#define CYCLES 3
#define CYCLES_PP 4
#define PDIS 5
#define PDIS_BUFFER 6
#define IS(way) (WAY == way)

.globl _start
_start:
  csrr t0, mhartid
  bnez t0, sleep
  li t0, -1
  csrw pmpaddr0, t0
  li t0, 0x1f
  csrw pmpcfg0, t0
  la t0, handler
  csrw mtvec, t0
  csrw stvec, t0
  la t0, supervisor
  csrw mepc, t0
  li t0, 3 << 11
  csrc mstatus, t0
  li t0, 1 << 11
  csrs mstatus, t0
  # External interrupts and counter overflow to machine mode, the memory buffer's to the supervisor.
  li t0, 1 << 11 | 1 << 13 | 1 << 14
  csrw mie, t0
  csrsi mstatus, 2
  # Each link has the address of the next; the last one that of the first.
  li s0, CHAIN
  li s1, STRIDE
  li s2, LINKS
1:
  add t0, s0, s1
  sd t0, 0(s0)
  mv s0, t0
  addi s2, s2, -1
  bnez s2, 1b
  li t0, CHAIN
  sd t0, 0(s0)
  li s8, LOG
  li s9, LOG + 8 * TIMES
  li s10, 0
  li s11, TIP_UNIT
#if IS(TIP) || IS(TIP_BUFFER)
  li t1, 1
  li t0, PLIC + 4 * 32
  sw t1, 0(t0)
  li t0, PLIC + 0x2004
  sw t1, 0(t0)
  li t0, PLIC + 0x200000
  sw zero, 0(t0)
  li t0, BUFFER
  sd t0, 0x98(s11)
  # 4 KiB, 16 samples.
  li t0, 16 << 32
  sd t0, 0xa0(s11)
  li t0, PERIOD
  sd t0, 0x10(s11)
  sd t0, 0x18(s11)
  # Of the supervisor, in a random cycle of each period, with interrupts, frozen while they are handled.
  li t0, 1 | 1 << 1 | 1 << 3 | 1 << 5 | 1 << 6 | IS(TIP_BUFFER) << 11
  sd t0, 8(s11)
#elif IS(CYCLES) || IS(CYCLES_PP)
  li t0, IS(CYCLES_PP) << 62
  csrw 0x5c9, t0
  li s10, -PERIOD
  csrw mhpmcounter3, s10
  li s11, 1
  csrw mhpmevent3, s11
#else
  li t0, -PERIOD & 0xffffffff
  slli t1, t0, 32
  or t0, t0, t1
  csrw 0x5c1, t0
  # 4 KiB; a quarter of it, 16 records.
  li t0, BUFFER
  csrw 0x5c6, t0
  li t0, 1 << 9 | 1 << 11 | 1 << 32 | 1
  csrw 0x5c5, t0
  # Cycles of all modes, which the handler's own are among. OF: no interrupt for each record.
  li t0, IS(PDIS_BUFFER) << 32 | 1 << 58 | 7 << 60 | IS(PDIS_BUFFER) << 63
  csrw 0x7c0, t0
#endif
  mret
sleep:
  wfi
  j sleep

supervisor:
  li s0, CHAIN
  li s3, 12345
  li s4, 1103515245
work:
  ld s0, 0(s0)
  mul s3, s3, s4
  addi s3, s3, 1013
  srli t1, s3, 17
  andi t1, t1, 1
  beqz t1, 2f
  addi s7, s7, 1
2:
  div t2, s3, s4
  add s2, s2, t2
  j work

.align 2
handler:
#if IS(TIP) || IS(TIP_BUFFER)
  csrr t3, mcycle
#if IS(TIP)
  ld t4, 0x40(s11)
#else
  # The sixteenth since the last time.
  addi t4, s10, 15
  andi t4, t4, 63
  slli t4, t4, 6
  li t5, BUFFER
  add t4, t4, t5
  ld t4, 0(t4)
#endif
  sub t3, t3, t4
#elif IS(CYCLES) || IS(CYCLES_PP)
  csrr t3, mhpmcounter3
#else
  # The low half, less what it began with.
  csrr t3, 0x5c1
  slli t3, t3, 32
  srli t3, t3, 32
  li t4, -PERIOD & 0xffffffff
  sub t3, t3, t4
#endif
  sd t3, 0(s8)
  addi s8, s8, 8
  beq s8, s9, print
#if IS(TIP) || IS(TIP_BUFFER)
  li t4, PLIC + 0x200004
  lw t5, 0(t4)
#if IS(TIP)
  li t3, 1
3:
  sd t3, 0x30(s11)
  ld t6, 0x20(s11)
  andi t6, t6, 0xff
  bnez t6, 3b
#else
  ld s10, 0xa8(s11)
  sd s10, 0xb0(s11)
#endif
  sw t5, 0(t4)
  mret
#elif IS(CYCLES) || IS(CYCLES_PP)
  # Not the next one by a multiple of the loop.
  addi s10, s10, -7
  csrw mhpmcounter3, s10
  csrw mhpmevent3, s11
  li t3, 1 << 13
  csrc mip, t3
  mret
#elif IS(PDIS)
  li t3, 1 << 13
  csrc mip, t3
  li t3, 1
  slli t3, t3, 63
  csrc 0x7c0, t3
  mret
#else
  csrw 0x5c5, zero
  li t3, BUFFER
  csrw 0x5c6, t3
  li t3, 1 << 14
  csrc sip, t3
  li t3, 1 << 9 | 1 << 11 | 1 << 32 | 1
  csrw 0x5c5, t3
  sret
#endif

# Decimal numbers, one a line.
print:
  li s1, LOG
  li s4, UART
4:
  beq s1, s9, 7f
  ld a0, 0(s1)
  addi s1, s1, 8
  la t3, digits
  mv t4, t3
  li t5, 10
5:
  remu t6, a0, t5
  divu a0, a0, t5
  addi t6, t6, 48
  sb t6, 0(t4)
  addi t4, t4, 1
  bnez a0, 5b
6:
  addi t4, t4, -1
  lb t6, 0(t4)
  sb t6, 0(s4)
  bne t4, t3, 6b
  sb t5, 0(s4)
  j 4b
7:
  li t0, 0x100000
  li t1, 0x5555
  sw t1, 0(t0)
  j .
.data
digits: .zero 24
