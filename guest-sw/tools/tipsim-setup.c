/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What programs expect of a running system, before /init goes on: /proc, /sys, /dev with its shared memory,
 * pseudo terminals and standard streams, and the loopback device. One process, since each costs a boot.
 */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int failed;

static void complain(const char *what)
{
	fprintf(stderr, "tipsim-setup: %s: %s\n", what, strerror(errno));
	failed = 1;
}

static void mount_at(const char *type, const char *path, unsigned long flags, const char *options)
{
	/* Those in /dev have no directory yet. */
	if (mkdir(path, 0755) && errno != EEXIST)
		complain(path);
	else if (mount(type, path, type, flags, options) && errno != EBUSY)
		complain(path);
}

static void link_at(const char *target, const char *path)
{
	if (symlink(target, path) && errno != EEXIST)
		complain(path);
}

/* It gets its addresses, 127.0.0.1 and ::1, from the kernel. */
static void loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request)) {
		complain("lo");
	} else {
		request.ifr_flags |= IFF_UP;
		if (ioctl(fd, SIOCSIFFLAGS, &request))
			complain("lo");
	}
	if (fd >= 0)
		close(fd);
}

int main(void)
{
	unsigned long safe = MS_NOSUID | MS_NODEV;

	umask(0);
	mount_at("proc", "/proc", safe | MS_NOEXEC, NULL);
	mount_at("sysfs", "/sys", safe | MS_NOEXEC, NULL);
	mount_at("devtmpfs", "/dev", MS_NOSUID, "mode=0755");
	mount_at("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "gid=5,mode=0620,ptmxmode=0666");
	mount_at("tmpfs", "/dev/shm", safe, "mode=1777");
	mount_at("mqueue", "/dev/mqueue", safe | MS_NOEXEC, NULL);
	/* There in a kernel with tracing. */
	if (!access("/sys/kernel/tracing", F_OK))
		mount_at("tracefs", "/sys/kernel/tracing", safe | MS_NOEXEC, NULL);
	link_at("/proc/self/fd", "/dev/fd");
	link_at("/proc/self/fd/0", "/dev/stdin");
	link_at("/proc/self/fd/1", "/dev/stdout");
	link_at("/proc/self/fd/2", "/dev/stderr");
	loopback_up();
	return failed;
}
