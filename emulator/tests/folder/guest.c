/* Uses the working folder as programs use a file system. Each line: what, and "ok" or what went wrong. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static int failed;

static void check_at(int line, const char *what, int good)
{
    int error = errno;
    printf("%s: ", what);
    if (good)
        puts("ok");
    else
        printf("line %d, %s\n", line, strerror(error)), failed = 1;
    fflush(stdout);
    errno = 0;
}
#define CHECK(what, good) check_at(__LINE__, what, good)

static int fresh(const char *name) { return open(name, O_RDWR | O_CREAT | O_TRUNC, 0644); }

static void mapping(void)
{
    enum { SIZE = 1 << 20 };
    int file = fresh("mapped");
    char buffer[4];
    CHECK("ftruncate", ftruncate(file, SIZE) == 0);
    char *map = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK("shared mapping", map != MAP_FAILED);
    if (map == MAP_FAILED)
        return;
    memset(map, 'm', SIZE);
    CHECK("read what is mapped", pread(file, buffer, 4, SIZE - 4) == 4 && !memcmp(buffer, "mmmm", 4));
    CHECK("map what is written", pwrite(file, "abcd", 4, 5000) == 4 && !memcmp(map + 5000, "abcd", 4));
    CHECK("msync", msync(map, SIZE, MS_SYNC) == 0);
    if (fork() == 0) {
        memcpy(map + 8192, "child", 5);
        _exit(0);
    }
    wait(0);
    CHECK("mapping shared by processes", !memcmp(map + 8192, "child", 5));
    munmap(map, SIZE);
    close(file);
}

static void special(void)
{
    char buffer[8] = "";
    CHECK("mkfifo", mkfifo("fifo", 0600) == 0);
    if (fork() == 0) {
        int end = open("fifo", O_WRONLY);
        _exit(write(end, "through", 7) != 7);
    }
    int fifo = open("fifo", O_RDONLY);
    CHECK("fifo", read(fifo, buffer, 8) == 7 && !memcmp(buffer, "through", 7));
    wait(0);

    struct sockaddr_un address = { AF_UNIX, "socket" };
    int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK("bind", bind(server, (void *)&address, sizeof address) == 0 && listen(server, 1) == 0);
    CHECK("connect", connect(client, (void *)&address, sizeof address) == 0);
    int end = accept(server, 0, 0);
    CHECK("socket", write(client, "hello", 5) == 5 && read(end, buffer, 8) == 5);

    CHECK("mknod", mknod("zero", S_IFCHR | 0666, makedev(1, 5)) == 0);
    buffer[0] = 1;
    CHECK("device", read(open("zero", O_RDWR), buffer, 8) == 8 && !buffer[0]);
}

static void contents(void)
{
    char buffer[8], name[32];
    struct stat stat;
    int file = fresh("allocated");
    CHECK("fallocate", fallocate(file, 0, 0, 1 << 16) == 0);
    CHECK("hole punched", fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0);
    CHECK("sparse, beyond 4 GiB", pwrite(file, "far", 3, 5l << 30) == 3 && !fstat(file, &stat) && stat.st_size == (5l << 30) + 3);
    CHECK("SEEK_DATA", lseek(file, 1 << 20, SEEK_DATA) >= 1 << 20);
    CHECK("SEEK_HOLE", lseek(file, 5l << 30, SEEK_HOLE) == (5l << 30) + 3);
    unlink("allocated");

    int nameless = open(".", O_TMPFILE | O_RDWR, 0600);
    CHECK("O_TMPFILE", nameless >= 0 && write(nameless, "temporary", 9) == 9);
    snprintf(name, sizeof name, "/proc/self/fd/%d", nameless);
    CHECK("named afterwards", linkat(AT_FDCWD, name, AT_FDCWD, "named", AT_SYMLINK_FOLLOW) == 0);

    char *aligned = aligned_alloc(4096, 4096);
    memset(aligned, 'd', 4096);
    int direct = open("direct", O_RDWR | O_CREAT | O_DIRECT, 0644);
    CHECK("O_DIRECT", write(direct, aligned, 4096) == 4096 && pread(direct, aligned, 4096, 0) == 4096 && *aligned == 'd');

    int unlinked = fresh("unlinked");
    unlink("unlinked");
    CHECK("unlinked file", write(unlinked, "hi", 2) == 2 && pread(unlinked, buffer, 8, 0) == 2);
    CHECK("unlinked file changed", ftruncate(unlinked, 1) == 0 && fchmod(unlinked, 0640) == 0 && !fstat(unlinked, &stat) &&
                                       stat.st_size == 1 && stat.st_nlink == 0 && (stat.st_mode & 0777) == 0640);

    int source = open("input", O_RDONLY), copy = fresh("copy");
    CHECK("copy_file_range", copy_file_range(source, 0, copy, 0, 100, 0) == 6 && pread(copy, buffer, 8, 0) == 6 &&
                                 !memcmp(buffer, "input\n", 6));

    for (int writer = 0; writer < 4; writer++)
        if (fork() == 0) {
            int log = open("log", O_WRONLY | O_CREAT | O_APPEND, 0644);
            for (int n = 0; n < 50; n++)
                if (write(log, "a whole line\n", 13) != 13)
                    _exit(1);
            _exit(0);
        }
    int status = 0, each;
    while (wait(&each) > 0)
        status |= each;
    CHECK("appended by several", !status && !lstat("log", &stat) && stat.st_size == 4 * 50 * 13);
}

static void locks(void)
{
    int file = fresh("locked");
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10 };
    CHECK("flock", flock(file, LOCK_EX | LOCK_NB) == 0);
    CHECK("fcntl lock after flock", fcntl(file, F_SETLK, &lock) == 0);
    if (fork() == 0) {
        int own = open("locked", O_RDWR);
        struct flock other = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 5 };
        int held = flock(own, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
        held &= fcntl(own, F_SETLK, &other) < 0 && (errno == EAGAIN || errno == EACCES);
        held &= fcntl(own, F_OFD_SETLK, &other) < 0;
        other.l_start = 20;
        _exit(!(held && fcntl(own, F_OFD_SETLK, &other) == 0));
    }
    int status;
    CHECK("locks between processes", wait(&status) > 0 && status == 0);
}

static void names(void)
{
    char value[8];
    struct stat stat;
    struct statx wide;
    CHECK("setxattr", setxattr("input", "user.note", "text", 4, 0) == 0);
    CHECK("getxattr", getxattr("input", "user.note", value, 8) == 4 && listxattr("input", 0, 0) > 0);
    CHECK("removexattr", removexattr("input", "user.note") == 0 && getxattr("input", "user.note", value, 8) < 0 && errno == ENODATA);
    CHECK("time of the host's file", !lstat("input", &stat) && stat.st_mtim.tv_sec == 1000000000);
    close(fresh("one"));
    close(fresh("two"));
    CHECK("RENAME_NOREPLACE", renameat2(AT_FDCWD, "one", AT_FDCWD, "two", RENAME_NOREPLACE) < 0 && errno == EEXIST);
    CHECK("RENAME_EXCHANGE", renameat2(AT_FDCWD, "one", AT_FDCWD, "two", RENAME_EXCHANGE) == 0);
    CHECK("birth", !statx(AT_FDCWD, "one", 0, STATX_BTIME, &wide) && wide.stx_mask & STATX_BTIME &&
                       wide.stx_btime.tv_sec >= 1767225600);
    struct timespec times[2] = { { 5, 6 }, { 1234567890, 0 } };
    CHECK("utimensat", utimensat(AT_FDCWD, "one", times, 0) == 0 && !lstat("one", &stat) && stat.st_atim.tv_nsec == 6);
    umask(027);
    CHECK("umask", mkdir("folder", 0777) == 0 && !lstat("folder", &stat) && (stat.st_mode & 0777) == 0750);
    CHECK("odd name", close(fresh("folder/\xff \n*")) == 0);
    CHECK("chown", chown("two", 12, 34) == 0 && !lstat("two", &stat) && stat.st_uid == 12 && stat.st_gid == 34);
    CHECK("symbolic link", symlink("../input", "folder/link") == 0 && access("folder/link", R_OK) == 0);
    CHECK("hard link", link("input", "folder/hard") == 0 && !lstat("input", &stat) && stat.st_nlink == 2);
    if (fork() == 0) {
        int denied = setgid(1000) == 0 && setuid(1000) == 0 && open("folder/hard", O_RDONLY) < 0 && errno == EACCES;
        _exit(!denied);
    }
    int status;
    CHECK("permissions", wait(&status) > 0 && status == 0);
}

/* With an argument: prints that file. */
int main(int count, char **arguments)
{
    if (count > 1) {
        char text[64];
        ssize_t length = read(open(arguments[1], O_RDONLY), text, sizeof text);
        return length < 0 || write(1, text, length) != length;
    }
    mapping();
    special();
    contents();
    locks();
    names();
    return failed;
}
