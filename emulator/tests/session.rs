//! `tipsim boot` on a terminal and without one: signals, scripts, commands, and who is left at the end of input.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{assemble, guest, scratch, stderr, stdout, tipsim};

/// Longest time that anything in these tests takes, on whatever host.
const MAX_TIME: Duration = Duration::from_secs(60);

/// Waits until something holds.
#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < MAX_TIME, "{what}: not after {MAX_TIME:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A pseudo terminal with `tipsim boot` on it, as the session that it controls.
struct Session {
    /// The user's end.
    master: File,
    /// A shell's end, which stays open.
    slave: File,
    child: Child,
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Session {
    fn start(boot: &mut Command) -> Self {
        let (mut master, mut slave) = (0, 0);
        let null = std::ptr::null_mut();
        // SAFETY: it writes two descriptors to the two places, and takes null for what is not given.
        let opened =
            unsafe { libc::openpty(&mut master, &mut slave, null, null.cast(), null.cast()) };
        assert_eq!(opened, 0);
        // SAFETY: the descriptors are new and nobody else's.
        let (master, slave) = unsafe { (File::from_raw_fd(master), File::from_raw_fd(slave)) };
        let end = || Stdio::from(slave.try_clone().unwrap());
        boot.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: all calls are safe after a fork, and touch nothing but the new process.
        unsafe {
            boot.pre_exec(|| {
                // A shell that runs the tests in the background has these ignored.
                for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let child = boot.spawn().unwrap();
        let session = Self { master, slave, child };
        until("raw mode", || session.is_raw());
        session
    }

    /// Local flags of the terminal: echo, lines, signals.
    fn flags(&self) -> (u32, u32, u32) {
        // SAFETY: all zeros is a valid value, and the call writes one of its type.
        let settings = unsafe {
            let mut settings: libc::termios = std::mem::zeroed();
            assert_eq!(libc::tcgetattr(self.slave.as_raw_fd(), &mut settings), 0);
            settings
        };
        (settings.c_lflag, settings.c_iflag, settings.c_oflag)
    }

    fn is_raw(&self) -> bool {
        self.flags().0 & (libc::ECHO | libc::ICANON | libc::ISIG) == 0
    }

    fn signal(&self, signal: i32) {
        // SAFETY: it sends a signal to a child that was not waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// The process is in a state, as ps has them.
    fn is_in(&self, state: char) -> bool {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = std::fs::read_to_string(path).unwrap();
        stat.rsplit(") ").next().unwrap().starts_with(state)
    }

    /// Waits for the end; the exit status.
    fn end(&mut self) -> Option<i32> {
        until("the end", || self.child.try_wait().unwrap().is_some());
        let status = self.child.wait().unwrap();
        assert_eq!(status.signal(), None);
        status.code()
    }
}

/// A small system that sleeps, woken by its clock a hundred times a second.
fn sleeper(dir: &Path) -> Command {
    let source = ".globl _start\n_start: li t0, 0x80\n csrw mie, t0\n li t1, 0x200bff8\n li t2, 0x2004000\n\
        1: ld t0, 0(t1)\n li t3, 100000\n add t0, t0, t3\n sd t0, 0(t2)\n wfi\n addi s0, s0, 1\n j 1b\n";
    let elf = assemble(dir, "sleeper", source);
    let mut boot = tipsim();
    boot.arg("boot").arg("--firmware").arg(elf).env_remove("TIPSIM_GUEST");
    boot
}

#[test]
fn signals_leave_the_terminal_as_it_was() {
    let dir = scratch("session-signals");
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
        let mut boot = sleeper(&dir);
        let saved = dir.join(format!("saved-{signal}"));
        let mut session = Session::start(boot.arg("--save").arg(&saved));
        let start = Instant::now();
        session.signal(signal);
        assert_eq!(session.end(), Some(128 + signal));
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        assert!(!session.is_raw(), "signal {signal}");
        assert!(saved.exists(), "signal {signal}: the machine was not saved");
    }
    // What is ignored stays ignored.
    let mut shell = Command::new("sh");
    let boot = sleeper(&dir);
    shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]);
    shell.arg(boot.get_program()).args(boot.get_args());
    let mut session = Session::start(&mut shell);
    session.signal(libc::SIGHUP);
    std::thread::sleep(Duration::from_millis(300));
    assert!(session.child.try_wait().unwrap().is_none());
    session.signal(libc::SIGTERM);
    assert_eq!(session.end(), Some(128 + libc::SIGTERM));
}

#[test]
fn a_stopped_session_leaves_the_terminal_and_takes_it_again() {
    let dir = scratch("session-stop");
    let mut session = Session::start(&mut sleeper(&dir));
    for _ in 0..2 {
        session.signal(libc::SIGTSTP);
        until("stopped", || session.is_in('T'));
        assert!(!session.is_raw());
        session.signal(libc::SIGCONT);
        until("raw mode again", || session.is_raw());
    }
    session.signal(libc::SIGCONT);
    std::thread::sleep(Duration::from_millis(100));
    session.master.write_all(b"\x01x").unwrap();
    assert_eq!(session.end(), Some(0));
    assert!(!session.is_raw(), "what was raw already was not taken for the user's");
}

/// `tipsim boot` of the built guest with a script on standard input.
#[track_caller]
fn script(args: &[&str], text: &str) -> Output {
    let mut boot = tipsim();
    boot.args(["boot", "--guest-dir"]).arg(guest()).args(args);
    let pipes = boot.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let (id, start) = (child.id() as i32, Instant::now());
    let (over, is_over) = std::sync::mpsc::channel::<()>();
    let killer = std::thread::spawn(move || {
        if is_over.recv_timeout(MAX_TIME).is_err() && start.elapsed() >= MAX_TIME {
            // SAFETY: the child was not waited for: it holds its pipes, which are still read.
            unsafe { libc::kill(id, libc::SIGKILL) };
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(over);
    killer.join().unwrap();
    assert!(output.status.code().is_some(), "killed: {}{}", stdout(&output), stderr(&output));
    output
}

#[test]
fn a_script_on_standard_input_reaches_the_shell_whole() {
    let text = "uname -a\nls /sys/bus/event_source/devices\nsleep 20; echo $((6 * 7))\nexit\n";
    let output = script(&["--append", "quiet"], text);
    let printed = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{printed}{}", stderr(&output));
    for line in ["Linux tipsim 6.", "cpu  ", "\n42\r"] {
        assert!(printed.contains(line), "no \"{line}\" in {printed}");
    }
    let output = script(&["--append", "quiet"], "poweroff -f\n");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = script(&["--append", "quiet"], "reboot -f\n");
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("the guest asked for a reset, which ends the session"));
}

#[test]
fn a_session_without_anybody_ends_when_the_guest_waits() {
    for text in ["", "echo a line; read x\n"] {
        let output = script(&["--append", "quiet"], text);
        assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
        let said = stderr(&output);
        let last = said.trim_end().lines().last().unwrap();
        for words in ["the guest only waits", "console input is at its end"] {
            assert!(last.contains(words), "{said}");
        }
    }
    let output = script(&["--append", "rdinit=/nothing"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("the guest's kernel panicked: "), "{}", stderr(&output));
}

#[test]
fn a_command_gives_the_exit_status_and_has_standard_input() {
    let dir = scratch("session-command");
    let command = |command: &str, args: &[&str], text: &str| {
        script(&[&["--append", "quiet", "--command", command], args].concat(), text)
    };
    let output = command("uname -a; wc -c; exit 7", &[], "sixteen letters\n");
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    let printed = stdout(&output);
    assert!(printed.contains("Linux tipsim 6.") && printed.contains("\n16\r"), "{printed}");
    let output = command("poweroff -f", &[], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("the guest ended before its command did"));
    // The folder that the user shares is where it runs, and is left clean.
    let share = ["--share", dir.to_str().unwrap()];
    let output = command("echo here > made; ls -A", &share, "");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let names: Vec<_> = dir.read_dir().unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["made"]);
}

/// AddressSanitizer knows Sv39 alone, which is all that BOOM has. Its own functions look for errors here: the accesses that GCC 12 looks after
/// by itself it looks up at another place than its library.
#[test]
fn programs_with_address_sanitizer_run() {
    let dir = scratch("session-sanitizer");
    let source = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n
        int main(int argc, char **argv) { (void)argv; char *p = malloc(39 + argc); memset(p, argc, 39 + argc); printf(\"ran %d\\n\", argc);
            free(p); if (argc > 1) memset(p, argc, 39 + argc); return 0; }";
    std::fs::write(dir.join("program.c"), source).unwrap();
    let mut gcc = Command::new("riscv64-linux-gnu-gcc");
    gcc.current_dir(&dir).args(["-O1", "-w", "-fno-builtin"]);
    gcc.args(["-fsanitize=address", "-static-libasan", "-static-libgcc"]);
    gcc.args(["--param", "asan-instrument-reads=0", "--param", "asan-instrument-writes=0"]);
    gcc.args(["program.c", "-o", "program"]);
    assert!(gcc.status().unwrap().success());
    let run = |command: &str, args: &[&str]| {
        let share = ["--append", "quiet", "--share", dir.to_str().unwrap()];
        let output = script(&[&share, args, &["--command", command]].concat(), "");
        (output.status.code(), stdout(&output))
    };
    let (status, printed) = run("./program && grep mmu /proc/cpuinfo", &[]);
    assert_eq!(status, Some(0), "{printed}");
    assert!(printed.contains("ran 1") && printed.contains("sv39"), "{printed}");
    let (status, printed) = run("./program freed", &["--env", "ASAN_OPTIONS=exitcode=66"]);
    assert_eq!(status, Some(66), "{printed}");
    assert!(printed.contains("heap-use-after-free"), "{printed}");
    let (_, printed) = run("grep mmu /proc/cpuinfo", &["--set", "isa.sv48=true"]);
    assert!(printed.contains("sv48"), "{printed}");
}
