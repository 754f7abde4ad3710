// Replaces programs in every way that files are replaced, and executes them, on each hart by turns and on any: what is
// executed is always what the file holds. Arguments: number of variants, times, places. `variantN` are in the working folder.

#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAMES 5

static int harts, failures;
static uint64_t state = 1;

// Steele, Lea and Flood's SplitMix64.
static unsigned below(unsigned bound) {
    uint64_t mixed = state += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return (mixed ^ mixed >> 31) % bound;
}

static void need(int good, const char *what, const char *file) {
    if (!good) {
        fprintf(stderr, "%s: ", file);
        perror(what);
        exit(2);
    }
}

struct image {
    char *bytes;
    size_t size;
};

static struct image read_image(int variant) {
    char file[32];
    struct stat stat;
    snprintf(file, sizeof file, "variant%d", variant);
    int fd = open(file, O_RDONLY);
    need(fd >= 0 && fstat(fd, &stat) == 0, "open", file);
    struct image image = {malloc(stat.st_size), stat.st_size};
    need(read(fd, image.bytes, image.size) == (ssize_t)image.size, "read", file);
    close(fd);
    return image;
}

static void write_file(const char *file, int flags, struct image image) {
    int fd = open(file, O_WRONLY | O_CREAT | flags, 0755);
    need(fd >= 0, "open", file);
    need(write(fd, image.bytes, image.size) == (ssize_t)image.size, "write", file);
    need(ftruncate(fd, image.size) == 0, "ftruncate", file);
    close(fd);
}

static void write_by_mapping(const char *file, struct image image) {
    int fd = open(file, O_RDWR | O_CREAT, 0755);
    need(fd >= 0 && ftruncate(fd, 0) == 0 && ftruncate(fd, image.size) == 0, "open", file);
    char *map = mmap(NULL, image.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    need(map != MAP_FAILED, "mmap", file);
    memcpy(map, image.bytes, image.size);
    munmap(map, image.size);
    close(fd);
}

static void replace(const char *file, struct image image) {
    char other[300];
    switch (below(5)) {
    case 0:
        unlink(file);
        write_file(file, O_EXCL, image);
        break;
    case 1:
        write_file(file, O_TRUNC, image);
        break;
    case 2:
        snprintf(other, sizeof other, "%s.new", file);
        write_file(other, 0, image);
        need(rename(other, file) == 0, "rename", file);
        break;
    case 3:
        write_file(file, 0, image);
        break;
    default:
        write_by_mapping(file, image);
    }
}

// Everything is read anew from the device, into other pages.
static void drop_caches(void) {
    sync();
    int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
    need(fd >= 0 && write(fd, "3", 1) == 1, "write", "drop_caches");
    close(fd);
}

static void pin(int hart) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int n = 0; n < harts; n++)
        if (hart == harts || n == hart)
            CPU_SET(n, &set);
    need(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity", "hart");
}

static pid_t start(char *file, int variant, int hart) {
    char number[16];
    char *arguments[] = {file, number, NULL};
    snprintf(number, sizeof number, "%d", variant);
    pin(hart);
    pid_t pid;
    int error = posix_spawn(&pid, file, NULL, NULL, arguments, NULL);
    pin(harts);
    if (error) {
        fprintf(stderr, "%s: %s\n", file, strerror(error));
        failures++;
        return 0;
    }
    return pid;
}

int main(int argc, char **argv) {
    int variants = atoi(argv[1]), times = atoi(argv[2]), places = argc - 3;
    harts = sysconf(_SC_NPROCESSORS_ONLN);
    struct image *images = calloc(variants, sizeof *images);
    int *holds = calloc(NAMES * places, sizeof *holds);
    for (int n = 0; n < variants; n++)
        images[n] = read_image(n + 1);
    for (int time = 0; time < times; time++) {
        int name = below(NAMES * places);
        char file[256];
        snprintf(file, sizeof file, "%s/program%d", argv[3 + name % places], name);
        if (!holds[name] || below(4)) {
            int variant = below(variants);
            replace(file, images[variant]);
            holds[name] = variant + 1;
        }
        if (below(8) == 0)
            drop_caches();
        // Two at once, each on one hart; the last number is any hart.
        pid_t pids[2];
        int hart = time % (harts + 1);
        for (int n = 0; n < 2; n++)
            pids[n] = start(file, holds[name], (hart + n) % (harts + 1));
        for (int n = 0; n < 2; n++) {
            int status = 0;
            if (pids[n] && (waitpid(pids[n], &status, 0) != pids[n] || status)) {
                fprintf(stderr, "%s: variant %d, hart %d: status %#x\n", file, holds[name], (hart + n) % (harts + 1), status);
                failures++;
            }
        }
    }
    printf("execute: %d of %d programs failed on %d harts\n", failures, 2 * times, harts);
    return failures != 0;
}
