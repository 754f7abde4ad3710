//! The guest as people know a system: its devices and files, its kernel's features, perf's names, stacks and lines.
//! One functional boot, whose outputs the tests read.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::common::{guest, run_spec, scratch, succeed, tipsim};

/// Names as C++ and Rust (legacy, v0) compilers make them; three levels of calls; an inlined function on a line of its own.
const PROFILED: &str = r#"
#define LEVEL __attribute__((noinline)) static
void cxx(volatile long *n, long i) __asm__("_ZN4test5StackIiE4pushEi");
void rust_legacy(volatile long *n, long i) __asm__("_ZN4test6legacy17h0123456789abcdefE");
void rust_v0(volatile long *n, long i) __asm__("_RNvCs1234_4test7current");
__attribute__((noinline)) void cxx(volatile long *n, long i) { while (i--) *n += i; }
__attribute__((noinline)) void rust_legacy(volatile long *n, long i) { while (i--) *n += i; }
__attribute__((noinline)) void rust_v0(volatile long *n, long i) { while (i--) *n += i; }
static inline __attribute__((always_inline)) void inlined(volatile long *n) {
#line 4242 "inlined.h"
    *n += *n ^ 3; *n += *n ^ 5; *n += *n ^ 7; *n += *n ^ 9;
}
#line 100 "levels.c"
LEVEL void bottom(volatile long *n, long i) { while (i--) inlined(n); }
LEVEL void middle(volatile long *n, long i) { bottom(n, i); *n += 1; }
LEVEL void top(volatile long *n, long i) { middle(n, i); *n += 1; }
int main(void) {
    volatile long n = 0;
    cxx(&n, 200000);
    rust_legacy(&n, 200000);
    rust_v0(&n, 200000);
    top(&n, 400000);
    return 0;
}
"#;

/// A callback that the C library, which has no frame pointers, calls from its sort: `s0` holds anything there.
const CALLBACK: &str = r#"
#include <stdlib.h>
static int compare(const void *a, const void *b) {
    for (volatile int i = 0; i < 40; i++);
    return *(const int *)a - *(const int *)b;
}
__attribute__((noinline)) static void sorter(int *list, int n) { qsort(list, n, sizeof *list, compare); }
__attribute__((noinline)) static long leaf(long n) { volatile long s = 0; while (n--) s += n; return s; }
__attribute__((noinline)) static long parent(long n) { return leaf(n) + 1; }
__attribute__((noinline)) static long looping(long n) {
    volatile long s = 0;
    for (long i = 0; i < n; i++) { s += 3; s ^= 5; if (!(i & 1023)) s += leaf(1); }
    return s;
}
__attribute__((noinline)) static long grandparent(long n) { return parent(n) + looping(n) + 1; }
int main(void) {
    static int list[3000];
    for (int i = 0; i < 3000; i++) list[i] = i * 7919 % 3001;
    sorter(list, 3000);
    return grandparent(200000) == 0;
}
"#;

/// An instruction of each of many extensions, and one that nobody knows, which is jumped over.
const EXTENSIONS_SOURCE: &str = r#"
__attribute__((noinline)) static void extensions(long n, long *p) {
    while (n--) {
        register long *at __asm__("a5") = p;
        __asm__ volatile(
            "j 1f\n .4byte 0x0000100b\n 1:\n"
            ".4byte 0x20c5a533, 0x6b855513, 0x0eb55533, 0x2eb7a52f, 0x04c5f553, 0x00079507, 0xf0180553\n .2byte 0x9d61\n"
            : : "r"(at) : "a0", "fa0", "memory");
    }
}
int main(void) { long n = 0; extensions(200000, &n); return 0; }
"#;

/// What the C library and programs want of `/dev`, `/tmp` and the kernel; prints what is not there.
const WANTED: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <netdb.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void want(const char *what, int there) { if (!there) perror(what); }
static int in_child(int (*run)(void)) {
    int status = -1;
    pid_t pid = fork();
    if (!pid) _exit(run());
    waitpid(pid, &status, 0);
    return status;
}
static int spaces(void) {
    return unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC) != 0;
}
static int strict(void) {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) return 1;
    syscall(SYS_exit, 0);
    return 1;
}
int main(void) {
    aio_context_t aio = 0;
    struct io_uring_params ring = {0};
    struct rlimit core = {RLIM_INFINITY, RLIM_INFINITY};
    int pty;
    want("shm_open", shm_open("/a", O_CREAT | O_RDWR, 0600) >= 0);
    want("sem_open", sem_open("/b", O_CREAT, 0600, 1) != SEM_FAILED);
    want("mq_open", mq_open("/c", O_CREAT | O_RDWR, 0600, NULL) >= 0);
    want("tmpfile", tmpfile() != NULL);
    pty = posix_openpt(O_RDWR);
    want("openpt", pty >= 0 && !grantpt(pty) && !unlockpt(pty) && ptsname(pty) && open(ptsname(pty), O_RDWR) >= 0);
    want("popen", popen("true", "r") != NULL);
    want("memfd_create", memfd_create("d", 0) >= 0);
    want("io_setup", !syscall(SYS_io_setup, 1, &aio));
    want("io_uring_setup", syscall(SYS_io_uring_setup, 1, &ring) >= 0);
    want("name spaces", !in_child(spaces));
    want("seccomp", !in_child(strict));
    want("IPv6", socket(AF_INET6, SOCK_STREAM, 0) >= 0);
    want("localhost", gethostbyname("localhost") != NULL);
    want("core", !setrlimit(RLIMIT_CORE, &core));
    want("core file", WCOREDUMP(in_child((int (*)(void))abort)));
    puts("all tried");
    return 0;
}
"#;

const COMMAND: &str = "\
    ./wanted > wanted.txt 2>&1; cd /out
    ls -d /dev/shm /dev/pts /dev/fd /dev/stdin /dev/stdout /dev/stderr /var/tmp /run /etc/hosts /etc/passwd > files 2>&1
    echo through > /dev/stdout > streams; echo through | cat /dev/stdin >> streams
    (echo hello | nc -l -p 9999 &) ; sleep 0.1; nc 127.0.0.1 9999 < /dev/null > loopback; echo $? >> loopback
    ping -c 1 localhost > localhost 2>&1
    mkdir -p /tmp/l /tmp/u /tmp/w /mnt/o; mount -t overlay o -o lowerdir=/tmp/l,upperdir=/tmp/u,workdir=/tmp/w /mnt/o > overlay 2>&1
    echo $? >> overlay
    perf record -q -e cycles -c 20011 -o /tmp/p ./profiled
    perf report -i /tmp/p --stdio > names 2> names.err
    perf report -i /tmp/p --stdio --sort srcline > srcline 2>&1; echo status $? >> srcline
    perf report -i /tmp/p --stdio --sort srcfile > srcfile 2>&1; echo status $? >> srcfile
    perf annotate -i /tmp/p --stdio -l bottom > annotate 2>&1; echo status $? >> annotate
    perf record -q -e cycles -c 40013 --call-graph dwarf -o /tmp/d ./profiled
    perf report -i /tmp/d --stdio --no-children > dwarf 2> dwarf.err; echo status $? >> dwarf
    perf script -i /tmp/d -F ip,sym > dwarf-script 2>&1
    perf record -q -e cycles:u -c 10007 -g -o /tmp/f ./callback
    perf script -i /tmp/f -F ip,sym > frames 2>&1
    perf record -q -e cycles:k -c 100003 -o /tmp/k dd if=/dev/zero of=/dev/null bs=1 count=60000 2> /dev/null
    perf annotate -i /tmp/k --stdio vfs_read > kernel 2>&1; echo status $? >> kernel
    perf stat -o system dd if=/dev/zero of=/dev/null bs=1M count=100 2> /dev/null; perf stat -o user ./profiled
    perf record -q -e cycles -c 20011 -o /tmp/x ./extensions
    perf annotate -i /tmp/x --stdio extensions > extended 2>&1; echo status $? >> extended
    perf top --stdio -d 1 < /dev/null > top 2>&1 & sleep 3; kill $!; wait
    perf stat -M nosuch true > metric 2>&1; echo status $? >> metric
    for command in trace sched lock kmem; do perf $command record true; done > tracing 2>&1
    perf probe -a vfs_read >> tracing 2>&1; perf ftrace true >> tracing 2>&1
    dd if=/dev/zero bs=1M count=2 2> /dev/null | perf record -q -e cycles:u -c 20011 -g -o /tmp/b md5sum > /dev/null
    perf script -i /tmp/b -F ip,sym > busybox 2>&1
    perf report -i /tmp/p --stdio | head -n 1 > closed; echo over >> closed";

fn compile(dir: &Path, name: &str, source: &str, flags: &[&str]) {
    let file = dir.join(format!("{name}.c"));
    std::fs::write(&file, source).unwrap();
    let mut gcc = Command::new("riscv64-linux-gnu-gcc");
    gcc.args(["-O1", "-g", "-static"]).args(flags).arg("-o");
    succeed(gcc.arg(dir.join(name)).arg(&file));
}

/// The output folder of the one run.
fn run() -> &'static Path {
    static OUT: OnceLock<PathBuf> = OnceLock::new();
    OUT.get_or_init(|| {
        let dir = scratch("guest");
        compile(&dir, "profiled", PROFILED, &["-fomit-frame-pointer"]);
        compile(&dir, "callback", CALLBACK, &["-fno-omit-frame-pointer"]);
        compile(&dir, "wanted", WANTED, &[]);
        compile(&dir, "extensions", EXTENSIONS_SOURCE, &[]);
        let spec = format!(
            "guest.harts = 1\n[run]\nboot = \"functional\"\nregion = \"run\"\n\
             command = '''{COMMAND}'''\nfiles = [\"profiled\", \"callback\", \"wanted\", \"extensions\"]\n\
             [record]\ntrace = false\nprofilers = false\n"
        );
        succeed(&mut run_spec(&dir, &spec));
        dir.join("out")
    })
}

fn text(name: &str) -> String {
    let path = run().join("files").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Samples of `perf script -F ip,sym`: names from the innermost function on.
fn stacks(name: &str) -> Vec<Vec<String>> {
    let text = text(name);
    let frame = |line: &str| line.split_whitespace().nth(1).unwrap_or("").to_owned();
    let blocks = text.split("\n\n").filter(|block| !block.trim().is_empty());
    blocks
        .map(|block| block.lines().filter(|l| !l.trim().is_empty()).map(frame).collect())
        .collect()
}

#[test]
fn devices_and_files_that_programs_expect_are_there() {
    assert_eq!(text("wanted.txt"), "all tried\n");
    assert!(!text("files").contains("No such file"), "{}", text("files"));
    assert_eq!(text("files").lines().count(), 10);
    assert_eq!(text("streams"), "through\nthrough\n");
    assert_eq!(text("overlay"), "0\n");
}

#[test]
fn the_loopback_device_is_up_and_localhost_has_an_address() {
    assert_eq!(text("loopback"), "hello\n0\n");
    assert!(text("localhost").contains("1 packets received"), "{}", text("localhost"));
}

#[test]
fn perf_demangles_cxx_and_both_manglings_of_rust_and_shows_no_mapping_symbols() {
    let names = text("names");
    for name in ["test::Stack<int>::push(int)", "test::legacy\n", "test::current\n", "] bottom"] {
        let found = names.lines().any(|line| format!("{}\n", line.trim_end()).contains(name));
        assert!(found, "no {name:?} in {names}");
    }
    assert!(!names.contains(" $x") && !names.contains(" $d"), "{names}");
    assert!(!names.contains("tips.txt"), "{names}");
}

#[test]
fn busybox_has_names_and_frame_pointers() {
    let called = stacks("busybox").into_iter().any(|stack| {
        let level = |name: &str| stack.iter().position(|function| function == name);
        level("md5_process_block64").is_some_and(|inner| level("hash_file") > Some(inner))
    });
    assert!(called, "{}", text("busybox"));
}

#[test]
fn perf_unwinds_by_debug_information_without_frame_pointers() {
    assert_eq!(text("dwarf.err"), "");
    assert!(text("dwarf").ends_with("status 0\n"), "{}", text("dwarf"));
    let stacks = stacks("dwarf-script");
    let whole = ["inlined", "bottom", "middle", "top", "main"];
    let found = stacks.iter().filter(|stack| stack.starts_with(&whole.map(str::to_owned)));
    let bottom = stacks.iter().filter(|stack| stack.contains(&"bottom".to_owned()));
    let (found, bottom) = (found.count(), bottom.count());
    assert!(found > 20 && found * 10 > bottom * 8, "{found} of {bottom}: {stacks:?}");
}

#[test]
fn perf_knows_source_lines_and_inlined_functions_without_other_programs() {
    for name in ["srcline", "srcfile", "annotate"] {
        assert!(text(name).ends_with("status 0\n"), "{}", text(name));
    }
    assert!(text("srcline").contains("inlined.h:4242"), "{}", text("srcline"));
    assert!(text("srcfile").contains("inlined.h"), "{}", text("srcfile"));
    assert!(text("annotate").contains("inlined.h:4242"), "{}", text("annotate"));
}

#[test]
fn call_chains_end_where_frame_pointers_end() {
    let stacks = stacks("frames");
    for stack in &stacks {
        assert!(!stack.iter().any(|name| name == "[unknown]" || name.is_empty()), "{stack:?}");
    }
    // A leaf, and a function that has called others before.
    for whole in
        [["leaf", "parent", "grandparent", "main"].as_slice(), &["looping", "grandparent", "main"]]
    {
        let inner = stacks.iter().filter(|stack| stack[0] == whole[0]).count();
        let found = stacks.iter().filter(|stack| {
            stack.iter().zip(whole).all(|(a, b)| a == b) && stack.len() >= whole.len()
        });
        let found = found.count();
        assert!(found > 10 && found * 10 > inner * 8, "{found} of {inner}: {stacks:?}");
    }
    assert!(stacks.iter().any(|stack| stack[0] == "compare"), "{stacks:?}");
}

#[test]
fn perf_says_what_is_missing_and_ends_quietly_if_nobody_reads() {
    assert!(text("metric").contains("Cannot find metric or group `nosuch'"), "{}", text("metric"));
    let tracing = text("tracing");
    let missing =
        "this perf was built without libtraceevent, and this kernel has none (CONFIG_FTRACE)";
    assert_eq!(tracing.matches(missing).count(), 4, "{tracing}");
    for line in ["This kernel has no tracing: probes need one", "ftrace is not supported"] {
        assert!(tracing.contains(line), "no {line:?} in {tracing}");
    }
    assert!(text("closed").ends_with("over\n"), "{}", text("closed"));
}

/// perf annotates the kernel by `/proc/kcore`, without an image of it.
#[test]
fn perf_annotates_the_kernel() {
    let text = text("kernel");
    assert!(text.contains("<vfs_read>:"), "{text}");
    assert!(text.ends_with("status 0\n"), "{text}");
}

#[test]
fn perf_annotate_knows_the_extensions_and_goes_on_behind_what_it_does_not_know() {
    let text = text("extended");
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = words.join(" ");
    for line in [
        ".insn 0x0b, 0x10, 0x00, 0x00",
        "sh1add a0, a1, a2",
        "rev8 a0, a0",
        "czero.eqz a0, a0, a1",
        "amocas.w.aqrl a0, a1, (a5)",
        "fadd.h fa0, fa1, fa2",
        "flh fa0, 0(a5)",
        "fli.s fa0, 0x1p+0",
        "zext.b a0",
        "jr ra",
    ] {
        assert!(words.contains(line), "no {line:?} in {text}");
    }
    assert!(text.ends_with("status 0\n"), "{text}");
}

#[test]
fn cpu_time_is_split_into_user_and_system() {
    let seconds = |name: &str, mode: &str| -> f64 {
        let text = text(name);
        let line = text
            .lines()
            .find(|line| line.ends_with(mode))
            .unwrap_or_else(|| panic!("no {mode} in {text}"));
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    let (user, system) = (seconds("system", " user"), seconds("system", " sys"));
    assert!(system > 0.005 && user * 4.0 < system, "{user} {system}");
    let (user, system) = (seconds("user", " user"), seconds("user", " sys"));
    assert!(user > 0.002 && system * 4.0 < user, "{user} {system}");
}

#[test]
fn perf_top_without_a_terminal_shows_its_tables_and_no_menus() {
    let text = text("top");
    assert!(text.contains("PerfTop:"), "{text}");
    assert!(!text.contains("Mapped keys"), "{text}");
}

/// A guest's console: what it prints, and what is typed.
struct Console {
    guest: std::process::Child,
    text: std::sync::mpsc::Receiver<Vec<u8>>,
    seen: String,
}

impl Console {
    fn boot() -> Self {
        let mut boot = tipsim();
        boot.args(["boot", "--guest-dir"]).arg(guest());
        let pipe = std::process::Stdio::piped;
        let mut guest = boot.stdin(pipe()).stdout(pipe()).spawn().unwrap();
        let mut stdout = guest.stdout.take().unwrap();
        let (sender, text) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(count @ 1..) = std::io::Read::read(&mut stdout, &mut part) {
                let _ = sender.send(part[..count].to_vec());
            }
        });
        let seen = String::new();
        Self { guest, text, seen }
    }

    fn send(&mut self, keys: &str) {
        let stdin = self.guest.stdin.as_mut().unwrap();
        std::io::Write::write_all(stdin, keys.as_bytes()).unwrap();
    }

    /// Waits for `what`; gives all that came up to it.
    fn expect(&mut self, what: &str) -> String {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        loop {
            if let Some(at) = self.seen.find(what) {
                let rest = self.seen.split_off(at + what.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            let left = end.saturating_duration_since(std::time::Instant::now());
            match self.text.recv_timeout(left) {
                Ok(part) => self.seen.push_str(&String::from_utf8_lossy(&part)),
                Err(_) => panic!("no {what:?} within a minute: {:?}", self.seen),
            }
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.guest.kill();
        let _ = self.guest.wait();
    }
}

#[test]
fn perf_has_its_text_interface_on_the_console() {
    const ALTERNATE_SCREEN: &str = "\x1b[?1049h";
    let mut console = Console::boot();
    console.expect("~# ");
    console.send("stty rows 30 cols 120; perf record -q -e cycles -c 5003 ls /usr/bin > /dev/null; perf report\n");
    console.expect(ALTERNATE_SCREEN);
    console.expect("Samples: ");
    console.expect("Overhead");
    // Enter opens the menu of a row.
    console.send("\r");
    console.expect("Annotate");
    // The first q leaves the menu, the second the screen.
    console.send("qq");
    console.expect("\x1b[?1049l");
    console.expect("~# ");
    // Printed, if it is asked for, if the terminal is a log, and if it is unknown.
    for command in ["perf report --stdio", "TERM=dumb perf report", "TERM=nosuch perf report"] {
        console.send(&format!("{command} 2>&1\n"));
        let printed = console.expect("~# ");
        assert!(printed.contains("# Overhead"), "{command}: {printed}");
        assert!(!printed.contains(ALTERNATE_SCREEN), "{command}: {printed}");
    }
    console.send("perf top\n");
    console.expect(ALTERNATE_SCREEN);
    console.expect("Samples: ");
    console.send("q");
    console.expect("~# ");
}
