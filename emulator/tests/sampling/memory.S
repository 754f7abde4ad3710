# A supervisor that has its own loop sampled: a pointer chase, stores, and a branch that nobody foresees. Machine mode prints the records.
.option norvc
.equ SPDISCTL, 0x5c0
.equ SPDISCOUNTER, 0x5c1
.equ SPDISEVMASK, 0x5c2
.equ SPDISEVMATCH, 0x5c3
.equ SPDISFILTER, 0x5c4
.equ SPDISAMBCS, 0x5c5
.equ SPDISAMBADDR, 0x5c6
.equ UART, 0x10000000
.equ BUFFER, 0x80400000
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
  la t0, print
  csrw mtvec, t0
  la t0, supervisor
  csrw mepc, t0
  li t0, 3 << 11
  csrc mstatus, t0
  li t0, 1 << 11
  csrs mstatus, t0
  # Counter 3: retired loads and atomics that missed in the L1 data cache.
  li t0, 2089
  csrw 0x323, t0
  mret
sleep:
  wfi
  j sleep

supervisor:
  # Each link has the address of the next.
  li s0, CHAIN
  li s1, STRIDE
  li s2, LINKS
1:
  add t0, s0, s1
  sd t0, 0(s0)
  mv s0, t0
  addi s2, s2, -1
  bnez s2, 1b
  li t0, BUFFER
  csrw SPDISAMBADDR, t0
  li t0, 10 << 1 | 1 | 1 << 32
  csrw SPDISAMBCS, t0
  li t0, MASK
  csrw SPDISEVMASK, t0
  li t0, MATCH
  csrw SPDISEVMATCH, t0
  li t0, FILTER
  csrw SPDISFILTER, t0
  li t0, COUNTER
  csrw SPDISCOUNTER, t0
  # In memory, with time and physical address, in supervisor mode, and no interrupt.
  li t0, CONTROL | 13 << 32 | 1 << 61 | 1 << 63
  li s0, CHAIN
  li s2, LINKS
  li s3, 12345
  li s4, 1103515245
  li s5, BUFFER - 4096
  csrw SPDISCTL, t0
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
  amoadd.d zero, s7, (s5)
  addi s2, s2, -1
  bnez s2, work
  csrw SPDISCTL, zero
  csrr s2, SPDISAMBADDR
  ecall

.align 2
print:
  li s1, BUFFER
  li s4, UART
3:
  beq s1, s2, 6f
  li s3, 6
4:
  ld a0, 0(s1)
  jal hex
  addi s1, s1, 8
  addi s3, s3, -1
  bnez s3, 4b
  addi s1, s1, 16
  li t0, 10
  sb t0, 0(s4)
  j 3b
6:
  li t0, 0x100000
  li t1, 0x5555
  sw t1, 0(t0)
  j .
