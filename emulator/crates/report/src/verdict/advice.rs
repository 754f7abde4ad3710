//! What is tried against the cycles of a place: by the critical path of its loop, which knows better than a sum of waits; where there is
//! none, by what the commit stage waited for.

use critical_path::Cause;
use profile::Component;
use schemars::JsonSchema;
use serde::Serialize;

use super::Place;
use crate::loops::LoopRow;

/// Least share of an iteration's cycles for which a cause of the critical path has advice of its own.
const WORTH_ADVICE: f64 = 0.2;
/// Most causes of a critical path that have advice of their own.
const MAX_ADVICE: usize = 2;

const ADVICE_SHORTER_CHAIN: &str = "a shorter chain of dependent operations: independent accumulators, unrolling with separate sums";
const ADVICE_NO_DIVISION: &str = "no division there: multiply by a reciprocal, divide once outside the loop, shift and mask for powers of two";
const ADVICE_SMALLER_DATA: &str = "data that fits the caches: blocking, smaller types, fields that are used together side by side";
const ADVICE_FEWER_PAGES: &str =
    "data on fewer pages: huge pages, what is used together side by side";
const ADVICE_DATA_IN_ORDER: &str = "less data, or in the order of memory; prefetch (__builtin_prefetch) where addresses are known early";
const ADVICE_LIST: &str = "each load waits for the address that the one before brings: prefetch the next nodes, nodes side by side in an array with \
    indices, several such chains side by side";
const ADVICE_NO_BRANCH: &str = "arithmetic or conditional moves instead of the branch (Zicond), or data in an order that it can learn";

const ADVICE_NO_RELOAD: &str =
    "do not load what was stored just before by another address: keep it in a register";
const ADVICE_FEWER_LOCKS: &str = "fewer and finer locks: one for each part of the data, data of its own for each thread that is joined at the end, less work \
    while a lock is held";

/// Prefixes of the names of functions that take or release locks of a program: glibc's, Rust's and Go's.
const LOCK_FUNCTION_PREFIXES: [&str; 11] = [
    "pthread_mutex_",
    "__pthread_mutex_",
    "___pthread_mutex_",
    "__lll_",
    "pthread_rwlock_",
    "__pthread_rwlock_",
    "___pthread_rwlock_",
    "pthread_spin_",
    "std::sys::sync::mutex::",
    "sync.(*Mutex)",
    "sync.(*RWMutex)",
];

/// Whose code a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The program's own: it can be compiled anew.
    Program,
    /// A library's, or a program's that others compiled.
    Library,
    /// The kernel's, or the firmware's below one.
    Kernel,
}

/// Folders of programs and libraries that others compiled.
const INSTALLED_FOLDERS: [&str; 5] = ["/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/"];

impl Owner {
    /// Returns the owner of code in a file. `has_line`: the source line of the code is known; `others_have`: the source lines of other code in the
    /// file are known; `bare_metal`: there is no kernel, and the firmware is the program.
    pub(super) fn of(
        module: &str,
        has_line: bool,
        others_have: impl FnOnce() -> bool,
        bare_metal: bool,
    ) -> Self {
        if module == "[kernel]" || module == "[firmware]" && !bare_metal {
            return Self::Kernel;
        }
        let name = module.rsplit('/').next().unwrap_or(module);
        let is_library = name.ends_with(".so") || name.contains(".so.") || module == "[vdso]";
        let is_installed = INSTALLED_FOLDERS.iter().any(|folder| module.starts_with(folder));
        match has_line {
            _ if is_installed => Self::Library,
            false if is_library || others_have() => Self::Library,
            _ => Self::Program,
        }
    }
}

/// What is tried against the cycles of a place, whose loop is told beside it.
pub(super) fn for_place(place: &Place, found: Option<&LoopRow>) -> String {
    // Which of its instructions waits does not matter: the program decides how often threads meet there.
    if LOCK_FUNCTION_PREFIXES.iter().any(|start| place.function.starts_with(start)) {
        return ADVICE_FEWER_LOCKS.to_owned();
    }
    let by_component = || {
        of_component(place.cause.component, &place.function, &place.text, place.owner).to_owned()
    };
    let Some(found) = found.filter(|_| !symbols::is_plt(&place.function)) else {
        return by_component();
    };
    let mut advice: Vec<&str> = Vec::new();
    for cause in found.causes_from(WORTH_ADVICE) {
        match of_cause(cause, found.chases_pointers, place.owner) {
            Some(words) if !advice.contains(&words) => advice.push(words),
            _ => {}
        }
    }
    advice.truncate(MAX_ADVICE);
    match advice.is_empty() {
        true => by_component(),
        false => advice.join("; "),
    }
}

/// What is tried against cycles of the critical path; `None` if its cause says nothing of its own.
const fn of_cause(cause: Cause, chases_pointers: bool, owner: Owner) -> Option<&'static str> {
    Some(match cause {
        Cause::Integer => ADVICE_SHORTER_CHAIN,
        Cause::Fp => {
            "a shorter chain of dependent operations: independent accumulators (-ffast-math lets the compiler), unrolling with separate sums"
        }
        Cause::Multiply => {
            "no multiplication on the chain: shifts and additions, a select instead of a product with 0 or 1, independent accumulators"
        }
        Cause::Divide | Cause::DividerBusy => ADVICE_NO_DIVISION,
        Cause::LoadL1 if chases_pointers => ADVICE_LIST,
        Cause::LoadL1 => {
            "loads that do not wait for each other: keep values in registers, indices instead of pointers"
        }
        Cause::LoadForward => "what was stored just before is loaded again: keep it in a register",
        Cause::LoadL2 | Cause::LoadLlc | Cause::LoadMemory if chases_pointers => ADVICE_LIST,
        Cause::LoadL2 | Cause::LoadLlc => ADVICE_SMALLER_DATA,
        Cause::LoadMemory => ADVICE_DATA_IN_ORDER,
        Cause::LoadPeer => {
            "data of its own for each thread, in lines of its own (alignas(64)); fewer writes to what others read"
        }
        Cause::Device => "fewer accesses to devices: larger requests",
        Cause::DataTlb => ADVICE_FEWER_PAGES,
        Cause::Port => {
            "fewer operations of the kind that the port executes: wider loads and stores, values kept in registers"
        }
        Cause::Mispredict => ADVICE_NO_BRANCH,
        Cause::MemoryOrdering => ADVICE_NO_RELOAD,
        Cause::Width => fewer_instructions(owner),
        _ => return None,
    })
}

/// Returns the advice against instructions that commit one after the other.
const fn fewer_instructions(owner: Owner) -> &'static str {
    match owner {
        Owner::Program => "fewer instructions: a better algorithm, -O3, -march with Zba, Zbb, Zbs",
        Owner::Library => {
            "fewer or smaller calls of it, where the program's own code makes them: it is the code of a library, or was compiled by others"
        }
        Owner::Kernel => {
            "less work for the kernel: fewer and larger system calls, memory that is used again instead of new pages"
        }
    }
}

/// What is tried against cycles of a component in a function, at such an instruction.
fn of_component(component: Component, function: &str, text: &str, owner: Owner) -> &'static str {
    let name = text.split_whitespace().next().unwrap_or_default();
    let divides =
        ["div", "rem", "fdiv", "fsqrt", "c.div"].iter().any(|start| name.starts_with(start));
    match component {
        // Each stub has one target, and nothing in it to improve.
        _ if symbols::is_plt(function) => {
            "calls within a library that do not go through its PLT: -fvisibility=hidden, -Bsymbolic-functions; -fno-plt for others"
        }
        Component::Execution => fewer_instructions(owner),
        // The user cannot change the layout of code that others compiled.
        Component::FrontEnd | Component::FrontEndCache | Component::FrontEndTlb
            if owner != Owner::Program =>
        {
            fewer_instructions(owner)
        }
        Component::Alu | Component::Divider if divides => ADVICE_NO_DIVISION,
        Component::Alu | Component::Divider => ADVICE_SHORTER_CHAIN,
        Component::LoadL1 => {
            "loads that do not wait for each other: keep values in registers, indices instead of pointers"
        }
        Component::LoadTlb => ADVICE_FEWER_PAGES,
        Component::LoadL2 | Component::LoadLlc => ADVICE_SMALLER_DATA,
        Component::LoadDram => ADVICE_DATA_IN_ORDER,
        Component::LoadPeer => {
            "data of its own for each thread, in lines of its own (alignas(64)); fewer writes to what others read"
        }
        Component::Store => "what is stored earlier, or not at all",
        Component::FrontEndStores => {
            "fewer or wider stores, to lines that are in the cache already"
        }
        Component::Serialize | Component::Flush if is_fp_state(name) => {
            "no saving of FP flags: -fno-trapping-math -fno-math-errno, conversions instead of ceil, floor, rint"
        }
        Component::Serialize | Component::Flush if name == "fence.i" => {
            "code that is written at run time in larger pieces, with one fence.i for each: it empties the instruction cache"
        }
        Component::Serialize | Component::Flush if name.starts_with("fence") => {
            "fewer or weaker fences: acquire and release instead of sequential consistency"
        }
        Component::Serialize | Component::Flush => {
            "fewer of these instructions: take them out of loops"
        }
        Component::Device => "fewer accesses to devices: larger requests",
        Component::FrontEnd => {
            "straighter code: -O2 with a profile (AutoFDO), fewer taken branches"
        }
        Component::FrontEndCache | Component::FrontEndTlb => {
            "less or better placed code: -Os for what is cold, layout by a profile (AutoFDO, BOLT)"
        }
        Component::Mispredict if is_indirect(name) => {
            "fewer targets of one jump: its commonest ones by branches before it, calls that the compiler can see through (final, templates)"
        }
        Component::Mispredict => ADVICE_NO_BRANCH,
        Component::MemoryOrdering => ADVICE_NO_RELOAD,
        Component::Exception => {
            "fewer system calls and page faults: larger buffers, memory that is used again"
        }
        Component::Interrupt => "nothing in the program: interrupts are the machine's",
    }
}

/// True for jumps to where a register points.
fn is_indirect(name: &str) -> bool {
    matches!(name, "jalr" | "jr" | "c.jalr" | "c.jr")
}

/// True for instructions that read or write the FP status, which wait for all before them.
fn is_fp_state(name: &str) -> bool {
    let names = ["frflags", "fsflags", "frcsr", "fscsr", "frrm", "fsrm"];
    names.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::super::Cause as Reason;
    use super::*;
    use crate::loops::{CauseCycles, LeastCycles};

    fn component(component: Component, function: &str, text: &str) -> &'static str {
        of_component(component, function, text, Owner::Program)
    }

    #[test]
    fn advice_is_of_the_instruction() {
        let advice = |which, text| component(which, "f", text);
        assert!(advice(Component::Flush, "fsflags zero,t1").contains("FP flags"));
        assert!(advice(Component::Flush, "fence rw,rw").contains("fences"));
        assert!(advice(Component::Flush, "fence.i").contains("larger pieces"));
        assert!(advice(Component::Mispredict, "jalr a3").contains("targets"));
        assert!(advice(Component::Mispredict, "bnez a3,8").contains("Zicond"));
        assert!(advice(Component::Alu, "fdiv.d fa0,fa1,fa2").contains("reciprocal"));
        assert!(advice(Component::Alu, "add a0,a1,a2").contains("accumulators"));
        let stub = component(Component::Mispredict, "[plt of libnode.so.115]", "jalr t1,t3");
        assert!(stub.contains("-fno-plt"), "{stub}");
    }

    #[test]
    fn of_a_lock_the_program_decides_how_often_it_is_taken() {
        for function in ["pthread_mutex_lock", "__lll_lock_wait", "sync.(*Mutex).Lock"] {
            let place = Place { function: function.into(), ..place() };
            assert!(for_place(&place, None).contains("finer locks"), "{function}");
        }
        assert!(!for_place(&place(), None).contains("lock"));
    }

    /// A place where instructions commit.
    fn place() -> Place {
        Place {
            process: 1,
            function: "f".into(),
            share: 0.9,
            cause: Reason { component: Component::Execution, share: 0.5 },
            label: "f+0x4".into(),
            pc: "4".into(),
            text: "add a0,a0,a1".into(),
            source: None,
            library_source: None,
            owner: Owner::Program,
            advice: String::new(),
            in_loop: None,
        }
    }

    /// The advice for a place where instructions commit, with a loop whose critical path has these shares.
    fn of_path(causes: &[(Cause, f64)], chases_pointers: bool, owner: Owner) -> String {
        let place = Place { owner, ..place() };
        let found = LoopRow {
            process: 1,
            function: "f".into(),
            label: "f+0x4".into(),
            source: None,
            library_source: None,
            depth: 0,
            cycles: 1e6,
            share: 0.9,
            own_share: 0.9,
            iterations: 1e5,
            trips: None,
            measured: 100,
            cycles_per_iteration: 10.0,
            range: [10; 3],
            instructions_per_iteration: 5.0,
            least: LeastCycles { decode: 1.0, int: 1.0, mem: 1.0, fp: 0.0 },
            causes: causes
                .iter()
                .map(|&(cause, share)| CauseCycles { cause, cycles: 10.0 * share })
                .collect(),
            chases_pointers,
            chain: Vec::new(),
            views: Vec::new(),
        };
        for_place(&place, Some(&found))
    }

    #[test]
    fn advice_follows_the_critical_path() {
        let own = |causes: &[(Cause, f64)], list| of_path(causes, list, Owner::Program);
        let chain = own(&[(Cause::Integer, 0.94)], false);
        assert!(chain.contains("accumulators") && !chain.contains("fewer instructions"), "{chain}");
        let hash = own(&[(Cause::Divide, 0.37), (Cause::LoadL1, 0.12)], false);
        assert_eq!(hash, ADVICE_NO_DIVISION);
        let list = own(&[(Cause::LoadL2, 0.96)], true);
        assert!(list.contains("prefetch") && !list.contains("blocking"), "{list}");
        assert_eq!(own(&[(Cause::LoadL2, 0.96)], false), ADVICE_SMALLER_DATA);
        let both = own(&[(Cause::LoadL2, 0.51), (Cause::Multiply, 0.25)], false);
        assert!(
            both.starts_with(ADVICE_SMALLER_DATA) && both.contains("select instead of a product"),
            "{both}"
        );
        // A path that says nothing of its own leaves it to what the commit stage does.
        let own_width = own(&[(Cause::Commit, 0.9)], false);
        assert!(own_width.contains("-march"), "{own_width}");
    }

    #[test]
    fn nobody_compiles_the_code_of_others() {
        for (owner, part) in [(Owner::Library, "calls of it"), (Owner::Kernel, "system calls")] {
            for cause in [Cause::Commit, Cause::Width] {
                let advice = of_path(&[(cause, 0.9)], false, owner);
                assert!(advice.contains(part) && !advice.contains("-march"), "{advice}");
            }
        }
        let placed = of_component(Component::FrontEnd, "f", "fence w,w", Owner::Kernel);
        assert!(placed.contains("system calls"), "{placed}");
        let of = |module, has_line, others: bool| Owner::of(module, has_line, || others, false);
        assert_eq!(of("[kernel]", false, false), Owner::Kernel);
        assert_eq!(of("[firmware]", true, true), Owner::Kernel);
        assert_eq!(Owner::of("[firmware]", true, || true, true), Owner::Program);
        assert_eq!(of("/lib/libc.so.6", false, false), Owner::Library);
        assert_eq!(of("/usr/bin/md5sum", false, false), Owner::Library);
        assert_eq!(of("/usr/lib/libz.so.1", true, true), Owner::Library);
        assert_eq!(of("/out/look", true, true), Owner::Program);
        assert_eq!(of("/out/libown.so", true, true), Owner::Program);
        // What was linked into a program that has source lines, and has none itself.
        assert_eq!(of("/out/look", false, true), Owner::Library);
        assert_eq!(of("/out/stripped", false, false), Owner::Program);
    }
}
