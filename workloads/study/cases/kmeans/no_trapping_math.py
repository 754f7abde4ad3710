"""A RISC-V program without the FP exception flags' being saved and restored around comparisons (frflags, comparison, fsflags:
what GCC makes of sqrt, isfinite and isless unless -fno-trapping-math is given): no_trapping_math.py PROGRAM RESULT."""

import struct
import sys

NOP = struct.pack("<I", 0x00000013)


def is_quiet_comparison(save: int, comparison: int, restore: int) -> bool:
    same_register = save >> 7 & 31 == restore >> 15 & 31
    is_comparison = comparison & 0xFC00007F == 0xA0000053
    return save & 0xFFFFF07F == 0x00102073 and is_comparison and restore & 0xFFF07FFF == 0x00101073 and same_register


source, result = sys.argv[1:]
with open(source, "rb") as file:
    program = bytearray(file.read())
count = 0
for at in range(0, len(program) - 12, 2):
    if is_quiet_comparison(*struct.unpack_from("<3I", program, at)):
        program[at : at + 4] = program[at + 8 : at + 12] = NOP
        count += 1
with open(result, "wb") as written:
    written.write(program)
print(f"{result}: {count} comparisons")
