//! How an evaluation takes the stream: span by span or block by block.

use super::*;
use crate::scripts::{MIN_KIND, Profiled};

impl SpanSink for Run {
    #[inline(always)]
    fn ahead(&mut self, ahead: &Ahead<'_>) -> Take {
        if !(self.profiling && self.by_blocks) {
            return Take::Spans(usize::MAX);
        }
        // A sampler waits for a span, or may name an instruction from before the stream's start.
        if self.next_look == 0 || self.last.is_none() {
            return Take::Spans(1);
        }
        let block = match Block::find(ahead) {
            Ok(block) => block,
            Err(records) => return Take::Spans(records),
        };
        if self.by_privilege && !self.is_of_one_privilege(&block) {
            return Take::Spans(block.records.len());
        }
        if let Some(spin_loops) = &mut self.spin_loops
            && spin_loops.may_spin(block.records)
        {
            return Take::Spans(block.records.len());
        }
        if let Some(details) = &self.details
            && !details.slots.is_in_window(&block)
        {
            return Take::Spans(block.records.len());
        }
        self.parts.block(&block);
        if let Some(subsamples) = &mut self.subsamples {
            subsamples.block(&block);
            subsamples.commit(block.records.len() as u64);
        }
        let (details, static_info) = (&mut self.details, &self.static_info);
        let stalled = self.oracle.block(&block, |span| {
            if let Some(details) = details {
                details.waits(span, static_info);
            }
        });
        if let Some(details) = details {
            details.block(&block, &stalled, static_info);
        }
        let (records, cycles) = (block.records.len(), block.cycles);
        let end = self.profiled + cycles;
        if end >= self.next_due {
            self.sample_block(&block);
        }
        self.profiled = end;
        self.last = block.records.last().copied();
        self.instructions += records as u64;
        Take::Whole { records, cycles }
    }

    // Called for every span: inlining makes the evaluation faster by a seventh (`benches/replay.rs`).
    #[inline(always)]
    fn span(&mut self, span: &Span<'_>) {
        if let Some(stacks) = &mut self.stacks {
            stacks.calls.span(span, &self.static_info);
        }
        if self.profiling {
            if span.state == State::Idle {
                self.idle += span.cycles;
                return;
            }
            if let Some(details) = &mut self.details
                && details.span(span, &self.static_info)
            {
                self.end_bin();
            }
            if let (Some(spin_loops), Some(details)) = (&mut self.spin_loops, &mut self.details)
                && spin_loops.is_spinning(span)
            {
                details.spinning.span(span);
            }
            self.oracle.span(span);
            self.parts.span(span);
            if let Some(subsamples) = &mut self.subsamples {
                subsamples.span(span);
            }
            if let Some(stacks) = &mut self.stacks {
                stacks.charge(span, self.process);
            }
            if self.by_privilege
                && let Some(record) = span.records.first()
                && let privilege = self.privileges[record.inst.0 as usize]
                && privilege != self.privilege
            {
                self.change_privilege(privilege);
            }
            self.pass(span);
            if span.state == State::Computing {
                self.instructions += span.records.len() as u64;
                if let Some(subsamples) = &mut self.subsamples {
                    subsamples.commit(span.records.len() as u64);
                }
            }
        } else if span.state == State::Computing {
            self.last = span.records.last().copied();
        }
    }

    fn trap(&mut self, commit: u64, record: &CommitRecord) {
        if let Some(stacks) = &mut self.stacks {
            stacks.calls.trap(commit, record, &self.static_info);
        }
        if !self.profiling {
            return;
        }
        self.traps += u64::from(!record.tea().contains(TeaEvents::FL_MO));
        if let Some(details) = &mut self.details {
            details.slots.next(record, commit);
        }
        if self.next_due == 0 {
            let execution =
                execution_context(self.process, &self.stacks, self.weight, &self.subsamples);
            let before = commit - u64::from(record.commit_delta);
            for view in &mut self.views {
                view.records(before, std::slice::from_ref(record), execution);
            }
            self.schedule();
        }
    }

    fn static_info(&mut self, cycle: u64, static_info: &StaticInfo) {
        self.static_info.push(*static_info);
        self.privileges.push(static_info.privilege);
        self.first_use.push(cycle);
        if let Some(spin_loops) = &mut self.spin_loops {
            spin_loops.define(static_info);
        }
    }

    fn event(&mut self, cycle: u64, event: &Event) {
        if let Event::SideBand { kind, bytes } = event
            && let Some(busy) = BusyHarts::parse(*kind, bytes)
        {
            self.busy = busy;
            if let Some(details) = &mut self.details {
                details.shared.select(self.process, busy);
            }
            return;
        }
        match event {
            Event::SideBand { kind, bytes } if *kind >= MIN_KIND => {
                let profiled = self
                    .profiling
                    .then_some(Profiled { cycles: self.profiled, instructions: self.instructions });
                let weight = self.weight as f64;
                self.scripts.record((*kind, bytes), self.process, profiled, weight);
                return;
            }
            Event::SideBand { kind, bytes } => {
                self.scripts.interrupt();
                self.count_thread();
                if let Some(stacks) = &self.stacks {
                    self.context.set_kernel_entry(stacks.calls.kernel_entry());
                }
                self.context.record(cycle, *kind, bytes);
                let before = std::mem::replace(&mut self.process, self.context.current());
                if before != self.process {
                    self.inactive.stop(before, cycle);
                }
                if let Some(ended) = self.context.take_ended_process() {
                    self.inactive.end(ended);
                }
                if let Some(cold) =
                    self.inactive.look(self.process, cycle).filter(|cold| !cold.is_empty())
                {
                    self.pack_cold(&cold);
                }
                if let Some(stacks) = &mut self.stacks {
                    if let Some(new) = self.context.take_forked() {
                        stacks.calls.fork(new.parent, new.tid, new.is_thread);
                    }
                    let thread = self.context.thread();
                    stacks.calls.select(self.process, thread, self.context.tid());
                    if let Some(tid) = self.context.take_ended() {
                        stacks.calls.end(tid);
                    }
                }
                if let Some(details) = &mut self.details {
                    details.select(self.process, self.busy);
                }
            }
            Event::RegionAnew => {
                self.stretches.restart_region(cycle);
                self.restart_region();
            }
            Event::Region(inside) => {
                self.scripts.interrupt();
                let was_marked = std::mem::replace(&mut self.marked, *inside);
                self.stretches.mark(cycle, *inside);
                if let Some(subsamples) =
                    self.subsamples.as_mut().filter(|_| *inside && !was_marked)
                {
                    subsamples.begin_unit(self.units, self.process);
                    self.units += 1;
                }
                if self.only_marked {
                    self.profiling = *inside;
                    if !inside {
                        self.drop_pending();
                        if let Some(details) = &mut self.details {
                            details.slots.close();
                        }
                        self.end_unit();
                    }
                }
            }
            Event::Weight(weight) => self.weigh(u64::from(*weight)),
            Event::Privilege(_) | Event::Idle { .. } | Event::End => return,
        }
        let marked = self.by_mark && self.marked;
        self.oracle.select(self.process, marked);
        let thread = &self.context.threads()[self.context.thread().0 as usize];
        if let Some(subsamples) = &mut self.subsamples {
            subsamples.select(self.process);
        }
        self.parts.select(thread.name(), self.process, marked);
        self.enter();
    }
}
