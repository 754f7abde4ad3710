//! Branches and jumps: the cycle in which the next packet is fetched.

use super::FrontEnd;
use crate::predict::{BranchOutcome, Component, Forecast, Last, Stage};

/// Cycles from a branch's commit to the micro BTB's training: the fetch target queue's entry is read when the next packet
/// commits, and passes the predictor's update stages (`ifu/fetch-target-queue.scala`).
const TRAINS: u64 = 4;

impl FrontEnd {
    /// Times fetch after the conditional branch fetched last, which commits in cycle `committed`. True if it was mispredicted:
    /// fetch restarts in cycle `resolved`.
    #[inline(always)]
    pub(crate) fn branch(&mut self, forecast: &Forecast, resolved: u64, committed: u64) -> bool {
        let taken = forecast.taken();
        let branch = BranchOutcome::branch(taken, forecast.next());
        let (f1, f2) = self.stages(forecast, &branch, committed);
        if forecast.last() == Last::Wrong {
            self.mispredicted(forecast.component(), resolved);
            return true;
        }
        if taken {
            self.leave(f1, f2, false);
        } else {
            self.pass(f1, f2, forecast.bank());
        }
        false
    }

    /// Like [`Self::branch`], for a jump.
    #[inline(always)]
    pub(crate) fn jump(&mut self, forecast: &Forecast, resolved: u64, committed: u64) -> bool {
        let jump = BranchOutcome::jump(forecast.next());
        let (f1, f2) = self.stages(forecast, &jump, committed);
        if forecast.strains_returns() {
            match forecast.overflows_returns() {
                true => self.counts.returns_full += 1,
                false => self.counts.returns_empty += 1,
            }
        }
        let right = match forecast.last() {
            Last::Right => true,
            Last::Wrong => false,
            Last::AsF2 => f2.target,
        };
        if right {
            // A stage that knows nothing fetches on, which is right for a jump to the next packet.
            self.leave(f1, f2, forecast.falls());
        } else {
            let component = match forecast.last() {
                Last::Wrong => Component::Returns,
                _ if forecast.is_known() => Component::Btb,
                _ if f1.hit => Component::MicroBtb,
                _ => Component::Unknown,
            };
            self.mispredicted(component, resolved);
        }
        !right
    }

    /// Times fetch after a branch or jump of which every stage knows where it goes.
    pub(crate) fn foreseen(&mut self, taken: bool) {
        if taken {
            let right = Stage { redirects: true, right: true, ..Stage::default() };
            self.leave(right, right, false);
        }
    }

    fn mispredicted(&mut self, component: Component, resolved: u64) {
        self.counts.misses_by[component as usize] += 1;
        self.redirect(resolved);
    }

    /// Returns the predictions of F1 and F2, and trains the micro BTB.
    #[inline(always)]
    fn stages(
        &mut self,
        forecast: &Forecast,
        branch: &BranchOutcome,
        committed: u64,
    ) -> (Stage, Stage) {
        let at = forecast.at;
        let trained = committed + TRAINS;
        let found = self.micro_btb.predict(at, self.f0 + 1);
        self.counts.btb_hits += u64::from(forecast.is_known());
        if found.same(branch) {
            self.micro_btb.confirm(at, found, branch.taken, trained);
        } else {
            self.counts.micro_btb_misses += u64::from(!found.hit);
            self.micro_btb.write(at, found, branch, trained);
        }
        let f2 = forecast.f2().unwrap_or_else(|| found.stage(branch, forecast.base()));
        (found.stage(branch, found.strong), f2)
    }

    /// Ends the packet with a taken branch or jump; the next one starts earlier the earlier the stage that predicted
    /// it.
    #[inline(always)]
    fn leave(&mut self, f1: Stage, f2: Stage, falls: bool) {
        let agrees = |stage: Stage| if stage.redirects { stage.right } else { falls };
        let (one, two) = (agrees(f1), agrees(f2));
        let distance = self.view.distance(one, two);
        self.count(distance, one, two);
        self.next_f0 = self.f0 + distance;
    }

    /// Passes a branch that is not taken: the packet goes on.
    #[inline(always)]
    fn pass(&mut self, f1: Stage, f2: Stage, bank: u8) {
        let bit = |known: bool| u8::from(known) << bank;
        let view = &mut self.view;
        view.seen3 |= bit(true);
        view.seen1 |= bit(f1.sees);
        view.seen2 |= bit(f2.sees);
        view.left1 |= f1.redirects;
        view.left2 |= f2.redirects;
    }
}
