//! Counts of a hart's instructions, by the process that executed them, while the hart's stream is read.
//!
//! Processes that execute the same code have the numbers of its instructions in common (see `isa::StaticId`). At an instruction's number are its
//! counts in the process that executed it last; its counts in other processes are parked. There are at most [`Rows::limit`] counts of user code:
//! beyond that, the processes that ran longest ago are merged with other processes of their program, and count as one process from then on.

use commit_trace::{InstId, StaticInfo};
use profile::{GuestContext, Process, ProcessId};
use rustc_hash::FxHashMap;
use sampling_units::StaticKind;

use crate::counts::Counts;

/// Counts of instructions in processes that one machine keeps before it merges processes. Each takes some kilobytes with its histograms, its
/// part of `truth.json` and what a report makes of it.
const MAX_ROWS: usize = 1 << 18;
/// The first user address space ([`StaticInfo::space`]).
const FIRST_USER: u32 = 2;

/// A command and the path of its executable. Processes that are merged have both in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Program {
    command: String,
    executable: String,
}

impl Program {
    fn of(process: &Process) -> Self {
        let executable = process.mappings.first().map_or("", |mapping| &mapping.path);
        Self { command: process.name.clone(), executable: executable.to_owned() }
    }
}

/// The owner of counts: whoever executed the instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Owner {
    /// Kernel and firmware, on behalf of whichever process.
    #[default]
    Kernel,
    /// A process that has counts of its own.
    Process(ProcessId),
    /// Processes that were merged, by the index of their program in [`Rows::programs`].
    Merged(usize),
}

/// Where an instruction is in a program, wherever the program is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CodePlace {
    program: usize,
    /// Path of the mapped file; empty where nothing is mapped.
    file: String,
    /// Offset in the file; the address where nothing is mapped.
    offset: u64,
    raw: u32,
}

/// Processes of one program that were merged.
#[derive(Clone, Debug)]
struct MergedProgram {
    program: Program,
    processes: u32,
}

/// An instruction, and its counts in the process that executed it last.
#[derive(Debug, Default)]
struct CountedInst {
    info: Option<StaticInfo>,
    kind: StaticKind,
    owner: Owner,
    counts: Option<Box<Counts>>,
}

/// The counts of one hart.
#[derive(Debug)]
pub(crate) struct Rows {
    context: GuestContext,
    /// The process whose user code is executed, and the owner of the counts that it adds to.
    current: (ProcessId, Owner),
    /// Rows by the number of the instruction.
    rows: Vec<CountedInst>,
    /// Counts of an instruction that belong to other owners than [`CountedInst::owner`].
    parked: FxHashMap<(Owner, u32), Box<Counts>>,
    /// Numbers of the instructions that each process has counts of.
    instructions: FxHashMap<Owner, Vec<u32>>,
    /// Count of task switches when each process ran last.
    ran: FxHashMap<ProcessId, u64>,
    switches: u64,
    programs: Vec<MergedProgram>,
    /// The program that a process was merged into.
    merged: FxHashMap<ProcessId, usize>,
    /// By place in a program: the instruction that stands for all those at this place in merged processes, and the process in which it was met first.
    places: FxHashMap<CodePlace, (u32, ProcessId)>,
    /// By program and instruction of a merged process: the other instruction at the same place that stands for it.
    aliases: FxHashMap<(usize, u32), u32>,
    /// Number of counts of user code that are held, in `rows` or parked.
    held: usize,
    /// Counts of user code beyond which processes are merged.
    limit: usize,
}

/// An instruction of one hart, and what was counted of it in one process or in many.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The instruction's number in the hart's stream.
    pub inst: InstId,
    /// What the instruction is; `None` if it was announced to somebody else before.
    pub static_info: Option<StaticInfo>,
    /// The process whose mappings have the instruction; `None`: kernel or firmware.
    pub mapped_in: Option<ProcessId>,
    /// Index into [`HartCounts::processes`] of whoever executed the instruction; `None`: kernel or firmware.
    pub process: Option<u32>,
    /// What was counted.
    pub counts: Counts,
}

/// Everything that was counted of one hart's instructions.
#[derive(Clone, Debug)]
pub struct HartCounts {
    /// Processes, and after them an entry for each program whose processes were merged.
    pub processes: Vec<Process>,
    /// Instructions with their counts, sorted by number and process.
    pub instructions: Vec<Counted>,
    /// The number that stands for an instruction that was merged with the others at its place.
    pub aliases: FxHashMap<u32, u32>,
    /// Index into `processes` of each process that was merged.
    merged: FxHashMap<ProcessId, u32>,
}

impl HartCounts {
    /// Returns the index into `processes` of a process, or of the entry that it was merged into.
    pub fn process(&self, id: ProcessId) -> u32 {
        self.merged.get(&id).copied().unwrap_or(id.0)
    }
}

impl Rows {
    /// Returns the empty counts of one hart in a machine of `harts` harts.
    pub(crate) fn new(harts: usize) -> Self {
        Self {
            context: GuestContext::new(),
            current: (ProcessId::BOOT, Owner::Process(ProcessId::BOOT)),
            rows: Vec::new(),
            parked: FxHashMap::default(),
            instructions: FxHashMap::default(),
            ran: FxHashMap::default(),
            switches: 0,
            programs: Vec::new(),
            merged: FxHashMap::default(),
            places: FxHashMap::default(),
            aliases: FxHashMap::default(),
            held: 0,
            limit: MAX_ROWS / harts.max(1),
        }
    }

    /// Sets the limit of counts of user code.
    #[cfg(test)]
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Counts of user code that there are.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        let lie = self.rows.iter().filter(|row| row.owner != Owner::Kernel && row.counts.is_some());
        assert_eq!(lie.count() + self.parked.len(), self.held);
        self.held
    }

    /// Forgets all counts.
    pub(crate) fn clear(&mut self) {
        for row in &mut self.rows {
            (row.owner, row.counts) = (Owner::Kernel, None);
        }
        self.parked.clear();
        self.instructions.clear();
        self.programs.clear();
        self.merged.clear();
        self.places.clear();
        self.aliases.clear();
        self.held = 0;
        self.select(self.context.current());
    }

    /// Notes that a process runs from here on.
    fn select(&mut self, process: ProcessId) {
        self.current = (process, self.owner(process));
    }

    /// Returns the owner of the counts that a process adds to.
    fn owner(&self, process: ProcessId) -> Owner {
        match self.merged.get(&process) {
            Some(program) => Owner::Merged(*program),
            None => Owner::Process(process),
        }
    }

    /// Takes a record of the guest's side band.
    pub(crate) fn side_band(&mut self, kind: u8, bytes: &[u8]) {
        self.context.record(0, kind, bytes);
        let now = self.context.current();
        self.switches += 1;
        self.ran.insert(now, self.switches);
        self.select(now);
        while self.held > self.limit
            && let Some(process) = self.ran_longest_ago(now)
        {
            self.merge(process);
        }
    }

    /// Returns the process with counts of its own that ran longest ago, but not the one that runs `now`. Processes that have ended come first.
    fn ran_longest_ago(&self, now: ProcessId) -> Option<ProcessId> {
        let processes = self.instructions.keys().filter_map(|owner| match owner {
            Owner::Process(id) if *id != now => Some(*id),
            _ => None,
        });
        processes.min_by_key(|id| {
            let lives = self.context.processes()[id.0 as usize].end_cycle.is_none();
            (lives, self.ran.get(id), *id)
        })
    }

    fn at(&mut self, inst: InstId) -> &mut CountedInst {
        let inst = inst.0 as usize;
        if inst >= self.rows.len() {
            self.rows.resize_with(inst + 1, CountedInst::default);
        }
        &mut self.rows[inst]
    }

    /// A static instruction is used for the first time.
    pub(crate) fn define(&mut self, info: &StaticInfo) {
        let row = self.at(info.id);
        row.info = Some(*info);
        row.kind = StaticKind::of(info.raw);
    }

    /// Returns what an instruction is, if that was told.
    pub(crate) fn info(&self, inst: InstId) -> Option<(&StaticInfo, StaticKind)> {
        let row = self.rows.get(inst.0 as usize)?;
        Some((row.info.as_ref()?, row.kind))
    }

    /// The process that executes an instruction; `None`: kernel or firmware.
    pub(crate) fn process(&self, inst: InstId) -> Option<ProcessId> {
        let (info, _) = self.info(inst)?;
        (info.space >= FIRST_USER).then(|| self.context.current())
    }

    /// The counts of an instruction in the process that executes it.
    pub(crate) fn counts(&mut self, inst: InstId) -> &mut Counts {
        match self.process(inst) {
            Some(_) => self.counts_of_user(self.current, inst),
            None => self.counts_of(Owner::Kernel, inst),
        }
    }

    /// The counts of an instruction that this process executed before; `None`: kernel or firmware.
    pub(crate) fn counts_before(
        &mut self,
        process: Option<ProcessId>,
        inst: InstId,
    ) -> &mut Counts {
        match process {
            Some(process) => self.counts_of_user((process, self.owner(process)), inst),
            None => self.counts_of(Owner::Kernel, inst),
        }
    }

    fn counts_of_user(
        &mut self,
        (process, owner): (ProcessId, Owner),
        inst: InstId,
    ) -> &mut Counts {
        let inst = match owner {
            Owner::Merged(program) => self.canonical(inst, process, program),
            Owner::Process(_) | Owner::Kernel => inst,
        };
        self.counts_of(owner, inst)
    }

    /// Returns the instruction that stands for `inst` of a merged process.
    fn canonical(&mut self, inst: InstId, process: ProcessId, program: usize) -> InstId {
        let owner = Owner::Merged(program);
        let row = &self.rows[inst.0 as usize];
        let is_canonical = row.owner == owner && row.counts.is_some();
        if is_canonical || self.parked.contains_key(&(owner, inst.0)) {
            return inst;
        }
        if let Some(canonical) = self.aliases.get(&(program, inst.0)) {
            return InstId(*canonical);
        }
        let place = self.place(inst.0, process, program);
        let (canonical, _) = *self.places.entry(place).or_insert((inst.0, process));
        if canonical != inst.0 {
            self.aliases.insert((program, inst.0), canonical);
        }
        InstId(canonical)
    }

    fn counts_of(&mut self, owner: Owner, inst: InstId) -> &mut Counts {
        let row = self.at(inst);
        if row.owner != owner {
            let before = std::mem::replace(&mut row.owner, owner);
            if let Some(counts) = row.counts.take() {
                self.parked.insert((before, inst.0), counts);
            }
            let own = self.parked.remove(&(owner, inst.0));
            self.rows[inst.0 as usize].counts = own;
        }
        self.rows[inst.0 as usize].counts.get_or_insert_with(|| {
            if owner != Owner::Kernel {
                self.held += 1;
                self.instructions.entry(owner).or_default().push(inst.0);
            }
            Box::default()
        })
    }

    /// Takes the counts of an owner out.
    fn take(&mut self, owner: Owner, inst: u32) -> Option<Box<Counts>> {
        let row = &mut self.rows[inst as usize];
        match row.owner == owner {
            true => row.counts.take(),
            false => self.parked.remove(&(owner, inst)),
        }
    }

    /// Merges a process with the others of its program that were merged.
    fn merge(&mut self, process: ProcessId) {
        let of = Program::of(&self.context.processes()[process.0 as usize]);
        let known = self.programs.iter().position(|own| own.program == of);
        let program = known.unwrap_or(self.programs.len());
        if known.is_none() {
            self.programs.push(MergedProgram { program: of, processes: 0 });
        }
        self.programs[program].processes += 1;
        self.merged.insert(process, program);
        let own = Owner::Process(process);
        for inst in self.instructions.remove(&own).unwrap_or_default() {
            if let Some(counts) = self.take(own, inst) {
                self.held -= 1;
                let merged = (process, Owner::Merged(program));
                self.counts_of_user(merged, InstId(inst)).merge(*counts);
            }
        }
    }

    fn place(&self, inst: u32, mapped_in: ProcessId, program: usize) -> CodePlace {
        // Counts of a process are of instructions whose address space was told.
        let (pc, raw) = self.rows[inst as usize].info.map_or((0, 0), |own| (own.pc, own.raw));
        let process = &self.context.processes()[mapped_in.0 as usize];
        let mapping = process.mapping_at(pc, u64::MAX);
        CodePlace {
            program,
            file: mapping.map_or_else(String::new, |mapping| mapping.path.clone()),
            offset: mapping.map_or(pc, |own| pc - own.start + own.file_offset),
            raw,
        }
    }

    /// Returns all counts. Processes that `keep` does not ask for are merged with the others of their program.
    pub(crate) fn finish(mut self, keep: impl Fn(&Process) -> bool) -> HartCounts {
        let mut by_program: FxHashMap<Program, Vec<ProcessId>> = FxHashMap::default();
        for process in self.context.processes() {
            if self.instructions.contains_key(&Owner::Process(process.id)) && !keep(process) {
                by_program.entry(Program::of(process)).or_default().push(process.id);
            }
        }
        let mut alike: Vec<_> = by_program.into_iter().collect();
        alike.sort_by(|(_, a), (_, b)| a.cmp(b));
        for (program, processes) in alike {
            if processes.len() > 1 || self.programs.iter().any(|own| own.program == program) {
                processes.into_iter().for_each(|process| self.merge(process));
            }
        }
        self.into_counts()
    }

    fn into_counts(mut self) -> HartCounts {
        let mapped_in: FxHashMap<(usize, u32), ProcessId> = self
            .places
            .iter()
            .map(|(place, (inst, process))| ((place.program, *inst), *process))
            .collect();
        let (mut processes, _) = std::mem::take(&mut self.context).into_processes();
        let first = processes.len() as u32;
        for own in &self.programs {
            processes.push(Process {
                id: ProcessId(processes.len() as u32),
                pid: None,
                generation: 0,
                name: own.program.command.clone(),
                first_cycle: 0,
                end_cycle: None,
                mappings: Vec::new(),
                stands_for: Some(own.processes),
            });
        }
        let lie = self
            .rows
            .iter_mut()
            .zip(0..)
            .filter_map(|(row, inst)| Some(((row.owner, inst), row.counts.take()?)));
        let mut instructions: Vec<Counted> = lie
            .collect::<Vec<_>>()
            .into_iter()
            .chain(self.parked.drain())
            .map(|((owner, inst), counts)| {
                let (mapped_in, process) = match owner {
                    Owner::Kernel => (None, None),
                    Owner::Process(id) => (Some(id), Some(id.0)),
                    Owner::Merged(program) => {
                        let process = mapped_in.get(&(program, inst)).copied();
                        (process, Some(first + program as u32))
                    }
                };
                Counted {
                    inst: InstId(inst),
                    static_info: self.rows[inst as usize].info,
                    mapped_in,
                    process,
                    counts: *counts,
                }
            })
            .collect();
        instructions.sort_by_key(|own| (own.inst, own.process));
        HartCounts {
            processes,
            instructions,
            aliases: self
                .aliases
                .into_iter()
                .map(|((_, inst), canonical)| (inst, canonical))
                .collect(),
            merged: self
                .merged
                .iter()
                .map(|(process, program)| (*process, first + *program as u32))
                .collect(),
        }
    }
}
