//! Where the host's time goes: a run samples itself (`tipsim run --self-profile`).
//!
//! Timers that count the processor time of the hart's thread and of the core's interrupt them; the handler notes the
//! instruction. Debug information then tells which source file it comes from, through all that was inlined.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Processor time between samples: 2 ms less a bit, so that nothing beats against it.
const PERIOD_NS: libc::c_long = 1_999_000;
/// Samples kept; the rest of a run of more than half an hour is not sampled.
const MAX_SAMPLES: usize = 1 << 20;

/// Parts of the simulator: name, and where its sources lie. The first that fits counts.
const PARTS: [(&str, &[&str]); 7] = [
    ("hand_over", &["timing/src/ahead", "timing/src/path/output.rs"]),
    ("front_end", &["timing/src/path/mod.rs", "timing/src/front", "timing/src/predict"]),
    ("memory", &["timing/src/path/", "timing/src/lsu", "timing/src/mem"]),
    ("rename_and_issue", &["timing/src"]),
    (EXECUTE, &["machine/src", "devices/src", "isa/src", "cranelift-", "regalloc2-"]),
    // Work for profilers and trace that the sampled threads do while they wait for each other.
    (
        "profilers",
        &[
            "profile/src",
            "symbols/src",
            "report/src",
            "commit-trace/src/span",
            "commit-trace/src/trace",
            "simulation/src/recording",
        ],
    ),
    ("records", &["commit-trace/src", "tip-device/src", "simulation/src/commit_stage.rs"]),
];

/// The part that translated code belongs to, too.
const EXECUTE: &str = "execute";

/// What lies in no part, or in the system.
const OTHER: &str = "other";

static SAMPLES_TAKEN: AtomicUsize = AtomicUsize::new(0);
static SAMPLES: [AtomicU64; MAX_SAMPLES] = [const { AtomicU64::new(0) }; MAX_SAMPLES];

/// Whether there is a [`SelfProfile`].
static SAMPLING: AtomicBool = AtomicBool::new(false);
/// Processor time that the last core's thread had left to its next sample when it ended, in nanoseconds.
static LEFT_NS: AtomicU64 = AtomicU64::new(PERIOD_NS as u64);

thread_local! {
    /// The timer of a core's thread.
    static TIMER: RefCell<Option<Timer>> = const { RefCell::new(None) };
}

/// Samples the thread that started it, and those that [`sample_this_thread`], while it lives.
pub(crate) struct SelfProfile {
    timer: Timer,
    started: Instant,
}

/// Samples the calling thread until it ends, if there is a [`SelfProfile`]. There are many such threads, one after
/// the other, which are sampled as if they were one.
pub(crate) fn sample_this_thread() {
    if SAMPLING.load(Ordering::Relaxed) {
        let left = LEFT_NS.load(Ordering::Relaxed).max(1);
        // If the timer cannot be started, nobody is told; it could be for the first thread.
        TIMER.set(Timer::start(left as libc::c_long).ok());
    }
}

/// Interrupts the thread that started it.
struct Timer(libc::timer_t);

impl SelfProfile {
    /// Starts. There can be one at a time.
    pub(crate) fn start() -> anyhow::Result<Self> {
        SAMPLES_TAKEN.store(0, Ordering::Relaxed);
        // SAFETY: all structures are plain data that zeroes are valid for; the handler has the signature that
        // SA_SIGINFO asks for and does only what a signal handler may; `timer` is written before it is read.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_timer as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            check(libc::sigaction(libc::SIGPROF, &action, std::ptr::null_mut()))?;
        }
        let profile = Self { timer: Timer::start(PERIOD_NS)?, started: Instant::now() };
        SAMPLING.store(true, Ordering::Relaxed);
        Ok(profile)
    }

    /// Ends.
    pub(crate) fn stop(self) -> Samples {
        SAMPLING.store(false, Ordering::Relaxed);
        let Self { timer, started } = self;
        drop(timer);
        Samples { elapsed: started.elapsed() }
    }
}

/// What a [`SelfProfile`] found. There are none of an older one.
pub(crate) struct Samples {
    elapsed: Duration,
}

impl Samples {
    /// The processor time that each part took, of both threads, as a share of the time that went by. It takes some tenths
    /// of a second.
    pub(crate) fn parts(self) -> anyhow::Result<BTreeMap<&'static str, f64>> {
        let elapsed = self.elapsed.as_secs_f64();
        let taken = SAMPLES_TAKEN.load(Ordering::Relaxed).min(MAX_SAMPLES);
        let mut addresses: BTreeMap<u64, u64> = BTreeMap::new();
        for sample in &SAMPLES[..taken] {
            *addresses.entry(sample.load(Ordering::Relaxed)).or_default() += 1;
        }
        let image = Image::load()?;
        let mut parts: BTreeMap<_, f64> = PARTS.iter().map(|&(name, _)| (name, 0.0)).collect();
        for (address, count) in addresses {
            let share = count as f64 * PERIOD_NS as f64 / 1e9 / elapsed;
            *parts.entry(image.part(address)).or_default() += share;
        }
        Ok(parts)
    }
}

impl Timer {
    /// Starts one that fires first after so many nanoseconds of the thread's time.
    fn start(first: libc::c_long) -> std::io::Result<Self> {
        // SAFETY: all structures are plain data that zeroes are valid for; `timer` is written before it is read.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGPROF;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = std::ptr::null_mut();
            let clock = libc::CLOCK_THREAD_CPUTIME_ID;
            check(libc::timer_create(clock, &mut event, &mut timer))?;
            let timer = Self(timer);
            let nanoseconds = |tv_nsec| libc::timespec { tv_sec: 0, tv_nsec };
            let spec = libc::itimerspec {
                it_interval: nanoseconds(PERIOD_NS),
                it_value: nanoseconds(first),
            };
            check(libc::timer_settime(timer.0, 0, &spec, std::ptr::null_mut()))?;
            Ok(timer)
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer was created in `start`, is read before it is deleted, and is deleted once.
        unsafe {
            let mut spec: libc::itimerspec = std::mem::zeroed();
            if libc::timer_gettime(self.0, &mut spec) == 0 {
                LEFT_NS.store(spec.it_value.tv_nsec as u64, Ordering::Relaxed);
            }
            libc::timer_delete(self.0);
        }
    }
}

fn check(result: libc::c_int) -> std::io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// The start of the kernel's `siginfo_t` for a timer (`si_tid`, `si_overrun`), on 64-bit machines.
#[repr(C)]
struct TimerInfo {
    signal: [libc::c_int; 4],
    timer: libc::c_int,
    overrun: libc::c_int,
}

/// Notes the interrupted instruction, for each time that the timer expired: many kernels look at such timers every 4 ms.
extern "C" fn on_timer(_: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo to a handler that was set with SA_SIGINFO, of a timer since nothing else
    // raises this signal; a TimerInfo is shorter and has the same alignment at most.
    let overrun = unsafe { (*info.cast::<TimerInfo>()).overrun };
    // SAFETY: the kernel passes a valid ucontext to a handler that was set with SA_SIGINFO.
    let machine = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    let pc = machine.gregs[libc::REG_RIP as usize] as u64;
    #[cfg(target_arch = "aarch64")]
    let pc = machine.pc;
    #[cfg(target_arch = "riscv64")]
    let pc = machine.__gregs[libc::REG_PC] as u64;
    let times = 1 + usize::try_from(overrun).unwrap_or(0);
    let first = SAMPLES_TAKEN.fetch_add(times, Ordering::Relaxed);
    for sample in SAMPLES.iter().skip(first).take(times) {
        sample.store(pc, Ordering::Relaxed);
    }
}

/// This program's debug information.
struct Image {
    loader: addr2line::Loader,
    /// Address of the program's first byte in memory.
    base: u64,
    /// Memory that can be executed and is of no file: translated code.
    translated: Vec<Range<u64>>,
}

impl Image {
    fn load() -> anyhow::Result<Self> {
        let path = std::env::current_exe()?;
        let loader = addr2line::Loader::new(&path)
            .map_err(|e| anyhow::anyhow!("{}: {e}", path.display()))?;
        let maps = std::fs::read_to_string("/proc/self/maps")?;
        let name = path.to_string_lossy();
        let base = maps
            .lines()
            .find(|line| line.ends_with(&*name))
            .and_then(|line| u64::from_str_radix(line.split('-').next()?, 16).ok())
            .ok_or_else(|| anyhow::anyhow!("/proc/self/maps: no mapping of {name}"))?;
        let translated = maps.lines().filter_map(without_file).collect();
        Ok(Self { loader, base, translated })
    }

    /// The part that an instruction belongs to: that of the innermost inlined function which is in any.
    fn part(&self, address: u64) -> &'static str {
        if self.translated.iter().any(|code| code.contains(&address)) {
            return EXECUTE;
        }
        let offset = address.wrapping_sub(self.base);
        let address = offset.wrapping_add(self.loader.relative_address_base());
        let Ok(mut frames) = self.loader.find_frames(address) else {
            return OTHER;
        };
        while let Ok(Some(frame)) = frames.next() {
            let file = frame.location.and_then(|location| location.file);
            if let Some(part) = file.and_then(part_of) {
                return part;
            }
        }
        OTHER
    }
}

/// The mapping that a line of `/proc/self/maps` is of, if it can be executed and is of no file.
fn without_file(line: &str) -> Option<Range<u64>> {
    let mut fields = line.split_whitespace();
    let (range, permissions) = (fields.next()?, fields.next()?);
    if !permissions.contains('x') || fields.nth(3).is_some() {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some(address(start)?..address(end)?)
}

fn part_of(file: &str) -> Option<&'static str> {
    let within = |places: &[&str]| places.iter().any(|place| file.contains(place));
    PARTS.iter().find(|(_, places)| within(places)).map(|&(name, _)| name)
}
