/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stands in for all of capstone's architectures but RISC-V, so that a libcapstone made of Debian's archive and
 * this is 0.4 MiB and not 9: the guest unpacks it at every boot, one instruction or more a byte.
 * Whoever asks for another architecture is told that it is not there.
 */
#define CS_ERR_ARCH 2

#define ABSENT(arch) \
	int arch##_global_init(void *handle) { (void)handle; return CS_ERR_ARCH; } \
	int arch##_option(void *handle, int type, unsigned long value) \
	{ \
		(void)handle, (void)type, (void)value; \
		return CS_ERR_ARCH; \
	}

ABSENT(AArch64)
ABSENT(ARM)
ABSENT(BPF)
ABSENT(EVM)
ABSENT(M680X)
ABSENT(M68K)
ABSENT(MOS65XX)
ABSENT(Mips)
ABSENT(PPC)
ABSENT(SH)
ABSENT(Sparc)
ABSENT(SystemZ)
ABSENT(TMS320C64x)
ABSENT(TRICORE)
ABSENT(WASM)
ABSENT(X86)
ABSENT(XCore)
