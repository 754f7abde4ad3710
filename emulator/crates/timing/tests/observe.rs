//! Details of what leaves the ROB: one for each record, while anybody wants them, and without effect on time.

use crate::asm::{Program, State};
use crate::random::program;
use commit_trace::{
    AccessKind, Commit, CommitRecord, CommitSink, DataSource, Detail, Redirect, StaticInfo,
    TeaEvents, Translation,
};
use devices::{Bus, Clock};
use isa::{InstClass, PerfEvent, Selection, TimingModel, Watch};
use machine::{Hart, Limit, RunExit};
use timing::{Core, Preset};

#[derive(Default)]
struct Records {
    commits: Vec<(u64, CommitRecord)>,
    details: Vec<Detail>,
    /// Encodings, by number.
    encodings: Vec<u32>,
}

impl CommitSink for Records {
    fn commit(&mut self, _: &Commit) {}

    fn commits(&mut self, from: u64, records: &[CommitRecord], _: u64) {
        let mut cycle = from;
        for record in records {
            cycle += u64::from(record.commit_delta);
            self.commits.push((cycle, *record));
        }
    }

    fn details(&mut self, details: &[Detail]) {
        self.details.extend_from_slice(details);
    }

    fn define(&mut self, info: &StaticInfo) {
        let inst = info.id.0 as usize;
        self.encodings.resize(self.encodings.len().max(inst + 1), 0);
        self.encodings[inst] = info.raw;
    }
}

struct Machine {
    bus: Bus,
    hart: Hart,
    core: Core<Records>,
}

impl Machine {
    fn new(seed: u64) -> Self {
        let mut bus = Bus::new(16 << 20, 1, Clock::new(1_600_000_000, 10_000_000)).unwrap();
        let mut hart = Hart::new(0);
        program(seed, &mut bus, &mut hart);
        let preset = Preset::load("boom-4w").unwrap();
        let core = Core::new(&preset, Records::default());
        Self { bus, hart, core }
    }

    /// Records and details of the next instructions.
    fn run(&mut self) -> (usize, usize) {
        let before = self.seen();
        let limit = Limit::instructions(2_000);
        let exit = self.hart.run(&mut self.bus, &mut self.core, limit);
        assert_eq!(exit, RunExit::Limit);
        let now = self.seen();
        (now.0 - before.0, now.1 - before.1)
    }

    fn seen(&self) -> (usize, usize) {
        let records = self.core.sink();
        (records.commits.len(), records.details.len())
    }
}

#[test]
fn whoever_wants_details_has_them_until_nobody_does() {
    let mut machine = Machine::new(1);
    assert_eq!(machine.run().1, 0);
    // The host, then the hart's units, too.
    machine.core.observe_for_host(true);
    for units in [false, true, false] {
        machine.core.observe(units);
        let (records, details) = machine.run();
        assert_eq!(records, details, "units: {units}");
    }
    // The hart's units alone.
    machine.core.observe(true);
    machine.core.observe_for_host(false);
    let (records, details) = machine.run();
    assert_eq!(records, details);
    machine.core.observe(false);
    assert_eq!(machine.run().1, 0);
}

#[test]
fn observing_takes_no_time_and_stages_are_in_order() {
    for seed in 0..20 {
        let (mut plain, mut observed) = (Machine::new(seed), Machine::new(seed));
        observed.core.observe_for_host(true);
        for _ in 0..5 {
            plain.run();
            observed.run();
        }
        let (plain, observed) = (plain.core.sink(), observed.core.sink());
        assert!(plain.commits == observed.commits, "seed {seed}");
        for ((commit, record), detail) in observed.commits.iter().zip(&observed.details) {
            assert!(detail.decode <= detail.dispatch, "{detail:?}");
            assert!(detail.dispatch <= *commit, "{detail:?}");
            if detail.issue != 0 && !record.is_trap() {
                assert!(detail.dispatch < detail.issue, "{detail:?}");
                assert!(detail.issue <= detail.complete, "{detail:?}");
            }
        }
        let accesses = observed.details.iter().filter(|d| d.access.kind != AccessKind::None);
        assert!(accesses.count() > 100, "seed {seed}");
    }
}

/// What follows a redirect is decoded in the first slot, anything else in the one after its predecessor's.
fn check_slots(records: &Records, width: u8) {
    let pairs = records.commits.iter().zip(records.details.windows(2));
    for ((_, record), details) in pairs {
        let expected = match record.redirect() {
            Redirect::None => (details[0].slot + 1) % width,
            _ => 0,
        };
        assert_eq!(details[1].slot, expected, "{record:?} {details:?}");
    }
}

#[test]
fn decode_slots_follow_from_the_program() {
    let program = Program::new(
        "FN(f) fence; addi a2,a2,1; addi a2,a2,1; addi a2,a2,1; addi a2,a2,1; addi a2,a2,1
         fence.i; addi a2,a2,1; j 1f; addi a2,a2,1
         1: addi a2,a2,1; addi a2,a2,1; ld a3,0(a2); jalr zero,s3",
    );
    let preset = Preset::load("boom-4w").unwrap();
    let mut core = Core::new(&preset, Records::default());
    core.observe_for_host(true);
    program.define(&mut core);
    let mut start = 0;
    // Once to warm up: the jump is predicted then.
    for _ in 0..3 {
        start = core.sink().details.len();
        let mut state = State::new();
        state.x[19] = 0x1000;
        state.x[12] = 0x8100_0000;
        program.run(&mut core, &mut state);
    }
    let records = core.into_sink();
    let slots: Vec<u8> = records.details[start..].iter().map(|detail| detail.slot).collect();
    // The first fence is behind the last jump, which was predicted; a fence throws away what is behind it.
    assert_eq!(slots[1..], [0, 1, 2, 3, 0, 1, 0, 1, 2, 3, 0, 1]);
    check_slots(&records, 4);
}

#[test]
fn decode_slots_hold_in_any_program() {
    for seed in 0..20 {
        let mut machine = Machine::new(seed);
        machine.core.observe_for_host(true);
        for _ in 0..5 {
            machine.run();
        }
        let records = machine.core.sink();
        check_slots(records, 4);
        let in_last = records.details.iter().filter(|detail| detail.slot == 3);
        assert!(in_last.count() > 100, "seed {seed}");
    }
}

/// An instruction that left, with all that is known of it beside the counters.
struct Left<'a> {
    record: &'a CommitRecord,
    /// An instruction of the row before it, or of its own, restarted fetch.
    follows_restart: bool,
    detail: &'a Detail,
    class: InstClass,
}

impl Left<'_> {
    /// Whether the event is due to the instruction, as far as something else than counters tells it.
    fn incurs(&self, event: PerfEvent) -> Option<bool> {
        use PerfEvent as E;
        let (redirect, detail) = (self.record.redirect(), self.detail);
        let retires = !self.record.is_trap();
        let fetches = detail.packet.delivered != 0;
        // A load that fails its order is executed twice, and its access is told with the second time.
        let twice = self.record.tea().contains(TeaEvents::FL_MO);
        let access = |kind: AccessKind| detail.access.kind == kind;
        let missed =
            matches!(detail.access.source, DataSource::L2 | DataSource::Llc | DataSource::Memory);
        let is = |class: InstClass| retires && self.class == class;
        Some(match event {
            E::Instructions => retires,
            E::BranchMisses => redirect == Redirect::Mispredict,
            E::CondMisses => redirect == Redirect::Mispredict && is(InstClass::Branch),
            E::Exceptions => redirect == Redirect::Exception && !twice,
            E::Interrupts => redirect == Redirect::Interrupt,
            E::OrderFailures => redirect == Redirect::Exception && twice,
            E::Flushes => redirect == Redirect::Flush,
            E::Redirects => redirect != Redirect::None,
            E::CyclesFlushed => self.follows_restart,
            E::IntDiv => is(InstClass::IntDiv),
            E::IntMul => is(InstClass::IntMul),
            E::Load => is(InstClass::Load),
            E::Store => is(InstClass::Store),
            E::Csr => is(InstClass::Csr),
            E::L1iReads | E::FetchPackets => fetches,
            E::L1iMisses => fetches && detail.packet.source != DataSource::L1,
            E::ItlbMisses => fetches && detail.packet.translation != Translation::L1,
            // A line that was asked for before is a miss if a prefetcher did.
            _ if twice || detail.access.source == DataSource::InFlight => return None,
            E::L1dReadMisses => access(AccessKind::Load) && missed,
            E::L1dWriteMisses => {
                (access(AccessKind::Store) || access(AccessKind::Atomic)) && missed
            }
            E::Forwards => detail.access.source == DataSource::StoreQueue,
            E::DeviceAccesses => detail.access.source == DataSource::Device,
            _ => return None,
        })
    }
}

/// Instructions of a row.
const WIDTH: usize = 4;
/// Counters that are watched at once.
const WATCHED: usize = 29;
/// Bit of the first counter that is watched.
const FIRST: usize = 3;

#[test]
fn a_precise_event_names_the_instruction_that_it_is_due_to() {
    let precise: Vec<PerfEvent> =
        PerfEvent::ALL.iter().filter(|event| event.is_precise()).copied().collect();
    let mut judged = std::collections::BTreeMap::<&str, u64>::new();
    for seed in 0..6 {
        for events in precise.chunks(WATCHED) {
            let mut machine = Machine::new(seed);
            machine.core.observe_for_host(true);
            for (counter, event) in events.iter().enumerate() {
                let selection = Selection::new(event.selector().into());
                let (to_go, period) = (1, 1);
                let watch = Watch { selection, to_go, period };
                machine.core.select(counter, selection);
                machine.core.watch(counter, Some(watch));
            }
            (0..5).for_each(|_| _ = machine.run());
            let seen = machine.core.sink();
            let mut since_restart = usize::MAX;
            for ((_, record), detail) in seen.commits.iter().zip(&seen.details) {
                since_restart = since_restart.saturating_add(1);
                let raw = seen.encodings[record.inst.0 as usize];
                let left = Left {
                    record,
                    follows_restart: since_restart <= WIDTH,
                    detail,
                    class: isa::decode(raw).class,
                };
                for (counter, event) in events.iter().enumerate() {
                    let bit = 1 << (counter + FIRST);
                    // Cycles that a flush costs name the last instruction that restarted fetch.
                    let named = match event {
                        PerfEvent::CyclesFlushed => detail.overflows_before & bit != 0,
                        _ => detail.overflows & bit != 0,
                    };
                    let Some(incurs) = left.incurs(*event) else {
                        continue;
                    };
                    // A flush need not cost a cycle, and the last try at a device's register is the one that counts.
                    let must = !matches!(event, PerfEvent::CyclesFlushed);
                    let right = named == incurs || (!named && !must);
                    assert!(right, "{event:?}, seed {seed}: {record:?} {detail:?}");
                    *judged.entry(event.row().name).or_default() += u64::from(named);
                }
                if record.redirect() != Redirect::None {
                    since_restart = 0;
                }
            }
        }
    }
    let never: Vec<_> = judged.iter().filter(|(_, times)| **times == 0).collect();
    assert!(judged.len() >= 20 && never.len() <= 3, "{judged:?}");
}
