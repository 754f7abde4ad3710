//! An evaluation that is made up, for tests of what reads one.

use std::collections::BTreeMap;

use commit_trace::{Class, InstId, StaticInfo};

use crate::stacks::number;
use crate::{
    Component, CycleStack, CycleStacks, Evaluation, Mapping, Process, ProcessId, Profile, Profiler,
    Sampler, SamplerResult, Schedule, Subsample, UNITS_PER_CYCLE,
};

const UNITS: u64 = UNITS_PER_CYCLE;
/// Build ID of the program: its instructions here are made up.
const INLINED_ID: [u8; 20] = [
    0xa2, 0xac, 0x62, 0xd1, 0xea, 0xbb, 0xef, 0xdd, 0xf2, 0x5e, 0x87, 0xeb, 0xbb, 0xc4, 0xe8, 0xce,
    0xcd, 0xc0, 0x13, 0x04,
];
/// The process whose code `symbols` knows.
pub const QUICKSTART: ProcessId = ProcessId(1);
const SHELL: ProcessId = ProcessId(2);

fn process(id: ProcessId, pid: Option<u32>, name: &str) -> Process {
    Process {
        id,
        pid,
        generation: 0,
        name: name.to_owned(),
        first_cycle: 0,
        end_cycle: None,
        mappings: vec![Mapping {
            start: 0x10000,
            len: 0x1000,
            file_offset: 0,
            build_id: INLINED_ID.to_vec(),
            path: "/usr/bin/quickstart".to_owned(),
            since: 0,
        }],
        stands_for: None,
    }
}

fn instruction(
    id: u32,
    space: u32,
    pc: u64,
    len: u8,
    class: Class,
    target: Option<u64>,
) -> StaticInfo {
    let privilege = if space == 1 { 1 } else { 0 };
    StaticInfo { id: InstId(id), space, pc, raw: 0x1000 + id, len, privilege, class, target }
}

fn static_info() -> Vec<StaticInfo> {
    vec![
        instruction(0, 2, 0x10150, 2, Class::Load, None),
        instruction(1, 2, 0x10152, 2, Class::Int, None),
        instruction(2, 2, 0x10154, 4, Class::Int, None),
        instruction(3, 2, 0x10158, 2, Class::Int, None),
        instruction(4, 2, 0x1015a, 4, Class::Branch, Some(0x10150)),
        instruction(5, 2, 0x1015e, 4, Class::Int, None),
        instruction(6, 2, 0x10162, 2, Class::IndirectJump, None),
        instruction(7, 2, 0x10168, 4, Class::Int, None),
        instruction(8, 1, 0xffff_ffff_8000_1000, 4, Class::System, None),
        instruction(9, 1, 0xffff_ffff_8000_1004, 4, Class::Store, None),
        instruction(10, 3, 0x10150, 2, Class::Load, None),
    ]
}

fn profile(weights: &[(ProcessId, u32, u64)]) -> Profile {
    let mut profile = Profile::new(UNITS);
    for (process, inst, cycles) in weights {
        profile.add(*process, InstId(*inst), cycles * UNITS);
    }
    profile
}

fn sampler(profiler: Profiler, weights: &[(ProcessId, u32, u64)]) -> SamplerResult {
    SamplerResult {
        sampler: Sampler::new(profiler, Schedule::every(1000)),
        profile: profile(weights),
        processes: None,
        samples: 20,
        dropped: 0,
        tail_cycles: 0,
        signatures: None,
        misplaced: Vec::new(),
        by_context: Vec::new(),
        subsamples: Vec::new(),
        log: Vec::new(),
    }
}

const TRUTH: [(ProcessId, u32, u64); 12] = [
    (QUICKSTART, 0, 8000),
    (QUICKSTART, 1, 500),
    (QUICKSTART, 2, 2500),
    (QUICKSTART, 3, 500),
    (QUICKSTART, 4, 1000),
    (QUICKSTART, 5, 3000),
    (QUICKSTART, 6, 250),
    (QUICKSTART, 7, 250),
    (QUICKSTART, 8, 1500),
    (QUICKSTART, 9, 500),
    (SHELL, 8, 1500),
    (SHELL, 10, 500),
];

/// Returns how many of an instruction's units are in one of eight subsamples: instruction 0 takes three times as long in those with `more` as in
/// the others.
fn in_part(inst: InstId, units: u64, more: bool) -> u64 {
    match (inst.0, more) {
        (0, true) => units * 3 / 16,
        (0, false) => units / 16,
        _ => units / 8,
    }
}

/// The evaluation of [`evaluation`] as of a sampled region of 200 units: in every other subsample some code took longer.
pub fn sampled_evaluation() -> Evaluation {
    let whole = evaluation();
    let part = |more: bool| {
        let mut stacks = CycleStacks::default();
        for process in [QUICKSTART, SHELL] {
            let units = whole.stacks.of(process).flat_map(|(inst, stack)| {
                let of = |units| in_part(inst, units, more);
                Component::ALL.map(|component| (number(inst, component), of(stack[component])))
            });
            stacks.set(process, units.collect());
        }
        let slots = BTreeMap::new();
        Subsample { units: 25, instructions: whole.instructions / 8, stacks, slots }
    };
    let subsamples = (0..8).map(|number| part(number % 2 == 0)).collect();
    let mut samplers = whole.samplers.clone();
    // The last sampler is the second of its profiler.
    for result in &mut samplers[..2] {
        let part = |more: bool| {
            let mut part = Profile::new(UNITS);
            for (process, inst, units) in result.profile.iter() {
                part.add(process, inst, in_part(inst, units, more));
            }
            part
        };
        result.subsamples = (0..8).map(|number| part(number % 2 == 0)).collect();
    }
    Evaluation { subsamples, samplers, ..whole }
}

/// The loop of `symbols/src/tests/inlined.c` as run by "quickstart" and by two shells, and a kernel
/// function that all of them entered: what they cost, and what two profilers say of it.
pub fn evaluation() -> Evaluation {
    let stack = |component, cycles: u64| {
        let mut stack = CycleStack::default();
        stack[Component::Execution] = cycles * UNITS / 4;
        stack[component] = cycles * UNITS - cycles * UNITS / 4;
        stack
    };
    let components =
        [Component::LoadDram, Component::Execution, Component::Mispredict, Component::Divider];
    let mut stacks = vec![Vec::new(); 3];
    for (process, inst, cycles) in TRUTH {
        let component = match inst {
            0 | 10 => components[0],
            4 => components[2],
            5 => components[3],
            8 => Component::Flush,
            9 => Component::Store,
            _ => components[1],
        };
        let component = if component == Component::Execution { Component::Alu } else { component };
        stacks[process.0 as usize].push((InstId(inst), stack(component, cycles)));
    }
    let mut packed = CycleStacks::default();
    for (process, stacks) in (0..).map(ProcessId).zip(stacks) {
        let units = stacks.into_iter().flat_map(|(inst, stack): (_, CycleStack)| {
            Component::ALL.map(|component| (number(inst, component), stack[component]))
        });
        packed.set(process, units.collect());
    }
    let same = [
        (QUICKSTART, 0, 9000),
        (QUICKSTART, 2, 3000),
        (QUICKSTART, 4, 1000),
        (QUICKSTART, 5, 3000),
        (QUICKSTART, 8, 2000),
        (SHELL, 8, 2000),
    ];
    let skid = [
        (QUICKSTART, 1, 9000),
        (QUICKSTART, 3, 3000),
        (QUICKSTART, 6, 4000),
        (QUICKSTART, 9, 2000),
        (SHELL, 9, 2000),
    ];
    let static_info = static_info();
    Evaluation {
        oracle: profile(&TRUTH),
        stacks: packed,
        spinning: CycleStacks::default(),
        shared: Vec::new(),
        contexts: None,
        by_context: Vec::new(),
        marked: None,
        samplers: vec![sampler(Profiler::Tip, &same), sampler(Profiler::Software, &skid), {
            let mut fast = sampler(Profiler::Tip, &TRUTH);
            fast.sampler.name = "tip-fast".to_owned();
            fast
        }],
        processes: vec![
            Process { mappings: Vec::new(), ..process(ProcessId::BOOT, None, "boot") },
            process(QUICKSTART, Some(42), "quickstart"),
            process(SHELL, Some(43), "sh"),
        ],
        first_use: vec![0; static_info.len()],
        static_info,
        spaces: BTreeMap::from([(2, QUICKSTART), (3, SHELL)]),
        kernel_text: None,
        cycles: 21_000,
        idle: 1_000,
        instructions: 15_000,
        traps: 3,
        stream_cycles: 30_000,
        malformed_side_band: 0,
        scheduler: Default::default(),
        threads: Vec::new(),
        by_thread: BTreeMap::new(),
        top_down: None,
        over_time: Vec::new(),
        signatures: None,
        scripts: Default::default(),
        subsamples: Vec::new(),
    }
}
