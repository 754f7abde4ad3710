supervisor:
  la t0, broken
  csrw stvec, t0
  li t1, 100
1:
  addi t1, t1, -1
  bnez t1, 1b
  li t0, 2 | 1 << 11
  csrw SCTRCTL, t0
  li t1, 5
2:
  addi t1, t1, -1
  bnez t1, 2b
  ebreak
  li t1, 4
3:
  addi t1, t1, -1
  bnez t1, 3b
  csrw SCTRCTL, zero
  li t1, 100
4:
  addi t1, t1, -1
  bnez t1, 4b
  ecall
.align 2
broken:
  li t1, 100
5:
  addi t1, t1, -1
  bnez t1, 5b
  csrr t0, sepc
  addi t0, t0, 4
  csrw sepc, t0
  csrr t0, SCTRSTATUS
  slli t0, t0, 33
  srli t0, t0, 33
  csrw SCTRSTATUS, t0
  sret
