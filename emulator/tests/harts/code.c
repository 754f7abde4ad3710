// Code that changes under running harts: one thread writes it, or has a device write it, and a thread on every hart executes it.
// Arguments: times, a file in the shared folder, a disk. Each way says "NAME: ok" or what was wrong.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAGE 4096
#define BLOCKS 16
#define HARTS 16

static const char *way;
static int times, harts, failures;
static pthread_barrier_t barrier;
static unsigned *volatile code;
static volatile long results[HARTS];
static volatile int done;

static void need(int good, const char *what) {
    if (!good) {
        fprintf(stderr, "%s: ", way);
        perror(what);
        exit(2);
    }
}

static void pin(int hart) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(hart, &set);
    need(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity");
}

// Executes the code after each change, and often enough that it becomes host code.
static void *runner(void *number) {
    long hart = (long)number;
    pin(hart);
    for (;;) {
        pthread_barrier_wait(&barrier);
        if (done)
            return NULL;
        long (*function)(void) = (long (*)(void))code;
        long result = function();
        for (int n = 0; n < 30; n++)
            if (function() != result)
                result = -1;
        results[hart] = result;
        pthread_barrier_wait(&barrier);
    }
}

// Code that gives `value << 16`: `lui a0, value << 4; ret`.
static void function_of(unsigned *place, unsigned short value) {
    place[0] = value << 16 | 0x537;
    place[1] = 0x00008067;
}

// All harts execute what is at `place` now: `value`.
static void expect(unsigned *place, unsigned short value) {
    __builtin___clear_cache((char *)place, (char *)place + PAGE);
    code = place;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int hart = 0; hart < harts; hart++)
        if (results[hart] != (int)(value << 16)) {
            if (failures++ < 10)
                fprintf(stderr, "%s: hart %d: %#lx instead of %#x\n", way, hart, results[hart], value << 16);
        }
}

static void *executable(void) {
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    need(page != MAP_FAILED, "mmap");
    return page;
}

static unsigned short value_of(int time) {
    return time * 40503 >> 3;
}

static void by_stores(const char *unused) {
    (void)unused;
    unsigned *page = executable();
    for (int time = 0; time < times; time++) {
        pin(time % harts);
        unsigned *place = page + time % 3 * 300;
        function_of(place, value_of(time));
        expect(place, value_of(time));
    }
}

// Another page's contents each time, at one address.
static void by_mapping(const char *unused) {
    (void)unused;
    unsigned *page = executable();
    for (int time = 0; time < times; time++) {
        unsigned *new = executable();
        function_of(new, value_of(time));
        need(mremap(new, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, page) == page, "mremap");
        expect(page, value_of(time));
    }
}

// The kernel copies what a device wrote elsewhere.
static void by_entropy(const char *unused) {
    (void)unused;
    unsigned *page = executable();
    int fd = open("/dev/hwrng", O_RDONLY);
    need(fd >= 0, "/dev/hwrng");
    function_of(page, 0);
    for (int time = 0; time < times; time++) {
        need(read(fd, (char *)page + 2, 2) == 2, "read");
        expect(page, page[0] >> 16);
    }
    close(fd);
}

static void by_socket(const char *unused) {
    (void)unused;
    unsigned *page = executable(), buffer[PAGE / 4];
    int ends[2];
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    for (int time = 0; time < times; time++) {
        function_of(buffer, value_of(time));
        need(write(ends[0], buffer, PAGE) == PAGE, "write");
        need(read(ends[1], page, PAGE) == PAGE, "read");
        expect(page, value_of(time));
    }
}

// A file whose block N is the function of N + `first`.
static void write_blocks(const char *file, int first) {
    int fd = open(file, O_WRONLY | O_CREAT, 0644);
    need(fd >= 0, file);
    for (int block = 0; block < BLOCKS; block++) {
        unsigned buffer[PAGE / 4] = {0};
        function_of(buffer, block + first);
        need(pwrite(fd, buffer, PAGE, block * PAGE) == PAGE, "write");
    }
    need(fsync(fd) == 0, "fsync");
    close(fd);
}

// The device writes into the executable page itself.
static void directly(const char *file) {
    unsigned *page = executable();
    write_blocks(file, 1);
    int fd = open(file, O_RDONLY | O_DIRECT);
    need(fd >= 0, file);
    for (int time = 0; time < times; time++) {
        int block = value_of(time) % BLOCKS;
        need(pread(fd, page, PAGE, block * PAGE) == PAGE, "pread");
        expect(page, block + 1);
    }
    close(fd);
}

// What a library is to the kernel: mapped, unmapped, replaced; or written while it is mapped.
static void by_file(const char *file) {
    for (int time = 0; time < times; time++) {
        int first = time * 100, block = value_of(time) % BLOCKS;
        if (time % 3 == 0)
            unlink(file);
        write_blocks(file, first);
        int fd = open(file, O_RDWR);
        int kind = time & 1 ? MAP_SHARED : MAP_PRIVATE;
        unsigned *map = mmap(NULL, BLOCKS * PAGE, PROT_READ | PROT_EXEC, kind, fd, 0);
        need(map != MAP_FAILED, "mmap");
        expect(map + block * PAGE / 4, first + block);
        if (kind == MAP_SHARED) {
            unsigned other[2];
            function_of(other, first + 77);
            need(pwrite(fd, other, sizeof other, block * PAGE) == sizeof other, "pwrite");
            expect(map + block * PAGE / 4, first + 77);
        }
        munmap(map, BLOCKS * PAGE);
        close(fd);
        if (time % 5 == 0) {
            int caches = open("/proc/sys/vm/drop_caches", O_WRONLY);
            need(caches >= 0 && write(caches, "3", 1) == 1, "drop_caches");
            close(caches);
        }
    }
}

static void attempt(const char *name, void (*by)(const char *), const char *file) {
    int before = failures;
    way = name;
    by(file);
    if (failures == before)
        printf("%s: ok\n", name);
    else
        printf("%s: %d wrong\n", name, failures - before);
    fflush(stdout);
}

int main(int argc, char **argv) {
    times = atoi(argv[1]);
    way = "start";
    harts = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t threads[HARTS];
    pthread_barrier_init(&barrier, NULL, harts + 1);
    for (long hart = 0; hart < harts; hart++)
        need(pthread_create(&threads[hart], NULL, runner, (void *)hart) == 0, "pthread_create");
    attempt("stores", by_stores, NULL);
    attempt("mapping", by_mapping, NULL);
    attempt("entropy", by_entropy, NULL);
    attempt("sockets", by_socket, NULL);
    attempt("library in the folder", by_file, argv[2]);
    attempt("direct from the folder", directly, argv[2]);
    if (argc > 3)
        attempt("direct from a disk", directly, argv[3]);
    if (argc > 4)
        attempt("library on a disk", by_file, argv[4]);
    done = 1;
    pthread_barrier_wait(&barrier);
    for (int hart = 0; hart < harts; hart++)
        pthread_join(threads[hart], NULL);
    return failures != 0;
}
