# A nest of loops, calls and jumps without a system call: its transfers repeat with a period that is known.
# argv is not looked at: it runs for as many rounds as ROUNDS says, and ends.
.option norvc
.globl _start
.type _start, @function
_start:
	li	s0, ROUNDS
outer:
	li	s1, 3
inner:
	addi	s1, s1, -1
b_inner:
	bnez	s1, inner
j_call:
	jal	first
after:
	la	t1, over
j_jump:
	jr	t1
	nop
over:
	addi	s0, s0, -1
b_outer:
	bnez	s0, outer
	li	a7, 94
	li	a0, 0
	ecall
.size _start, . - _start

.type first, @function
first:
	mv	s2, ra
	la	t1, second
j_indirect:
	jalr	t1
back:
	mv	ra, s2
r_first:
	ret
.size first, . - first

.type second, @function
second:
	mv	s3, ra
	li	t2, 20
work:
	addi	t2, t2, -1
	div	t3, t2, s0
	add	s4, s4, t3
	addi	t2, t2, 0
j_third:
	jal	third
third_back:
	mv	ra, s3
r_second:
	ret
.size second, . - second

.type third, @function
third:
	div	t3, s4, s0
	div	t3, t3, s0
r_third:
	ret
.size third, . - third
