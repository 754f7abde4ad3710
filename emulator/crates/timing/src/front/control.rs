//! Branches and jumps: what the front end made of them, and where fetch goes on.

use super::FrontEnd;
use crate::facts::Link;
use crate::predict::{Guess, Moment, Outcome, Place, Stage};

/// A branch's commit to the predictor's training: the target queue's entry is read when the next packet commits,
/// and passes the predictor's update stages (`ifu/fetch-target-queue.scala`).
const TRAINS: u64 = 4;

/// An executed jump.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jump {
    pub pc: u64,
    pub len: u64,
    /// It is direct.
    pub direct: bool,
    pub link: Link,
    /// Where it went.
    pub next: u64,
}

impl FrontEnd {
    /// Where a branch stands, and in which bank of its packet.
    #[inline(always)]
    fn place(&self, pc: u64) -> (Place, usize) {
        let second = pc & !(self.packet_bytes / 2 - 1) > self.start;
        (Place::new(pc.max(self.start)), usize::from(second))
    }

    /// When a branch of this packet is predicted and trained.
    #[inline(always)]
    fn moment(&self, committed: u64) -> Moment {
        Moment {
            predicted: self.f0 + 1,
            trained: committed + TRAINS,
        }
    }

    /// Predicts the branch at `pc`, fetched last, and trains. It went to `next`. If it was mispredicted fetch
    /// restarts in cycle `resolved`. It
    /// commits in cycle `committed`.
    #[inline(always)]
    pub fn branch(
        &mut self,
        pc: u64,
        taken: bool,
        next: u64,
        resolved: u64,
        committed: u64,
    ) -> bool {
        let (place, bank) = self.place(pc);
        let history = self.history.seen(bank);
        let guess = self
            .predictor
            .branch(place, history, taken, next, self.moment(committed));
        if guess.f3_taken != taken {
            let outcome = if taken {
                Outcome::Taken
            } else {
                Outcome::NotTaken
            };
            self.close(bank, outcome);
            self.redirect(resolved);
            return true;
        }
        if taken {
            self.leave(&guess, false);
            self.close(bank, Outcome::Taken);
        } else {
            self.pass(&guess, bank);
        }
        false
    }

    /// The same for a jump.
    #[inline(always)]
    pub fn jump(&mut self, jump: &Jump, resolved: u64, committed: u64) -> bool {
        let (place, bank) = self.place(jump.pc);
        let guess = self
            .predictor
            .jump(place, jump.next, self.moment(committed));
        // F3 knows a direct jump's target, takes a return's from the stack, any other from the buffers.
        let right = match jump.link {
            _ if jump.direct => true,
            Link::Return => self.returns.ret() == jump.next,
            _ => guess.f2.target,
        };
        if jump.link == Link::Call {
            self.returns.call(jump.pc.wrapping_add(jump.len));
        }
        if right {
            // A stage that knows nothing fetches on, which is right for a jump to the next packet.
            self.leave(&guess, jump.next == self.end);
        }
        self.close(bank, Outcome::None);
        if !right {
            self.redirect(resolved);
        }
        !right
    }

    /// A taken branch or jump ends the packet; how soon the next one starts depends on which stage knew.
    #[inline(always)]
    fn leave(&mut self, guess: &Guess, falls: bool) {
        let agrees = |stage: Stage| if stage.leaves { stage.right } else { falls };
        let distance = self.view.distance(agrees(guess.f1), agrees(guess.f2));
        self.count(distance);
        self.next_f0 = self.f0 + distance;
    }

    /// A branch that is not taken.
    #[inline(always)]
    fn pass(&mut self, guess: &Guess, bank: usize) {
        let bit = |known: bool| u8::from(known) << bank;
        let view = &mut self.view;
        view.seen3 |= bit(true);
        view.seen1 |= bit(guess.f1.sees);
        view.seen2 |= bit(guess.f2.sees);
        view.left1 |= guess.f1.leaves;
        view.left2 |= guess.f2.leaves;
    }

    /// The packet's history, with what its last instruction did.
    #[inline(always)]
    fn close(&mut self, bank: usize, last: Outcome) {
        let earlier = |b: u8| match self.view.seen3 >> b & 1 {
            0 => Outcome::None,
            _ => Outcome::NotTaken,
        };
        let in_bank = |b: u8| {
            if last == Outcome::None {
                earlier(b)
            } else {
                last
            }
        };
        let single = bank == 0;
        let (first, second) = if single {
            (in_bank(0), Outcome::None)
        } else {
            (earlier(0), in_bank(1))
        };
        self.history = self.history.after(first, second, single);
        self.close_packet();
    }
}
