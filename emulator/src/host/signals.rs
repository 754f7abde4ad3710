//! Signals of an interactive session: what ends it leaves the terminal as it was, what stops it, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use crate::host::terminal;

/// Signals that end a session in order.
const ENDING: [i32; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];
/// Signals that stop the process and let it go on.
const STOPPING: [i32; 2] = [libc::SIGTSTP, libc::SIGCONT];
/// The session has so long to notice that it was asked to leave.
const PATIENCE: Duration = Duration::from_secs(5);
/// What a shell adds to a signal's number in the status of what it ended.
const STATUS_OF_SIGNALS: i32 = 128;

/// Whether a session is to end, and why. Clones share one state.
#[derive(Clone, Default)]
pub(crate) struct SessionEnd(Arc<State>);

#[derive(Default)]
struct State {
    asked: AtomicBool,
    /// 0: the user asked by the keyboard.
    signal: AtomicI32,
    noticed: AtomicBool,
}

impl SessionEnd {
    /// Asks the session to end.
    pub(crate) fn ask(&self) {
        self.0.asked.store(true, Ordering::Release);
    }

    /// The session is asked to end.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.asked.load(Ordering::Acquire)
    }

    /// The session has ended, and now does what it does last. Returns the exit status for the signal that asked, if one did.
    pub(crate) fn notice(&self) -> Option<u8> {
        self.0.noticed.store(true, Ordering::Release);
        let signal = self.0.signal.load(Ordering::Acquire);
        (signal != 0).then_some((STATUS_OF_SIGNALS + signal) as u8)
    }
}

/// Handles signals from now on, on a thread of its own. To be called before any other thread is started: they inherit that
/// these signals are not delivered to them.
pub(crate) fn handle(leave: &SessionEnd) {
    let wanted = ENDING.into_iter().chain(STOPPING);
    // What was ignored when the process started stays ignored (nohup).
    let wanted: Vec<i32> = wanted.filter(|&signal| !is_ignored(signal)).collect();
    // SAFETY: `sigemptyset` makes the set valid before anything else uses it, and the numbers are those of signals.
    let set = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for &signal in &wanted {
            libc::sigaddset(&mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        set
    };
    let leave = leave.clone();
    std::thread::spawn(move || {
        loop {
            let mut signal = 0;
            // SAFETY: both point to values that live on this thread's stack during the call.
            if unsafe { libc::sigwait(&set, &mut signal) } != 0 {
                return;
            }
            match signal {
                libc::SIGTSTP => stop(),
                libc::SIGCONT => terminal::resume(),
                _ => end(&leave, signal),
            }
        }
    });
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: a null action asks for the present one, which is written to a value of that type.
    unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut present) == 0
            && present.sa_sigaction == libc::SIG_IGN
    }
}

/// Stops the whole process, as the signal would have, with the terminal as the shell expects it.
fn stop() {
    terminal::restore();
    // The signal goes to this very thread, which therefore does not go on before the process is continued.
    // SAFETY: it sends a signal that does nothing but stop.
    unsafe { libc::raise(libc::SIGSTOP) };
    terminal::resume();
}

/// Asks the session to end, and ends the process if the session does not notice, for instance because nobody reads what it
/// prints.
fn end(leave: &SessionEnd, signal: i32) {
    let again = leave.is_asked();
    leave.0.signal.store(signal, Ordering::Release);
    leave.ask();
    let asked = Instant::now();
    while !leave.0.noticed.load(Ordering::Acquire) {
        if again || asked.elapsed() > PATIENCE {
            terminal::restore();
            std::process::exit(STATUS_OF_SIGNALS + signal);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
