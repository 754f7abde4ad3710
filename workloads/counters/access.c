/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What it costs a supervisor to set up, start, read and stop a counter: by calls to the firmware (SBI PMU), and by CSRs that
 * machine mode delegated (Smcdeleg). README.md says how to run it. */
#include <stdint.h>

#define WARM 100
#define TIMES 1000

#define SISELECT 0x150
#define SIREG 0x151
#define SIREG2 0x152
#define SCOUNTINHIBIT 0x120

#define read_csr(csr) ({ uint64_t v_; asm volatile("csrr %0, %1" : "=r"(v_) : "i"(csr)); v_; })
#define write_csr(csr, value) asm volatile("csrw %0, %1" ::"i"(csr), "r"((uint64_t)(value)))
#define set_csr(csr, value) asm volatile("csrs %0, %1" ::"i"(csr), "r"((uint64_t)(value)))
#define clear_csr(csr, value) asm volatile("csrc %0, %1" ::"i"(csr), "r"((uint64_t)(value)))

/* Cycles of ACCESS; BEFORE and AFTER, which make it possible each time, are not in them. */
#define MEASURE(name, BEFORE, ACCESS, AFTER)                                   \
	do {                                                                   \
		uint64_t sum = 0;                                              \
                                                                               \
		for (int i = 0; i < WARM + TIMES; i++) {                       \
			BEFORE;                                                \
			uint64_t begin = read_csr(0xc00);                      \
			ACCESS;                                                \
			uint64_t end = read_csr(0xc00);                        \
			AFTER;                                                 \
			if (i >= WARM)                                         \
				sum += end - begin;                            \
		}                                                              \
		report(name, sum);                                             \
	} while (0)

/* The program starts here, in supervisor mode without translation. A trap means that nothing is delegated. */
asm(".section .text.init, \"ax\"\n.globl _start\n_start: la sp, stack_top\n la t0, trapped\n csrw stvec, t0\n j main\n"
    ".section .bss\n.align 4\n.zero 16384\nstack_top:\n.text");

struct answer {
	long error, value;
};

static inline struct answer sbi(long extension, long function, long a, long b, long c, long d, long e)
{
	register long a0 asm("a0") = a;
	register long a1 asm("a1") = b;
	register long a2 asm("a2") = c;
	register long a3 asm("a3") = d;
	register long a4 asm("a4") = e;
	register long a6 asm("a6") = function;
	register long a7 asm("a7") = extension;

	asm volatile("ecall" : "+r"(a0), "+r"(a1) : "r"(a2), "r"(a3), "r"(a4), "r"(a6), "r"(a7) : "memory");
	return (struct answer){ a0, a1 };
}

#define PMU 0x504d55
#define NUMBER_OF_COUNTERS 0
#define CONFIGURE 2
#define START 3
#define STOP 4
#define FIRMWARE_READ 5
#define CLEAR_VALUE 2
#define AUTO_START 4
#define SET_VALUE 1
#define RESET 1

static void print(const char *text)
{
	while (*text)
		*(volatile uint8_t *)0x10000000 = *text++;
}

__attribute__((noreturn)) static void power_off(void)
{
	sbi(0x53525354, 0, 0, 0, 0, 0, 0);
	for (;;)
		;
}

/* Cycles between two reads with nothing in between. */
static uint64_t nothing;

static void report(const char *name, uint64_t sum)
{
	uint64_t mean = sum / TIMES - nothing;
	char digits[21], *at = digits + 20;

	*at = 0;
	do
		*--at = '0' + mean % 10;
	while (mean /= 10);
	for (const char *pad = at; pad > digits + 14; pad--)
		print(" ");
	print(at);
	print("  ");
	print(name);
	print("\n");
}

__attribute__((aligned(4))) void trapped(void)
{
	print("a trap: nothing is delegated\n");
	power_off();
}

/* All counters but cycle, time and instret. */
static long counters;

static long checked(struct answer answer)
{
	if (answer.error) {
		print("the firmware refuses\n");
		power_off();
	}
	return answer.value;
}

/* Takes a counter for this event, of those that raise interrupts. */
static long configure(long event, long flags)
{
	return checked(sbi(PMU, CONFIGURE, 0, counters, flags, event, 0));
}

static void start(long counter)
{
	checked(sbi(PMU, START, counter, 1, SET_VALUE, -1000000, 0));
}

static void stop(long counter, long flags)
{
	checked(sbi(PMU, STOP, counter, 1, flags, 0, 0));
}

#define CPU_CYCLES 1
#define FIRMWARE_SET_TIMER 0xf0005
/* hpmcounter31 and its selector; the firmware gives the lower ones first. */
#define COUNTER 31
#define CYCLES 1

int main(void)
{
	long hardware, firmware;
	uint64_t empty = 0;

	for (int i = 0; i < WARM + TIMES; i++) {
		uint64_t begin = read_csr(0xc00);
		uint64_t end = read_csr(0xc00);

		if (i >= WARM)
			empty += end - begin;
	}
	nothing = empty / TIMES;

	counters = (1l << checked(sbi(PMU, NUMBER_OF_COUNTERS, 0, 0, 0, 0, 0))) - 8;
	print("cycles\n");
	MEASURE("an SBI call that does nothing (version)", , sbi(0x10, 0, 0, 0, 0, 0, 0), );
	MEASURE("set up a counter: SBI", , hardware = configure(CPU_CYCLES, CLEAR_VALUE),
		start(hardware); stop(hardware, RESET));
	hardware = configure(CPU_CYCLES, CLEAR_VALUE);
	MEASURE("start it with a value: SBI", , start(hardware), stop(hardware, 0));
	MEASURE("stop it: SBI", start(hardware), stop(hardware, 0), );
	firmware = configure(FIRMWARE_SET_TIMER, CLEAR_VALUE | AUTO_START);
	MEASURE("read a firmware counter: SBI", , checked(sbi(PMU, FIRMWARE_READ, firmware, 0, 0, 0, 0)), );
	MEASURE("read: hpmcounter31", , read_csr(0xc00 + COUNTER), );
	MEASURE("read: siselect, sireg", , write_csr(SISELECT, 0x40 + COUNTER); read_csr(SIREG), );
	MEASURE("set up: siselect, sireg2, sireg", , write_csr(SISELECT, 0x40 + COUNTER); write_csr(SIREG2, CYCLES);
		write_csr(SIREG, 0), );
	MEASURE("start it with a value: siselect, sireg, scountinhibit", , write_csr(SISELECT, 0x40 + COUNTER);
		write_csr(SIREG, -1000000); clear_csr(SCOUNTINHIBIT, 1ul << COUNTER),
		set_csr(SCOUNTINHIBIT, 1ul << COUNTER));
	MEASURE("stop it: scountinhibit", clear_csr(SCOUNTINHIBIT, 1ul << COUNTER), set_csr(SCOUNTINHIBIT, 1ul << COUNTER), );
	power_off();
}
