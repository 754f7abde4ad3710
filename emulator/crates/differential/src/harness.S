# What runs around the random blocks, in machine mode: enters each block in its privilege with its registers,
# skips instructions that trap, to here or to supervisor mode, takes interrupts, and after each block folds registers,
# CSRs and a window of memory into a checksum. Addresses and offsets are those of src/layout.rs.
#define SAVE_F      256
#define SAVE_CSR    512
#define SAVE_HASH   640
#define SAVE_INDEX  648
#define SAVE_RUNS   656
#define SAVE_LOG    664
#define SAVE_TRAPS  672
#define SAVE_START  680
#define SAVE_INSIDE 688
#define SAVE_INTERRUPTS 696
#define SAVE_LAST   704
#define TABLES      0x80100000
#define DATA        0x80200000
#define PARAMETERS  0x80400000
#define HARNESS_END 0x80010000
#define CODE        0x80600000
#define SUPERVISOR  CODE
#define LOG         0x80800000
#define MAGIC       0x7469701b

    .option norvc
    .globl _start, tohost, fromhost
    .section .text.init, "ax"
_start:
    la      t0, handler
    csrw    mtvec, t0
    # Nothing but memory can be accessed, and neither this code nor the blocks written, in machine mode as well:
    # QEMU lets a store to code that is already translated take effect late. Nor the page tables and parameters: a
    # block would decide how another one is entered.
    .macro  region number, end
    li      t0, (\end) >> 2
    csrw    pmpaddr\number, t0
    .endm
    region  0, 0x80000000
    region  1, HARNESS_END
    region  2, TABLES
    # What reaches into the data from below may fault or not, so that nothing below is there: machines may check a
    # misaligned access in parts, as tipsim does at pages, and QEMU if it had the page before.
    region  3, DATA - 4096
    region  4, DATA
    region  5, PARAMETERS
    region  6, LOG
    region  7, 0x88000000
    region  8, -1
    li      t0, 0x0f8d0f88890f8d88
    csrw    pmpcfg0, t0
    li      t0, 0x88
    csrw    pmpcfg2, t0
    li      t0, SUPERVISOR
    csrw    stvec, t0
    csrw    mideleg, zero
    csrw    mie, zero
    csrw    mcounteren, zero
    csrw    scounteren, zero
    csrw    sscratch, zero
    csrw    sepc, zero
    csrw    scause, zero
    csrw    stval, zero
    li      t0, 3 << 13
    csrs    mstatus, t0
    csrw    fcsr, zero
    .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    fmv.d.x f\n, zero
    .endr
    # Page tables may hold memory types (Svpbmt). 0x30a: menvcfg.
    li      t0, 1 << 62
    csrs    0x30a, t0
    la      s0, save
    csrw    mscratch, s0
    li      t0, LOG
    sd      t0, SAVE_LOG(s0)
    j       enter_block

    .macro  mix value
    xor     s1, s1, \value
    mul     s1, s1, s2
    srli    s3, s1, 29
    xor     s1, s1, s3
    .endm

    .align  2
handler:
    csrrw   x31, mscratch, x31
    .irp    n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30
    sd      x\n, 8*\n(x31)
    .endr
    mv      s0, x31
    csrrw   t0, mscratch, s0
    sd      t0, 8*31(s0)
    # Instructions in blocks: since the counter was read in `leave`, less the 35 from there to the block and the 34
    # from the block to here.
    csrr    t0, minstret
    ld      t1, SAVE_START(s0)
    sub     t0, t0, t1
    addi    t0, t0, -69
    ld      t1, SAVE_INSIDE(s0)
    add     t1, t1, t0
    sd      t1, SAVE_INSIDE(s0)
    ld      s1, SAVE_HASH(s0)
    li      s2, 0x9e3779b97f4a7c15
    csrr    s4, mcause
    csrr    s5, mepc
    csrr    s6, mtval
    bltz    s4, interrupt
    # User code is mapped 1 GiB below: its physical address has bit 30 clear.
    li      t0, 1 << 30
    not     t0, t0
    and     s7, s5, t0
    li      t1, SUPERVISOR
    beq     s5, t1, delegated
    li      t0, 8
    bltu    s4, t0, trap
    li      t0, 11
    bgtu    s4, t0, trap
    lwu     t1, 4(s7)
    li      t2, MAGIC
    beq     t1, t2, block_end
    j       trap

    # Supervisor mode took the trap: its handler is an `ecall`, and eight bytes on an `sret`.
delegated:
    csrr    s4, scause
    csrr    s5, sepc
    csrr    s6, stval
    and     s7, s5, t0
    bgez    s4, trap
    # On to the `sret`.
    li      t0, SUPERVISOR + 8
    csrw    mepc, t0

    # Taken once, before an instruction that is executed afterwards.
interrupt:
    li      t0, 1
    sll     t0, t0, s4
    csrc    mip, t0
    mix     s4
    mix     s5
    csrr    t0, mstatus
    mix     t0
    sd      s1, SAVE_HASH(s0)
    ld      t0, SAVE_INTERRUPTS(s0)
    addi    t0, t0, 1
    sd      t0, SAVE_INTERRUPTS(s0)
    j       leave

trap:
    li      t0, PARAMETERS
    ld      t0, 16(t0)
    bnez    t0, 2f
    # QEMU sometimes leaves mtval zero for an illegal instruction, as it may.
    li      t0, 2
    bne     s4, t0, 1f
    bnez    s6, 2f
    lhu     s6, 0(s7)
    andi    t0, s6, 3
    li      t1, 3
    bne     t0, t1, 2f
    lwu     s6, 0(s7)
    j       2f
    # QEMU before 9.0 takes faults of atomics for a load's: 4, 5, 13 instead of 6, 7, 15.
1:
    li      t0, 1 << 4 | 1 << 5 | 1 << 13
    srl     t0, t0, s4
    andi    t0, t0, 1
    beqz    t0, 2f
    lwu     t0, 0(s7)
    andi    t1, t0, 0x7f
    li      t2, 0x2f
    bne     t1, t2, 2f
    srli    t0, t0, 27
    li      t2, 2
    beq     t0, t2, 2f
    addi    s4, s4, 2
2:  mix     s4
    mix     s5
    # What a breakpoint writes to mtval is free: zero, or the address.
    li      t0, 3
    beq     s4, t0, 4f
    # Which half of an access around address 0 faults first is free.
    addi    t0, s6, 8
    li      t1, 16
    bltu    t0, t1, 4f
    # Of a cache block's fault QEMU writes the block's address, not the one given.
    lwu     t0, 0(s7)
    li      t1, 0x707f
    and     t0, t0, t1
    li      t1, 0x200f
    beq     t0, t1, 4f
    mix     s6
    j       1f
4:  li      s6, 0
1:  csrr    t0, mstatus
    mix     t0
    sd      s1, SAVE_HASH(s0)
    ld      t0, SAVE_TRAPS(s0)
    andi    t1, t0, 63
    slli    t1, t1, 5
    add     t1, t1, s0
    sd      s4, SAVE_LAST(t1)
    sd      s5, SAVE_LAST+8(t1)
    sd      s6, SAVE_LAST+16(t1)
    csrr    t2, mstatus
    sd      t2, SAVE_LAST+24(t1)
    addi    t0, t0, 1
    sd      t0, SAVE_TRAPS(s0)
    lhu     t0, 0(s7)
    andi    t0, t0, 3
    addi    s5, s5, 2
    li      t1, 3
    bne     t0, t1, 2f
    addi    s5, s5, 2
2:  csrr    t0, mepc
    li      t1, SUPERVISOR
    beq     t0, t1, 5f
    csrw    mepc, s5
    j       leave
    # Blocks may read them: as they were taken for equal.
5:  csrw    scause, s4
    csrw    stval, s6
    csrw    sepc, s5
    addi    t0, t0, 8
    csrw    mepc, t0

leave:
    csrr    t0, minstret
    sd      t0, SAVE_START(s0)
    mv      x31, s0
    .irp    n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30
    ld      x\n, 8*\n(x31)
    .endr
    ld      x31, 8*31(x31)
    mret

block_end:
    mix     s5
    .irp    n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    ld      t0, 8*\n(s0)
    mix     t0
    .endr
    csrr    t0, mstatus
    sd      t0, SAVE_CSR(s0)
    mix     t0
    li      t1, 3 << 13
    csrs    mstatus, t1
    .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    fsd     f\n, SAVE_F+8*\n(s0)
    ld      t0, SAVE_F+8*\n(s0)
    mix     t0
    .endr
    csrr    t0, fcsr
    sd      t0, SAVE_CSR+8(s0)
    mix     t0
    csrr    t0, sscratch
    sd      t0, SAVE_CSR+16(s0)
    mix     t0
    csrr    t0, sepc
    sd      t0, SAVE_CSR+24(s0)
    mix     t0
    csrr    t0, scause
    sd      t0, SAVE_CSR+32(s0)
    mix     t0
    csrr    t0, stval
    sd      t0, SAVE_CSR+40(s0)
    mix     t0
    # SSIP and STIP; QEMU's timer has MTIP pending.
    csrr    t0, mip
    andi    t0, t0, 0x22
    sd      t0, SAVE_CSR+48(s0)
    mix     t0
    # A window of 32 words, which moves on with every block.
    ld      t1, SAVE_RUNS(s0)
    slli    t1, t1, 8
    li      t2, 0x3ff00
    and     t1, t1, t2
    li      t2, DATA
    add     t1, t1, t2
    addi    t2, t1, 256
3:  ld      t0, 0(t1)
    mix     t0
    addi    t1, t1, 8
    bltu    t1, t2, 3b
    sd      s1, SAVE_HASH(s0)
    ld      t0, SAVE_LOG(s0)
    sd      s1, 0(t0)
    addi    t0, t0, 8
    sd      t0, SAVE_LOG(s0)
    ld      t0, SAVE_RUNS(s0)
    addi    t0, t0, 1
    sd      t0, SAVE_RUNS(s0)
    li      t1, PARAMETERS
    ld      t2, 8(t1)
    beq     t0, t2, end
    ld      t0, 0(t1)
    ld      t1, SAVE_INDEX(s0)
    addi    t1, t1, 1
    bltu    t1, t0, 4f
    li      t1, 0
4:  sd      t1, SAVE_INDEX(s0)

enter_block:
    ld      t1, SAVE_INDEX(s0)
    slli    t1, t1, 7
    li      t0, PARAMETERS + 128
    add     t1, t1, t0
    ld      t0, 0(t1)
    csrw    mepc, t0
    ld      t0, 16(t1)
    csrw    satp, t0
    sfence.vma
    ld      t0, 24(t1)
    csrw    fcsr, t0
    ld      t0, 8(t1)
    csrw    mstatus, t0
    ld      t0, 80(t1)
    csrw    medeleg, t0
    ld      t0, 88(t1)
    csrw    mideleg, t0
    ld      t0, 96(t1)
    csrw    mie, t0
    ld      t0, 104(t1)
    csrw    mip, t0
    # Pointers: x2, x8, x9, x10, x11, x18.
    ld      t0, 32(t1)
    sd      t0, 8*2(s0)
    ld      t0, 40(t1)
    sd      t0, 8*8(s0)
    ld      t0, 48(t1)
    sd      t0, 8*9(s0)
    ld      t0, 56(t1)
    sd      t0, 8*10(s0)
    ld      t0, 64(t1)
    sd      t0, 8*11(s0)
    ld      t0, 72(t1)
    sd      t0, 8*18(s0)
    j       leave

end:
    li      t0, PARAMETERS
    ld      t1, 16(t0)
    beqz    t1, semihosting
    la      t0, tohost
    li      t1, 1
    sd      t1, 0(t0)
5:  j       5b

# QEMU: opens standard output (SYS_OPEN of ":tt"), writes log, registers and data, exits.
semihosting:
    la      s2, block
    la      t0, terminal
    sd      t0, 0(s2)
    li      t0, 4
    sd      t0, 8(s2)
    li      t0, 3
    sd      t0, 16(s2)
    li      a0, 1
    mv      a1, s2
    call    host
    mv      s3, a0
    li      t0, LOG
    ld      t1, SAVE_LOG(s0)
    sub     t1, t1, t0
    call    write
    mv      t0, s0
    li      t1, 4096
    call    write
    li      t0, DATA
    li      t1, 0x40000
    call    write
    li      t0, 0x20026
    sd      t0, 0(s2)
    sd      zero, 8(s2)
    li      a0, 0x18
    mv      a1, s2
    call    host
6:  j       6b

write:
    sd      s3, 0(s2)
    sd      t0, 8(s2)
    sd      t1, 16(s2)
    li      a0, 5
    mv      a1, s2
    .align  4
host:
    slli    zero, zero, 0x1f
    ebreak
    srai    zero, zero, 7
    ret

    .section .data
    .align  6
tohost:   .dword 0
    .align  6
fromhost: .dword 0
    .align  6
save:     .zero 4096
block:    .zero 32
terminal: .asciz ":tt"
