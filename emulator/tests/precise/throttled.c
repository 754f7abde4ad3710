// Reads the count of a precise event, whose samples go to memory, so often that perf throttles it. Prints the count of its instructions,
// and what a counter that samples nothing has counted.
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int instructions(uint64_t period)
{
	struct perf_event_attr attr;
	memset(&attr, 0, sizeof attr);
	attr.size = sizeof attr;
	attr.type = PERF_TYPE_HARDWARE;
	attr.config = PERF_COUNT_HW_INSTRUCTIONS;
	attr.exclude_kernel = 1;
	attr.sample_period = period;
	attr.precise_ip = period ? 2 : 0;
	attr.sample_type = period ? PERF_SAMPLE_IP : 0;
	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static uint64_t count(int event)
{
	uint64_t value = 0;
	return read(event, &value, sizeof value) == sizeof value ? value : 0;
}

int main(void)
{
	int plain = instructions(0), precise = instructions(997);
	// Samples need a place; nobody reads them.
	void *ring = mmap(0, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, precise, 0);
	if (plain < 0 || precise < 0 || ring == MAP_FAILED)
		return 1;
	uint64_t last = 0;
	for (int i = 0; i < 2000; i++) {
		for (volatile int k = 0; k < 2000; k++)
			;
		uint64_t now = count(precise);
		if (now < last) {
			printf("the count went back from %lu to %lu\n", last, now);
			return 1;
		}
		last = now;
	}
	printf("%lu %lu\n", count(precise), count(plain));
	return 0;
}
