# A supervisor's loop (a pointer chase, stores, and a branch that nobody foresees) with a counter that overflows now and then. Machine
# mode, which is not counted, keeps what the hart says of each overflow, and prints it.
.option norvc
.equ SISELECT, 0x150
.equ SIREG, 0x151
.equ SIREG5, 0x156
.equ SHPMSPC, 0x5c8
.equ SHPMSDATA, 0x5c9
.equ SELECTOR, 0x323
.equ MHPMCOUNTER3, 0xb03
.equ UART, 0x10000000
.equ LOG, 0x80400000
.equ SCRATCH, 0x80300000
.equ CHAIN, 0x81000000
.equ STRIDE, 4160
.equ LINKS, 2000
.globl _start
_start:
  csrr t0, mhartid
  bnez t0, sleep
  li t0, -1
  csrw pmpaddr0, t0
  li t0, 0x1f
  csrw pmpcfg0, t0
  la t0, overflowed
  csrw mtvec, t0
  la t0, supervisor
  csrw mepc, t0
  li t0, 3 << 11
  csrc mstatus, t0
  li t0, 1 << 11
  csrs mstatus, t0
  li t0, 1 << 13
  csrw mie, t0
  li t0, 0x62
  csrw SISELECT, t0
  li t0, 1 << 62
  csrw SHPMSDATA, t0
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
  li s9, LOG + 40 * SAMPLES
  li s10, -PERIOD
  li s11, 1 << 62 | EVENT
  csrw MHPMCOUNTER3, s10
  csrw SELECTOR, s11
  mret
sleep:
  wfi
  j sleep

supervisor:
  li s0, CHAIN
  li s3, 12345
  li s4, 1103515245
  li s5, SCRATCH
work:
  ld s0, 0(s0)
  sd s0, 0(s5)
  ld s6, 0(s5)
  mul s3, s3, s4
  addi s3, s3, 1013
  srli t1, s3, 17
  andi t1, t1, 1
  beqz t1, 2f
  addi s7, s7, 1
2:
  div t2, s3, s4
  add s2, s2, t2
  xor s2, s2, s6
  j work

.align 2
overflowed:
  csrr t3, SHPMSPC
  sd t3, 0(s8)
  csrr t3, SHPMSDATA
  sd t3, 8(s8)
  csrr t3, SIREG
  sd t3, 16(s8)
  csrr t3, SIREG5
  sd t3, 24(s8)
  csrr t3, mepc
  sd t3, 32(s8)
  addi s8, s8, 40
  beq s8, s9, print
  # Not the next one by a multiple of the loop.
  addi s10, s10, -(STEP)
  csrw MHPMCOUNTER3, s10
  csrw SELECTOR, s11
  li t3, 1 << 13
  csrc mip, t3
  mret

print:
  li s1, LOG
  li s4, UART
3:
  beq s1, s9, 6f
  li s3, 5
4:
  ld a0, 0(s1)
  jal hex
  addi s1, s1, 8
  addi s3, s3, -1
  bnez s3, 4b
  li t0, 10
  sb t0, 0(s4)
  j 3b
6:
  li t0, 0x100000
  li t1, 0x5555
  sw t1, 0(t0)
  j .
