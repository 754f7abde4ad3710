/* Works. With selectors: counts these events of this hart, in user and supervisor mode, before and after each mark of the region. */
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 29 };

static int leader = -1, count;
static struct {
	uint64_t number, values[MOST];
} shown[4];

static void look(int place)
{
	if (read(leader, &shown[place], sizeof(shown[place])) < 0)
		perror("read");
}

/* Page faults, TLB misses and walks, cache misses, system calls, divisions, branches that cannot be foreseen, a sleep. */
static void work(void)
{
	size_t bytes = 4 << 20;
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct timespec nap = { 0, 300000 };
	uint64_t random = 88172645463325252ull, sum = 0;

	for (int i = 0; i < 20000; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		memory[random % bytes]++;
		sum += (random & 1) ? random / (i + 1) : (uint64_t)memory[sum % bytes];
		if (i % 100 == 0)
			sum += syscall(SYS_getppid);
	}
	nanosleep(&nap, NULL);
	munmap(memory, bytes);
	__asm__ volatile("" : : "r"(sum));
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_RAW,
			.size = sizeof(attr),
			.config = strtoull(argv[i], NULL, 0),
			.read_format = PERF_FORMAT_GROUP,
			.disabled = i == 1,
		};
		int fd = syscall(SYS_perf_event_open, &attr, -1, 0, leader, 0);

		if (fd < 0)
			return perror(argv[i]), 1;
		if (i == 1)
			leader = fd;
		count = i;
	}
	work();
	if (argc == 1)
		return 0;
	syscall(SYS_ioctl, leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	look(0);
	look(0);
	__asm__ volatile(".option push\n.option norvc\naddi x0, x1, 0\n.option pop" ::: "memory");
	look(1);
	work();
	look(2);
	__asm__ volatile(".option push\n.option norvc\naddi x0, x2, 0\n.option pop" ::: "memory");
	look(3);
	for (int i = 0; i < count; i++)
		printf("%llu %llu %llu %llu\n", (unsigned long long)shown[0].values[i], (unsigned long long)shown[1].values[i],
		       (unsigned long long)shown[2].values[i], (unsigned long long)shown[3].values[i]);
	return 0;
}
