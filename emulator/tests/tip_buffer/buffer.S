# Machine mode has its own loop sampled, by FIFO or by buffer, with an interrupt or without. What it prints: a line of totals, and
# then the samples, oldest first. VALUE_*: what the test puts there.
.option norvc
.equ UART, 0x10000000
.equ TIP, 0x10040000
.equ PLIC, 0x0c000000
.equ BUFFER, VALUE_BUFFER
.equ SAMPLES, 64
.globl _start
_start:
  csrr t0, mhartid
  bnez t0, sleep
  la t0, handler
  csrw mtvec, t0
  # Source 32, for machine mode.
  li t1, 1
  li t0, PLIC + 4 * 32
  sw t1, 0(t0)
  li t0, PLIC + 0x2004
  sw t1, 0(t0)
  li t0, PLIC + 0x200000
  sw zero, 0(t0)
  li t0, 1 << 11
  csrw mie, t0
  csrsi mstatus, 8
  li s0, TIP
  li t0, BUFFER
  sd t0, 0x98(s0)
  # 4 KiB.
  li t0, VALUE_THRESHOLD << 32
  sd t0, 0xa0(s0)
  li t0, VALUE_PERIOD
  sd t0, 0x10(s0)
  sd t0, 0x18(s0)
  # Interrupts, samples taken, their weights, cycle of the last one, and those that were not in memory in time.
  li s5, 0
  li s6, 0
  li s7, 0
  li s8, 0
  li s9, 0
  li s1, VALUE_TURNS
  li s2, 987654321
  li s3, 7
  la s4, word
  # In memory, so that the code is the same for every value.
  ld t0, 8(s4)
  fence
  sd t0, 8(s0)
work:
  div t0, s2, s3
  ld t1, 0(s4)
  add t1, t1, t0
  sd t1, 0(s4)
  andi t2, t1, 4
  beqz t2, 1f
  addi s2, s2, 13
1:
  addi s1, s1, -1
  bnez s1, work
  sd zero, 8(s0)
  csrci mstatus, 8
  # Whatever waits for its sample has it by now.
  fence
  ld t0, 0x20(s0)
  ld t0, 0x20(s0)
  ld s10, 0xa8(s0)
  li s4, UART
  mv a0, s5
  jal hex
  mv a0, s6
  jal hex
  mv a0, s7
  jal hex
  mv a0, s9
  jal hex
  ld a0, 0x20(s0)
  jal hex
  ld a0, 0x28(s0)
  jal hex
  mv a0, s10
  jal hex
  ld a0, 0xb0(s0)
  jal hex
  jal newline
  # Of the buffer, what is left.
3:
  beq s6, s10, 4f
  andi a1, s6, SAMPLES - 1
  slli a1, a1, 6
  li t0, BUFFER
  add a1, a1, t0
  jal sample
  addi s6, s6, 1
  j 3b
4:
  # And of the FIFO.
  ld t0, 0x20(s0)
  andi t0, t0, 0xff
  beqz t0, 5f
  addi a1, s0, 0x40
  jal sample
  li t0, 1
  sd t0, 0x30(s0)
  j 4b
5:
  li t0, 0x100000
  li t1, 0x5555
  sw t1, 0(t0)
  j .

# Prints the seven words at a1, and a zero.
sample:
  mv s11, ra
  li s3, 7
6:
  ld a0, 0(a1)
  jal hex
  addi a1, a1, 8
  addi s3, s3, -1
  bnez s3, 6b
  li a0, 0
  jal hex
  mv ra, s11
newline:
  li t0, 10
  sb t0, 0(s4)
  ret

# Takes all samples. The one by which the line rose has to be there before a register is read.
.align 2
handler:
  li t3, BUFFER
  addi t4, s6, VALUE_THRESHOLD - 1
  andi t4, t4, SAMPLES - 1
  slli t4, t4, 6
  add t4, t4, t3
  ld t4, 0(t4)
  bgtu t4, s8, 1f
  addi s9, s9, 1
1:
  addi s5, s5, 1
  li t6, PLIC + 0x200004
  lw t5, 0(t6)
  ld a2, 0xa8(s0)
2:
  beq s6, a2, 3f
  andi t4, s6, SAMPLES - 1
  slli t4, t4, 6
  add t4, t4, t3
  ld s8, 0(t4)
  ld t4, 48(t4)
  add s7, s7, t4
  addi s6, s6, 1
  j 2b
3:
  sd s6, 0xb0(s0)
  sw t5, 0(t6)
  mret
sleep:
  wfi
  j sleep
.align 3
word: .dword 0, VALUE_CONTROL
.text
