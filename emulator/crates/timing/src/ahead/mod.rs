//! The hart executes ahead of its core's pipeline, which may have a thread of its own.
//!
//! The hart's side is an [`Ahead`]: it takes the calls that a [`Core`] takes, has the core's path follow the program,
//! and gives the pipeline what it has to know, a [`Batch`](batch::Batch) at a time. The hart needs the core's cycle
//! only for what depends on it: counters, device registers, `wfi`, and interrupts. It waits for the core at the first
//! three, and where the next interrupt, device event or TIP sample might fall within the batches that the core has not
//! done yet ([`cycle_bound`]). Nothing that the hart sees depends on how quick a thread is, or on whether there are two: with
//! one, a batch is timed when it is given.
//!
//! Not used with several harts, which take turns of a few cycles.

mod batch;
mod cycle_bound;
mod hart;
mod link;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use commit_trace::CommitSink;

use crate::Core;
pub use hart::{Ahead, CoreWiring, SpareWork};
use link::Link;

/// Calls `run` with a timing model that stands for `core`, on this thread.
pub fn run_ahead<S: CommitSink, R>(
    core: &mut Core<S>,
    wiring: CoreWiring<'_>,
    run: impl FnOnce(&mut Ahead<'_>) -> R,
) -> R {
    let cycle = core.cycle();
    let Core { path, pipeline, tap, .. } = core;
    let mut here = link::SameThread::new(pipeline);
    let mut ahead = Ahead::new(path, tap.as_deref_mut(), &mut here, wiring, cycle);
    let result = run(&mut ahead);
    ahead.finish();
    result
}

/// Calls `run` with a timing model that stands for `core`, whose pipeline runs on a thread of its own meanwhile; that
/// thread calls `starts` first. The results are those of [`run_ahead`].
///
/// # Panics
/// If `run` or the core panics.
pub fn run_apart<S: CommitSink + Send, R>(
    core: &mut Core<S>,
    wiring: CoreWiring<'_>,
    starts: fn(),
    run: impl FnOnce(&mut Ahead<'_>) -> R,
) -> R {
    let cycle = core.cycle();
    let Core { path, pipeline, tap, .. } = core;
    let link = Link::new(thread::current(), wiring.spare_work);
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("core".to_owned()).spawn_scoped(scope, || {
            starts();
            link::serve(pipeline, &link);
        });
        let worker = match worker {
            Ok(worker) => worker,
            Err(error) => panic!("a thread for the timing core: {error}"),
        };
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut sender = link.sender(worker.thread().clone());
            let mut ahead = Ahead::new(path, tap.as_deref_mut(), &mut sender, wiring, cycle);
            let result = run(&mut ahead);
            ahead.finish();
            result
        }));
        match (worker.join(), result) {
            (Err(panic), _) | (Ok(()), Err(panic)) => resume_unwind(panic),
            (Ok(()), Ok(result)) => result,
        }
    })
}
