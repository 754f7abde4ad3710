//! Wrong paths: what fetch does after a branch or jump that is mispredicted, until that is known.
//!
//! Followed with a predictor that learns at commit alone, as only then the path knows how long that takes. A wrong path leaves behind what
//! hardware does not repair: return addresses that it wrote below the one on top of the return stack (`ifu/bpd/ras.scala`), and the
//! fetch targets over which the repair of predictors goes before training goes on (`ifu/fetch-target-queue.scala:236`). Code is known
//! from when it was executed first on, by the address space; a wrong path ends where it is not known.
//!
//! Not modelled: accesses of wrong paths to the instruction cache, the ITLB and data; their counts in the loop predictor; that a full fetch
//! buffer holds them back, where the queue of fetch targets would not yet.

use std::collections::HashMap;

use isa::{StaticId, StaticInst};

use super::fetch::Fetch;
use super::position::Position;
use super::role::Role;
use crate::predict::{FetchSlot, History, Outcome};

/// Code that was announced.
#[derive(Clone, Default)]
pub(super) struct Code {
    instructions: HashMap<(u32, u64), Known>,
    /// By number of an instruction: its address space.
    spaces: Vec<u32>,
}

/// What fetch knows of an instruction.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub role: Role,
    pub len: u8,
    /// Where a direct branch or jump goes.
    pub target: u64,
}

impl Code {
    /// Announces an instruction.
    pub(super) fn define(&mut self, inst: &StaticInst, role: Role) {
        let index = inst.id.0 as usize;
        if index >= self.spaces.len() {
            self.spaces.resize(index + 1, 0);
        }
        self.spaces[index] = inst.space;
        let known = Known { role, len: inst.inst.len, target: inst.direct_target().unwrap_or(0) };
        self.instructions.insert((inst.space, inst.pc), known);
    }

    /// Returns the address space of an instruction.
    pub(super) fn space(&self, id: StaticId) -> u32 {
        self.spaces.get(id.0 as usize).copied().unwrap_or(0)
    }

    /// Returns the instruction at an address.
    pub(super) fn at(&self, space: u32, pc: u64) -> Option<Known> {
        self.instructions.get(&(space, pc)).copied()
    }
}

/// Whether the branch or jump that was followed last is mispredicted, and how.
#[derive(Clone, Copy, Default)]
pub(super) enum Wrong {
    #[default]
    No,
    /// Only the pipeline knows whether, and nobody where a wrong path would go.
    Unknown,
    /// A branch or return is; of an indirect jump the pipeline knows whether it is.
    Maybe(Mispredicted),
}

/// A mispredicted branch or jump, and fetch as it was before.
#[derive(Clone, Copy)]
pub(super) struct Mispredicted {
    pub pc: u64,
    pub bank: u8,
    pub predicted: Predicted,
    pub position: Position,
    pub seen: u8,
    pub history: History,
}

/// What a branch or jump was mispredicted to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Predicted {
    Taken,
    NotTaken,
    /// An indirect jump to an address, which changes the return stack by so many entries.
    Jump(u64, isize),
}

/// Cycles from the fetch of a packet until it writes the return stack, and until it has its fetch target.
const F3: u64 = 3;
const F4: u64 = 4;
/// Cycles to the next packet that follows in memory, that the BTB leads to, and that only F3 knows.
const NEXT: u64 = 1;
const BY_BTB: u64 = 2;
const BY_F3: u64 = 3;

impl Fetch {
    /// Returns whether the branch or jump that was followed last may be mispredicted.
    pub(super) fn may_be_wrong(&self) -> bool {
        !matches!(self.wrong, Wrong::No)
    }

    /// Notes that it is not.
    pub(super) fn is_right(&mut self) {
        self.wrong = Wrong::No;
    }

    /// Returns how many packets a wrong path has that goes where no code is known, and is known to be wrong after so many cycles: one a cycle.
    fn unknown_packets(&self, cycles: u64) -> u64 {
        cycles.saturating_sub(F4).min(self.most_targets)
    }

    /// Follows the wrong path after the instruction that was noted, until `cycles` after the fetch of its packet; returns over how many packets the
    /// repair of predictors goes.
    pub(super) fn wrong_path(&mut self, code: &Code, space: u32, cycles: u64) -> u64 {
        let fetched = |f0: u64| f0 + F4 <= cycles;
        let Wrong::Maybe(wrong) = std::mem::take(&mut self.wrong) else {
            return self.unknown_packets(cycles);
        };
        let Some(branch) = code.at(space, wrong.pc) else {
            return self.unknown_packets(cycles);
        };
        let (position, seen, history) = (self.position, self.seen, self.history);
        let pushed = match wrong.predicted {
            Predicted::Jump(_, pushed) => pushed,
            _ => 0,
        };
        let returns = self.returns.saved(pushed);
        (self.position, self.seen, self.history) = (wrong.position, wrong.seen, wrong.history);
        let packet_start = wrong.position.start;
        let after = wrong.pc.wrapping_add(u64::from(branch.len));
        let mut distance = BY_BTB;
        let mut pc = match wrong.predicted {
            Predicted::NotTaken => {
                self.seen |= 1 << wrong.bank;
                after
            }
            Predicted::Taken => {
                self.close(wrong.bank, Outcome::Taken);
                branch.target
            }
            Predicted::Jump(address, _) => {
                self.close(wrong.bank, Outcome::None);
                address
            }
        };
        let (mut f0, mut packets, mut repaired) = (0, 0, None);
        let mut room = self.position.room.saturating_sub(1);
        while let Some(inst) = code.at(space, pc) {
            if super::over(pc, inst.len, self.position.limit, room) {
                if self.position.limit != 0 {
                    self.run_on(self.position);
                    distance = NEXT;
                }
                f0 += distance;
                if !fetched(f0) || packets == self.most_targets {
                    break;
                }
                self.position.start_packet(pc, inst.len, self.packet_bytes);
                self.seen = 0;
                room = self.packet_insts;
                packets += 1;
                // Where a packet comes again that began as that of the misprediction, all is repaired.
                if self.position.start == packet_start && repaired.is_none() {
                    repaired = Some(packets + 1);
                }
            }
            room = room.saturating_sub(1);
            let after = pc.wrapping_add(u64::from(inst.len));
            let second = pc & !(self.packet_bytes / 2 - 1) > self.position.start;
            let (at, bank) = (FetchSlot::new(pc.max(self.position.start)), u8::from(second));
            let goes = match inst.role {
                Role::Branch | Role::Foreseen => {
                    let history = self.history.seen(bank.into());
                    match self.predictor.expects(at, history) {
                        true => Some((inst.target, Outcome::Taken)),
                        false => {
                            self.seen |= 1 << bank;
                            None
                        }
                    }
                }
                Role::Direct | Role::DirectCall => Some((inst.target, Outcome::None)),
                Role::Return => Some((self.returns.ret().0, Outcome::None)),
                Role::Indirect | Role::IndirectCall => {
                    match self.predictor.expects_target(at, pc) {
                        Some(target) => Some((target, Outcome::None)),
                        None => break,
                    }
                }
                _ => None,
            };
            if matches!(inst.role, Role::DirectCall | Role::IndirectCall) && f0 + F3 < cycles {
                self.returns.call(after);
            }
            pc = match goes {
                None => after,
                Some((target, outcome)) => {
                    distance = match self.predictor.expects_target(at, pc) == Some(target) {
                        true => BY_BTB,
                        false => BY_F3,
                    };
                    self.close(bank, outcome);
                    target
                }
            };
        }
        self.returns.repair(returns);
        (self.position, self.seen, self.history) = (position, seen, history);
        repaired.unwrap_or(packets).min(packets)
    }
}

#[cfg(test)]
mod tests {
    use isa::Privilege;

    use super::*;
    use crate::Preset;
    use crate::path::Path;

    #[test]
    fn a_wrong_path_leaves_its_return_addresses_below_the_top() {
        const BRANCH: u32 = 0x0000_0463;
        const CALL: u32 = 0x0100_00ef;
        const RETURN: u32 = 0x0000_8067;
        // A branch that goes over a return; two more returns, and a call. All are in packets of their own.
        let code =
            [(0x100, BRANCH), (0x104, RETURN), (0x108, 0x13), (0x200, RETURN), (0x300, CALL)];
        let mut preset = Preset::load("boom-4w").unwrap();
        preset.predictor.at_commit = true;
        let mut path = Path::new(&preset);
        for (n, (pc, encoding)) in code.into_iter().enumerate() {
            let (id, inst) = (StaticId(n as u32), isa::decode(encoding));
            path.define(&StaticInst { id, space: 1, pc, inst, privilege: Privilege::User });
        }
        let after_wrong_path = |path: &mut Path, cycles: Option<u64>| {
            let fetch = path.fetch_mut();
            fetch.position = Position::default();
            for address in [0x500, 0x300, 0x200] {
                fetch.returns.call(address);
            }
            fetch.packet(0x100, 4, 0);
            fetch.mispredicted(0x100, 0, Predicted::NotTaken);
            let packets = cycles.map(|cycles| path.wrong_path(StaticId(0), cycles));
            let fetch = path.fetch_mut();
            (packets, [(); 3].map(|()| fetch.returns.ret().0))
        };
        assert_eq!(after_wrong_path(&mut path, None).1, [0x200, 0x300, 0x500]);
        // The return is in the branch's packet, and leads to a packet with one, that to the call.
        let (packets, popped) = after_wrong_path(&mut path, Some(30));
        assert_eq!((packets, popped), (Some(2), [0x200, 0x304, 0x500]));
        // This time the branch is known to be mispredicted too early for that.
        let (packets, popped) = after_wrong_path(&mut path, Some(7));
        assert_eq!((packets, popped), (Some(1), [0x200, 0x300, 0x500]));
    }
}
