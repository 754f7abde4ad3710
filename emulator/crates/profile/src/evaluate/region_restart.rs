//! What happens when the region restarts: a program's own marks narrow the region, which was the whole command.

use super::Run;
use super::details::Details;
use super::parts::Parts;
use crate::oracle::Oracle;
use crate::view::View;
use crate::{Profile, Sampler};

/// What an evaluator counts beside profiles: new views are set up with it.
#[derive(Clone, Copy, Default)]
pub(super) struct RequestedDetail {
    pub samples: bool,
    /// Samplers count by subsample of a sampled region.
    pub subsamples: bool,
    /// Commit width of the core, if [`super::Evaluator::in_detail`] was called.
    pub width: Option<u32>,
}

/// A view for each filter of the samplers.
pub(super) fn views(samplers: &[Sampler]) -> Vec<View> {
    let mut views: Vec<View> = Vec::new();
    for (position, sampler) in samplers.iter().enumerate() {
        let known = views.iter().position(|view| *view.filter() == sampler.filter);
        let at = known.unwrap_or_else(|| {
            views.push(View::new(sampler.filter.clone()));
            views.len() - 1
        });
        views[at].add(position, sampler.clone());
    }
    views
}

/// Returns the profile of marked cycles since the region restarted: `marked` is the profile of all marked cycles, `before`
/// the profile of those until then.
pub(super) fn since_restart(marked: Profile, before: Option<Profile>) -> Profile {
    let Some(before) = before else {
        return marked;
    };
    let mut since = Profile::new(marked.units_per_cycle());
    for (process, inst, units) in marked.iter() {
        let units = units - before.weight(process, inst);
        if units > 0 {
            since.add(process, inst, units);
        }
    }
    since
}

impl Run {
    /// Forgets all counts of the region so far. Processes, instructions and calls stay known.
    pub(super) fn restart_region(&mut self) {
        self.marked = true;
        self.scripts.interrupt();
        for (view, fresh) in self.views.iter_mut().zip(views(&self.samplers)) {
            if self.only_marked || view.filter().marked {
                *view = fresh;
                self.requested.of(view, self.stacks.is_some());
            }
        }
        if !self.only_marked {
            if self.by_mark {
                let oracle = match &self.details {
                    Some(details) => details.over_time.so_far(&self.oracle),
                    None => self.oracle.clone(),
                };
                self.marked_before = Some(oracle.finish().marked);
                self.parts.restart_region();
            }
            return;
        }
        self.profiling = true;
        self.region_restarts = self.region_restarts.saturating_add(1);
        (self.profiled, self.idle, self.instructions, self.traps) = (0, 0, 0, 0);
        (self.counted, self.weighed, self.weighed_from) = (0, 0, 0);
        self.others.clear();
        self.scripts.restart_region();
        self.context.forget_cycles();
        self.parts = Parts::new(self.views.iter().map(View::filter));
        self.oracle = Oracle::new();
        if let Some(subsamples) = &mut self.subsamples {
            **subsamples = subsamples.emptied();
            subsamples.begin_unit(0, self.process);
            self.units = 1;
        }
        if let Some(width) = self.requested.width {
            self.oracle.count_commits();
            let mut details = Details::new(width);
            details.select(self.process, self.busy);
            self.details = Some(Box::new(details));
        }
        if let Some(stacks) = &mut self.stacks {
            stacks.counts.take();
        }
    }
}

impl RequestedDetail {
    fn of(self, view: &mut View, call_stacks: bool) {
        if self.samples {
            view.keep_samples();
        }
        if self.subsamples {
            view.by_subsample();
        }
        if self.width.is_some() {
            view.in_detail();
        }
        if call_stacks {
            view.with_call_stacks();
        }
    }
}
