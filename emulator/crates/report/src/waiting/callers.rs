//! Functions that wait: from the place where a thread entered the kernel to the innermost function of the program's own code,
//! and what the wait is for, by the names of the functions that called each other.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use commit_trace::InstId;
use profile::waits::{Transition, WaitSite, WaitUse};
use profile::{Contexts, Evaluation, ProcessId};
use symbols::place::Places;
use symbols::{BuildId, Location, Place, Source, Symbolizer, Symbols};

/// Callers of a system call that are looked at, from the innermost outwards.
const MAX_CALLERS: usize = 64;
/// Innermost functions that tell what the Go runtime waits for: further out may be the goroutine that called the scheduler.
const MAX_GO_FRAMES: usize = 12;

/// Prefixes of the names of shared libraries whose functions wait on behalf of their callers.
const SYSTEM_LIBRARIES: [&str; 14] = [
    "ld-",
    "ld.so",
    "libc.",
    "libc-",
    "libpthread",
    "librt.",
    "libm.",
    "libstdc++",
    "libc++",
    "libgcc_s",
    "libatomic",
    "libgomp",
    "libomp",
    "libgo.",
];

/// Prefixes of the names of functions of C, C++ and Rust libraries that wait on behalf of their callers. They decide where no source lines tell, such
/// as in programs that are linked statically.
const LIBRARY_FUNCTIONS: [&str; 31] = [
    "__lll_",
    "lll_",
    "pthread_",
    "__pthread_",
    "___pthread_",
    "__futex",
    "futex_",
    "__GI_",
    "__syscall",
    "syscall",
    "sem_",
    "__sem_",
    "__new_sem_",
    "__old_sem_",
    "mtx_",
    "__mtx_",
    "cnd_",
    "__cnd_",
    "thrd_",
    "__thrd_",
    "__gthread",
    "GOMP_",
    "gomp_",
    "__libc_",
    "start_thread",
    "std::",
    "<std::",
    "core::",
    "<core::",
    "alloc::",
    "parking_lot",
];

/// Starts of the names of functions of Go's own packages below a program.
const GO_PACKAGES: [&str; 5] = ["runtime.", "runtime/", "sync.", "internal/", "syscall."];
/// Functions of the Go runtime that wait although there is work: for a lock of the runtime, or for the garbage collector.
const GO_RUNTIME_LOCK_FUNCTIONS: [&str; 6] = [
    "runtime.lock",
    "runtime.lock2",
    "runtime.lockWithRank",
    "runtime.lockWithRankMayAcquire",
    "runtime.gcstopm",
    "runtime.stopTheWorldWithSema",
];
/// Functions of the Go runtime whose threads wait as there is nothing to do for them.
const GO_IDLE_FUNCTIONS: [&str; 9] = [
    "runtime.mPark",
    "runtime.stopm",
    "runtime.stoplockedm",
    "runtime.findRunnable",
    "runtime.findrunnable",
    "runtime.schedule",
    "runtime.templateThread",
    "runtime.sysmon",
    "runtime.notetsleepg",
];

/// A function of the program's own code that waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Caller {
    /// The function's name.
    pub function: String,
    /// The line from which it calls what waits, `file:line`.
    pub source: Option<String>,
}

/// What is known of a place from which threads wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedSite {
    /// The function of the system call, with the distance from its start.
    pub label: String,
    /// What the wait is for.
    pub used_for: WaitUse,
    /// Function of the program's own code that waits; `None` if calls were not followed or no caller is of the program.
    pub caller: Option<Caller>,
}

/// The places from which threads of an evaluation wait for futexes, from which they sleep, and, without an address, from which they wake others.
#[derive(Debug, Default)]
pub(crate) struct NamedSites(HashMap<(ProcessId, WaitSite), NamedSite>);

impl NamedSites {
    /// Names all places at once, so that each file is read once.
    pub(crate) fn new(evaluation: &Evaluation, symbolizer: &Symbolizer) -> Self {
        let sites = RefCell::new(BTreeSet::new());
        let waits = evaluation.waits(|process, site| {
            sites.borrow_mut().insert((process, site));
            WaitUse::Program
        });
        let mut sites = sites.into_inner();
        for futex in waits.iter().flat_map(|waits| &waits.futexes) {
            sites.extend(futex.sites.iter().map(|(site, _)| (futex.process, *site)));
        }
        sites.extend(evaluation.contexts.iter().flat_map(|contexts| wakers(evaluation, contexts)));
        let mut places = Places::new(evaluation);
        for (_, site) in &sites {
            for (process, inst) in callers(evaluation, *site) {
                places.add(process, inst);
            }
        }
        let mut list = places.take();
        let calls = list.len();
        list.extend(sites.iter().map(|(process, site)| place(evaluation, *process, site.pc)));
        let symbols = symbolizer.resolve(&list);
        let named = sites.into_iter().enumerate().map(|(at, (process, site))| {
            let at = calls + at;
            let locations = callers(evaluation, site)
                .filter_map(|(process, inst)| places.location(process, inst))
                .map(|location| &symbols.locations[location as usize]);
            let mut frames: Vec<Frame<'_>> =
                locations.flat_map(|location| frames(&symbols, location)).collect();
            let is_followed = !frames.is_empty();
            if !is_followed {
                frames.extend(self::frames(&symbols, &symbols.locations[at]));
            }
            let named = NamedSite {
                label: symbols.label(at),
                used_for: used_for(&frames),
                caller: is_followed.then(|| own_caller(&frames)).flatten(),
            };
            ((process, site), named)
        });
        Self(named.collect())
    }

    /// Returns what is known of a place.
    pub(crate) fn get(&self, process: ProcessId, site: WaitSite) -> Option<&NamedSite> {
        self.0.get(&(process, site))
    }

    /// Returns what threads use a place for.
    pub(crate) fn used_for(&self, process: ProcessId, site: WaitSite) -> WaitUse {
        self.get(process, site).map_or(WaitUse::Program, |named| named.used_for)
    }
}

/// Returns the places from which threads wake others.
fn wakers(
    evaluation: &Evaluation,
    contexts: &Contexts,
) -> impl Iterator<Item = (ProcessId, WaitSite)> {
    let events = evaluation.scheduler.events.iter();
    let wakes = events.filter(|event| matches!(event.change, Transition::Wakes(..)));
    wakes.filter_map(|event| event.entry).map(|entry| {
        let site = WaitSite { pc: 0, entry: Some(entry) };
        (contexts.get(entry).process, site)
    })
}

/// The calls that led to a system call, the innermost first: the `ecall`, the call of the function that it is in, and so on.
fn callers(
    evaluation: &Evaluation,
    site: WaitSite,
) -> impl Iterator<Item = (ProcessId, InstId)> + '_ {
    let contexts = evaluation.contexts.as_ref();
    let above = move |context| {
        let context = contexts?.get(context);
        let (caller, inst) = context.caller?;
        Some((caller, (context.process, inst)))
    };
    let first = site.entry.and_then(above);
    std::iter::successors(first, move |(caller, _)| above(*caller))
        .map(|(_, call)| call)
        .take(MAX_CALLERS)
}

/// The place of the system call after which a process goes on.
fn place(evaluation: &Evaluation, process: ProcessId, pc: u64) -> Place {
    let call = pc.wrapping_sub(4);
    let mapping = evaluation
        .processes
        .get(process.0 as usize)
        .and_then(|process| process.mapping_at(call, u64::MAX));
    let Some(mapping) = mapping else {
        return Place::Unknown(call);
    };
    let id = (!mapping.build_id.is_empty()).then(|| BuildId(mapping.build_id.clone()));
    let offset = call.wrapping_sub(mapping.start);
    Place::file(&mapping.path, id, offset.wrapping_add(mapping.file_offset))
}

/// A function that was called, inlined or not.
#[derive(Clone, Copy, Debug)]
struct Frame<'a> {
    name: &'a str,
    /// The line that is executed in it.
    source: Option<&'a Source>,
    /// The function's file is the kernel or a library of [`SYSTEM_LIBRARIES`].
    is_of_system: bool,
}

/// The functions at a place in the code, the innermost first.
fn frames<'a>(symbols: &'a Symbols, at: &'a Location) -> Vec<Frame<'a>> {
    let module = symbols.module(at.module).name();
    let is_of_system = module.starts_with('[') || starts_with(module, &SYSTEM_LIBRARIES);
    let frame = |name, source: Option<&'a Source>| Frame {
        name,
        source: source.filter(|source| source.line > 0),
        is_of_system,
    };
    let mut here = at.source.as_ref();
    let mut found = Vec::with_capacity(1 + at.inlined.len());
    for inlined in &at.inlined {
        found.push(frame(&*inlined.function, here));
        here = inlined.call.as_ref();
    }
    found.push(frame(&*symbols.function(at.function).name, here));
    found
}

fn starts_with(name: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| name.starts_with(start))
}

/// Returns the innermost function of the program's own code. Source lines tell, or names if no function has a line of the program.
fn own_caller(frames: &[Frame<'_>]) -> Option<Caller> {
    let may_be_own =
        |frame: &&Frame<'_>| !frame.is_of_system && !starts_with(frame.name, &GO_PACKAGES);
    let has_own_line = |frame: &&Frame<'_>| frame.source.is_some_and(Source::is_of_program);
    let mut own = frames.iter().filter(may_be_own);
    let by_line = own.clone().find(has_own_line);
    let found = by_line.or_else(|| {
        own.find(|frame| frame.source.is_none() && !starts_with(frame.name, &LIBRARY_FUNCTIONS))
    })?;
    Some(Caller { function: found.name.to_owned(), source: found.source.map(crate::rows::line) })
}

/// Returns what a wait is for, by the names of those that wait, the innermost first.
fn used_for(frames: &[Frame<'_>]) -> WaitUse {
    let name =
        |frame: &Frame<'_>| frame.name.strip_suffix(".abi0").unwrap_or(frame.name).to_owned();
    let names: Vec<String> = frames.iter().take(MAX_GO_FRAMES).map(name).collect();
    let is_among = |of: &[&str]| names.iter().any(|name| of.contains(&&**name));
    match names.first().map(|name| &**name) {
        Some("runtime.futex") if is_among(&GO_RUNTIME_LOCK_FUNCTIONS) => WaitUse::Runtime,
        Some("runtime.futex") if is_among(&GO_IDLE_FUNCTIONS) => WaitUse::Idle,
        Some("runtime.futex") => WaitUse::Runtime,
        Some("runtime.usleep") if is_among(&["runtime.sysmon"]) => WaitUse::Idle,
        _ => WaitUse::Program,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'a>(names: &[&'a str]) -> Vec<Frame<'a>> {
        let frame = |&name: &&'a str| Frame { name, source: None, is_of_system: false };
        names.iter().map(frame).collect()
    }

    #[test]
    fn threads_of_go_without_work_are_idle_and_wait_for_no_lock() {
        let of = |names: &[&str]| used_for(&named(names));
        let parked = [
            "runtime.futex",
            "runtime.futexsleep",
            "runtime.notesleep",
            "runtime.mPark",
            "runtime.stopm",
            "runtime.findRunnable",
            "runtime.schedule",
            "runtime.park_m",
            "runtime.mcall",
        ];
        assert_eq!(of(&parked), WaitUse::Idle);
        assert_eq!(of(&["runtime.usleep.abi0", "runtime.sysmon"]), WaitUse::Idle);
        // A lock of the scheduler, which is taken to look for work.
        let mut locked = parked;
        locked[2] = "runtime.lock2";
        assert_eq!(of(&locked), WaitUse::Runtime);
        // Calls were not followed.
        assert_eq!(of(&["runtime.futex.abi0"]), WaitUse::Runtime);
        let stopped = ["runtime.futex", "runtime.notesleep", "runtime.stopm", "runtime.gcstopm"];
        assert_eq!(of(&stopped), WaitUse::Runtime);
        assert_eq!(of(&["__lll_lock_wait", "pthread_mutex_lock"]), WaitUse::Program);
        assert_eq!(of(&["runtime.usleep", "runtime.osyield"]), WaitUse::Program);
    }

    #[test]
    fn who_waits_is_the_innermost_function_of_the_program() {
        let function = |frames: &[Frame<'_>]| own_caller(frames).map(|caller| caller.function);
        let names =
            ["__lll_lock_wait", "pthread_mutex_lock", "Pool::take()", "worker", "start_thread"];
        assert_eq!(function(&named(&names)).as_deref(), Some("Pool::take()"));
        assert_eq!(function(&named(&names[..2])), None);
        // Lines of the program tell better than names: a wrapper of the program's own, and a library's function of any name.
        let source = |file: &str, line| Source { file: file.into(), line };
        let (header, own, outer) = (
            source("/usr/include/c++/12/bits/std_mutex.h", 100),
            source("src/pool.cc", 7),
            source("src/main.cc", 40),
        );
        let mut frames =
            named(&["__lll_lock_wait", "lock_of_library", "lock", "pthread_pool_take", "main"]);
        for (at, line) in [(2, &header), (3, &own), (4, &outer)] {
            frames[at].source = Some(line);
        }
        let caller = own_caller(&frames).unwrap();
        assert_eq!(
            (&*caller.function, caller.source.as_deref()),
            ("pthread_pool_take", Some("src/pool.cc:7"))
        );
        frames[3].is_of_system = true;
        assert_eq!(function(&frames).as_deref(), Some("main"));
        let go = named(&["runtime.futex", "runtime.lock2", "runtime.mallocgc", "main.parse"]);
        assert_eq!(function(&go).as_deref(), Some("main.parse"));
    }
}
