# Prints a0 as 16 digits and a space; s4: the UART. Clobbers t0 to t2.
hex:
  li t0, 60
1:
  srl t1, a0, t0
  andi t1, t1, 15
  la t2, digits
  add t2, t2, t1
  lb t1, 0(t2)
  sb t1, 0(s4)
  addi t0, t0, -4
  bgez t0, 1b
  li t1, 32
  sb t1, 0(s4)
  ret
digits: .ascii "0123456789abcdef"
