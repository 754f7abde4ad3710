# A supervisor's loop with a counter whose overflows the hart records in memory, with registers and control transfer records, until there is
# no room: then it overflows as any other. Machine mode, which is not counted, prints what was recorded.
.option norvc
.equ SISELECT, 0x150
.equ SIREG, 0x151
.equ SHPMSPC, 0x5c8
.equ SHPMSDATA, 0x5c9
.equ SHPMSCTL, 0x5ca
.equ SHPMSAMBCS, 0x5cb
.equ SHPMSAMBADDR, 0x5cc
.equ MCTRCTL, 0x34e
.equ SELECTOR, 0x323
.equ MHPMCOUNTER3, 0xb03
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
  # In supervisor mode.
  li t0, 2
  csrw MCTRCTL, t0
  li t0, BUFFER
  csrw SHPMSAMBADDR, t0
  # EN, 64 KiB, SOF.
  li t0, 1 << 32 | 4 << 1 | 1
  csrw SHPMSAMBCS, t0
  li t0, 3 << 32 | 1 << 3
  csrw SHPMSCTL, t0
  li t0, 1 << 62
  csrw SHPMSDATA, t0
  # Counter 3 goes on from there.
  li t0, 1 << 63 | 0x43
  csrw SISELECT, t0
  li t0, -PERIOD
  csrw SIREG, t0
  csrr t1, SIREG
  bne t0, t1, sleep
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
  li t0, -FIRST
  csrw MHPMCOUNTER3, t0
  li t0, 1 << 62 | EVENT
  csrw SELECTOR, t0
  mret
sleep:
  wfi
  j sleep

supervisor:
  li s0, CHAIN
  li s3, 12345
  li s4, 1103515245
  li s8, 0
work:
  addi s8, s8, 1
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
overflowed:
  li s1, BUFFER
  csrr s9, SHPMSAMBADDR
  li s4, UART
3:
  li s3, 8
4:
  ld a0, 0(s1)
  jal hex
  addi s1, s1, 8
  addi s3, s3, -1
  bnez s3, 4b
  li t0, 10
  sb t0, 0(s4)
  # 64 KiB are no multiple of a sample: it stopped before the end.
  bne s1, s9, 3b
  csrr a0, SHPMSPC
  jal hex
  csrr a0, SHPMSDATA
  jal hex
  csrr a0, mepc
  jal hex
  csrr a0, MHPMCOUNTER3
  jal hex
  li s3, 4
5:
  li a0, 0
  jal hex
  addi s3, s3, -1
  bnez s3, 5b
  li t0, 10
  sb t0, 0(s4)
  li t0, 0x100000
  li t1, 0x5555
  sw t1, 0(t0)
  j .
