//! A core on a thread of its own does what it does on the hart's, and so does the hart.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::random::program;
use commit_trace::{Commit, CommitSink, Event, StaticInfo};
use devices::{Bus, Clock};
use isa::SharedCycle;
use machine::{Hart, Limit, RunExit};
use timing::{Ahead, Core, CoreWiring, Preset, run_ahead, run_apart};

/// Keeps everything; panics at a number of commits.
#[derive(Default)]
struct Records {
    commits: Vec<(u32, u64, u64, u64)>,
    events: Vec<(u64, String)>,
    defined: Vec<(u64, u32)>,
    fails_at: Option<usize>,
}

impl CommitSink for Records {
    fn commit(&mut self, c: &Commit) {
        self.commits.push((c.inst.0, c.decode, c.dispatch, c.commit));
        assert_ne!(Some(self.commits.len()), self.fails_at, "the sink fails");
    }

    fn define(&mut self, static_info: &StaticInfo) {
        self.defined.push((static_info.pc, static_info.raw));
    }

    fn event(&mut self, cycle: u64, event: Event) {
        self.events.push((cycle, format!("{event:?}")));
    }
}

/// Returns the lines of a core that says nothing.
fn nothing(never: &SharedCycle) -> CoreWiring<'_> {
    CoreWiring { quiet_until: never, raised: never, irq_at: never, spare_work: &|_| false }
}

/// Where the core runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// Together with the hart, which calls it itself.
    Together,
    /// Behind the hart, on its thread.
    Ahead,
    /// Behind the hart, on a thread of its own.
    Apart,
}

/// Executes a program, in parts if there are several limits; returns what the sink has, and what the hart.
fn run(seed: u64, preset: &Preset, way: Way, limits: &[Limit]) -> (Core<Records>, Vec<u64>) {
    let mut bus = Bus::new(16 << 20, 1, Clock::new(1_600_000_000, 10_000_000)).unwrap();
    let mut hart = Hart::new(0);
    program(seed, &mut bus, &mut hart);
    let mut core = Core::new(preset, Records::default());
    let never = SharedCycle::new(u64::MAX);
    let mut seen = Vec::new();
    for &limit in limits {
        let wiring = nothing(&never);
        let exit = match way {
            Way::Together => hart.run(&mut bus, &mut core, limit),
            Way::Ahead => run_ahead(&mut core, wiring, |ahead| hart.run(&mut bus, ahead, limit)),
            Way::Apart => {
                let run = |ahead: &mut Ahead<'_>| hart.run(&mut bus, ahead, limit);
                run_apart(&mut core, wiring, || (), run)
            }
        };
        assert_eq!(exit, RunExit::Limit);
        seen.extend((0..32).map(|register| hart.reg(register)));
        seen.extend([hart.pc(), hart.cycle(), hart.instructions()]);
    }
    (core, seen)
}

#[test]
fn random_programs_take_the_same_cycles() {
    let presets = ["boom-4w", "rtl-mega", "mega-boom"].map(|name| Preset::load(name).unwrap());
    let mut interrupts = 0;
    for seed in 0..36 {
        let preset = &presets[seed as usize % 3];
        let limits = [
            Limit::instructions(20_000),
            Limit::instructions(1),
            Limit::cycle(60_000),
            Limit::instructions(10_000),
        ];
        for way in [Way::Ahead, Way::Apart] {
            let (one, at_one) = run(seed, preset, Way::Together, &limits);
            let (two, at_two) = run(seed, preset, way, &limits);
            let [a, b] = [one.sink(), two.sink()];
            assert_eq!(a.defined, b.defined, "{seed}");
            for (n, (a, b)) in a.commits.iter().zip(&b.commits).enumerate() {
                assert_eq!(a, b, "{seed}: commit {n}");
            }
            assert_eq!(a.commits.len(), b.commits.len(), "{seed}");
            assert_eq!(a.events, b.events, "{seed}");
            assert_eq!(at_one, at_two, "{seed}");
            let [a, b] = [one.stats(), two.stats()].map(|stats| format!("{stats:?}"));
            assert_eq!(a, b, "{seed}");
            interrupts += two.stats().interrupts;
        }
    }
    assert!(interrupts > 500, "{interrupts}");
}

/// What a panic says.
fn message(run: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => (*panic.downcast_ref::<&str>().unwrap()).to_owned(),
    }
}

#[test]
fn a_panic_on_either_side_reaches_the_caller() {
    let start = |sink| {
        let mut bus = Bus::new(16 << 20, 1, Clock::default()).unwrap();
        let mut hart = Hart::new(0);
        program(1, &mut bus, &mut hart);
        (bus, hart, Core::new(&Preset::default(), sink))
    };
    let never = SharedCycle::new(u64::MAX);
    for fails_at in [1, 10, 1000] {
        let sink = Records { fails_at: Some(fails_at), ..Records::default() };
        let (mut bus, mut hart, mut core) = start(sink);
        let said = message(|| {
            run_apart(
                &mut core,
                nothing(&never),
                || (),
                |ahead| hart.run(&mut bus, ahead, Limit::instructions(100_000)),
            );
        });
        assert!(said.contains("the sink fails"), "{said}");
    }
    let (mut bus, mut hart, mut core) = start(Records::default());
    let said = message(|| {
        run_apart(
            &mut core,
            nothing(&never),
            || (),
            |ahead| {
                hart.run(&mut bus, ahead, Limit::instructions(1000));
                panic!("the hart fails");
            },
        );
    });
    assert!(said.contains("the hart fails"), "{said}");
}
