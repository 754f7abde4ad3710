// What a sampling driver must live through: processes, programs, memory maps, threads and signals that come and
// go, and stacks that no unwinder can walk. usage: storm ROUNDS
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t signals;
static const char *self;

static void must(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "storm: %s: %s\n", what, strerror(errno));
		exit(1);
	}
}

static void reap(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		must(errno == EINTR, "waitpid");
	must(WIFEXITED(status) && WEXITSTATUS(status) == 7, "a child's exit status is 7");
}

// One child runs another program, one only touches its copy of the memory and ends.
static void processes(void)
{
	char *program[] = { (char *)self, NULL };
	pid_t child = fork();

	must(child >= 0, "fork");
	if (!child) {
		prctl(PR_SET_NAME, "leaf");
		memset(malloc(1 << 16), 1, 1 << 16);
		_exit(7);
	}
	reap(child);
	child = vfork();
	must(child >= 0, "vfork");
	if (!child) {
		execv(self, program);
		_exit(1);
	}
	reap(child);
}

static void maps(void)
{
	for (int i = 0; i < 4; i++) {
		size_t size = 8 << 12;
		char *at = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		must(at != MAP_FAILED, "mmap");
		memset(at, i, size);
		must(!mprotect(at, size / 2, PROT_READ), "mprotect");
		at = mremap(at, size / 2, size, MREMAP_MAYMOVE);
		must(at != MAP_FAILED, "mremap");
		must(!munmap(at, size), "munmap");
	}
}

static void *thread(void *name)
{
	cpu_set_t cpus;
	int cpu = sched_getcpu();

	pthread_setname_np(pthread_self(), name);
	CPU_ZERO(&cpus);
	CPU_SET((cpu + 1) % sysconf(_SC_NPROCESSORS_ONLN), &cpus);
	must(!sched_setaffinity(0, sizeof(cpus), &cpus), "sched_setaffinity");
	sched_yield();
	maps();
	return NULL;
}

static void threads(void)
{
	static const char *names[] = { "storm-alpha", "storm-beta", "storm-gamma" };
	pthread_t ids[3];

	for (int i = 0; i < 3; i++)
		must(!pthread_create(&ids[i], NULL, thread, (void *)names[i]), "pthread_create");
	for (int i = 0; i < 3; i++)
		pthread_join(ids[i], NULL);
}

static void on_signal(int number)
{
	(void)number;
	signals++;
}

// Deeper than any call chain that is kept, and over many pages of the stack.
static uint64_t __attribute__((noinline)) deep(int frames)
{
	volatile char page[256];

	page[0] = frames;
	return frames ? deep(frames - 1) + page[0] : 0;
}

// Works with a frame pointer that leads nowhere.
static void __attribute__((noinline)) astray(uintptr_t frame)
{
	__asm__ volatile("mv t1, s0\n\tmv s0, %0\n\tli t0, 2000\n"
			 "1:\taddi t0, t0, -1\n\tbnez t0, 1b\n\tmv s0, t1"
			 : : "r"(frame) : "t0", "t1", "memory");
}

static void stacks(void)
{
	char *none = mmap(NULL, 1 << 13, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *fresh = mmap(NULL, 1 << 13, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t own[2];

	must(none != MAP_FAILED && fresh != MAP_FAILED, "mmap");
	deep(2000);
	astray(0);
	astray(1);
	astray((uintptr_t)none + 64);
	astray((uintptr_t)fresh + 64);
	astray(-8);
	astray(0xffffffff80000000);
	astray(0x4000000000000000);
	// A frame that is its own caller.
	own[0] = (uintptr_t)(own + 2);
	own[1] = (uintptr_t)stacks;
	astray((uintptr_t)(own + 2));
	munmap(none, 1 << 13);
	munmap(fresh, 1 << 13);
	astray((uintptr_t)none + 64);
}

int main(int argc, char **argv)
{
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { 0 };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK };
	stack_t other = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };
	int rounds = argc > 1 ? atoi(argv[1]) : 0;

	self = "/proc/self/exe";
	if (!rounds)
		return 7;
	must(!sigaltstack(&other, NULL) && !sigaction(SIGALRM, &action, NULL), "signals");
	for (int i = 0; i < rounds; i++) {
		processes();
		maps();
		threads();
		setitimer(ITIMER_REAL, &often, NULL);
		stacks();
		raise(SIGALRM);
		setitimer(ITIMER_REAL, &never, NULL);
	}
	must(signals >= rounds, "signals arrived");
	puts("storm: over");
	return 0;
}
