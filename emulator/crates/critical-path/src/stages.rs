//! The life of an instruction as a picture shows it: stages one after the other, with what it waited for in each.

use isa::InstClass;
use serde::Serialize;

use crate::{Cause, Graph};

/// A stage in which an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The instruction's packet is fetched.
    Fetch,
    /// The instruction is in the fetch buffer.
    Buffer,
    /// The instruction is decoded, and not yet dispatched.
    Dispatch,
    /// The instruction is in the issue queue.
    Queue,
    /// The instruction has issued, and executes.
    Execute,
    /// The instruction could leave the ROB, but older ones have not.
    Commit,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Self; 6] =
        [Self::Fetch, Self::Buffer, Self::Dispatch, Self::Queue, Self::Execute, Self::Commit];
}

/// Consecutive cycles of an instruction in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The stage.
    pub stage: Stage,
    /// First cycle.
    pub from: u64,
    /// First cycle after the segment.
    pub to: u64,
    /// What the instruction waited for in the stage, or what took so long.
    pub cause: Option<Cause>,
}

impl Graph<'_> {
    /// Returns the stages of a row, without a gap.
    pub fn segments(&self, at: usize) -> Vec<Segment> {
        let row = self.row(at);
        let packet = self.packet(at).map(|start| self.row(start));
        let asked = packet.map_or(row.decode, |start| start.asked.min(row.decode));
        let mut segments = Vec::new();
        let mut from = asked;
        let mut until = |stage, to: u64, cause| {
            let to = to.clamp(from, row.commit.max(from));
            if to != from {
                segments.push(Segment { stage, from, to, cause });
            }
            from = to;
        };
        let fetch = self.redirected_by(at).map(|(_, cause)| cause).or_else(|| self.fetch_miss(at));
        until(Stage::Fetch, packet.map_or(asked, |start| start.delivered), fetch);
        until(Stage::Buffer, row.decode, None);
        let wait = Cause::dispatch(row.wait);
        let wait = (wait != Cause::Width).then_some(wait);
        until(Stage::Dispatch, row.dispatch, wait);
        if row.issue != 0 {
            let ready = self.ready(at).min(row.issue);
            until(
                Stage::Queue,
                ready,
                self.last_operand(at).and_then(|(producer, wake)| {
                    (wake > row.dispatch + 1).then(|| self.latency(producer))
                }),
            );
            let holder = self.port_holder(at).map_or(Cause::Port, |(_, cause)| cause);
            until(Stage::Queue, row.issue, Some(holder));
        }
        until(Stage::Execute, row.complete, Some(self.latency(at)));
        until(Stage::Commit, row.commit, None);
        segments
    }

    fn latency(&self, at: usize) -> Cause {
        let row = self.row(at);
        if 2 * row.translating > row.complete.saturating_sub(row.issue) {
            return Cause::DataTlb;
        }
        let class = self.inst(at).map_or(InstClass::IntAlu, |inst| inst.class);
        Cause::latency(class, row)
    }
}
