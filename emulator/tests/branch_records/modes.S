.option norvc
.equ SCTRCTL, 0x14e
.equ SISELECT, 0x150
.equ SIREG, 0x151
.equ SIREG2, 0x152
.equ SIREG3, 0x153
.equ SCTRDEPTH, 0x15f
.equ MCTRCTL, 0x34e
.equ SCTRSTATUS, 0x14f
.equ UART, 0x10000000
.globl _start
_start:
  csrr t0, mhartid
  bnez t0, sleep
  li t0, -1
  csrw pmpaddr0, t0
  li t0, 0x1f
  csrw pmpcfg0, t0
  li t0, 1 << 8
  csrw medeleg, t0
  la t0, print
  csrw mtvec, t0
  la t0, supervisor
  csrw mepc, t0
  li t0, 3 << 11
  csrc mstatus, t0
  li t0, 1 << 11
  csrs mstatus, t0
  li t0, 4
  csrw SCTRDEPTH, t0
  li t0, CONTROL
  csrw MCTRCTL, t0
  mret
sleep:
  wfi
  j sleep

supervisor:
  la t0, called
  csrw stvec, t0
  la t0, user
  csrw sepc, t0
  li t0, 1 << 8
  csrc sstatus, t0
  sret
.align 2
called:
  bnez a7, finish
  csrr t0, sepc
  addi t0, t0, 4
  csrw sepc, t0
  sret
finish:
  ecall

user:
  li a7, 0
  li s0, 5
  li s3, 12345
outer:
  li s1, 3
inner:
  addi s1, s1, -1
  bnez s1, inner
  jal double
  la t1, even
  andi t2, s0, 1
  beqz t2, 1f
  la t1, odd
1:
  jr t1
even:
  li t3, 1103515245
  mul s3, s3, t3
  srli t4, s3, 9
  andi t4, t4, 1
  bnez t4, odd
  ecall
odd:
  div t5, s3, s0
  addi s0, s0, -1
  bnez s0, outer
  li a7, 1
  ecall
double:
  mv s5, ra
  la t1, leaf
  jalr t1
  la t1, millicode
  jalr t0, t1
  mv ra, s5
  ret
leaf:
  ret
millicode:
  jr t0

.align 2
print:
  csrw MCTRCTL, zero
  li s0, 0x200
  li s1, 0x300
  li s4, UART
3:
  csrw SISELECT, s0
  csrr a0, SIREG
  jal hex
  csrr a0, SIREG2
  jal hex
  csrr a0, SIREG3
  jal hex
  li t0, 10
  sb t0, 0(s4)
  addi s0, s0, 1
  bne s0, s1, 3b
  li t0, 0x100000
  li t1, 0x5555
  sw t1, 0(t0)
  j .
