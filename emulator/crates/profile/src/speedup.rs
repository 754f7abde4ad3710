//! Speed-up stacks: where the time of all harts goes, in hart-cycles (Eyerman, Du Bois and Eeckhout, "Speedup stacks", ISPASS 2012).
//!
//! The paper estimates its components by counters in hardware. Here they are the Oracle's cycles, the loops that only wait
//! ([`crate::spinning`]), and the guest kernel's own records of its scheduler: each cycle of each hart is in one component, and what these
//! sources do not tell apart is one component.

use std::collections::HashMap;

use commit_trace::InstId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::waits::IdleHarts;
use crate::{Component, Evaluation, ProcessId, ThreadId, command_name};

/// What a cycle of a hart is spent on.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum SpeedupComponent {
    /// User mode: instructions that commit, and all stalls but those below.
    Base = 0,
    /// User mode, stalled on a load that the last-level cache serves.
    SharedCache,
    /// User mode, stalled on a load or an atomic that memory serves, queues there included.
    Memory,
    /// User mode, stalled on a load or an atomic whose line another hart's cache supplied or had to give up.
    OtherHarts,
    /// User mode, stalled on a store or by a full store queue. Whether stores wait for other harts, caches or memory is not told apart.
    Stores,
    /// User mode, in a loop that does nothing but wait for what another hart writes: a spin lock, a flag, a barrier. All stalls in the loop
    /// are here, also those on the line that another hart writes.
    Spinning,
    /// The kernel and the firmware, for whatever process: system calls, faults, interrupts, the scheduler, all with their stalls.
    Kernel,
    /// The kernel and the firmware, in a loop that does nothing but wait: spin locks, answers of other harts, registers of devices.
    KernelSpinning,
    /// The hart is idle, though a thread of the program is ready to run.
    Ready,
    /// The hart is idle, and a thread of the program waits for a lock, a condition or a barrier (a futex of the program).
    Locks,
    /// The hart is idle, and a thread of the program waits for anything else: sleep, input and output, a page.
    OtherWaits,
    /// The hart is idle for want of threads, and the program is in a serial part: one of its threads runs alone
    /// ([`IdleHarts::serial`]).
    Serial,
    /// The hart is idle for want of threads, and the program's threads have uneven shares of the work: fewer run than there are harts, or
    /// one runs for whose end others wait ([`IdleHarts::imbalance`]).
    Imbalance,
    /// The hart is idle for want of threads, and whether in a serial part or by imbalance is not known ([`IdleHarts::no_thread`]).
    NoThread,
    /// The hart is idle, and the guest's kernel does not tell why.
    Idle,
}

impl SpeedupComponent {
    /// Number of components.
    pub const COUNT: usize = Self::ALL.len();

    /// All components, in numeric order.
    pub const ALL: [Self; 15] = [
        Self::Base,
        Self::SharedCache,
        Self::Memory,
        Self::OtherHarts,
        Self::Stores,
        Self::Spinning,
        Self::Kernel,
        Self::KernelSpinning,
        Self::Ready,
        Self::Locks,
        Self::OtherWaits,
        Self::Serial,
        Self::Imbalance,
        Self::NoThread,
        Self::Idle,
    ];

    /// Returns the component of a cycle that a program spends in user mode.
    fn of_user(component: Component) -> Self {
        match component {
            Component::LoadLlc => Self::SharedCache,
            Component::LoadDram => Self::Memory,
            Component::LoadPeer => Self::OtherHarts,
            Component::Store | Component::FrontEndStores => Self::Stores,
            _ => Self::Base,
        }
    }
}

/// Hart-cycles of the region by component, in the order of [`SpeedupComponent::ALL`].
pub type HartCycles = [u64; SpeedupComponent::COUNT];

/// The kernel's number of the idle threads' process.
const IDLE_PID: u32 = 0;
/// Privilege of user mode ([`commit_trace::StaticInfo::privilege`]).
const USER: u8 = 0;
/// Least share of all cycles in user mode of the commands whose threads an idle hart may stand for.
const NOTICEABLE: f64 = 0.05;

impl Evaluation {
    /// Returns what the cycles of all harts were spent on. The evaluation has to be of all `harts` of the run ([`Evaluation::merged`]).
    ///
    /// The components of a single hart add up to [`Evaluation::cycles`]. The components of several harts add up to the region's cycles
    /// times the number of harts: a hart that sleeps at a mark has it where it fell asleep, so that idle cycles of its own evaluation
    /// may be of before the region. A mark comes between the turns of harts, which are some hundred cycles apart: if all harts are busy
    /// all the time, their own cycles may be a little more, and are the sum.
    pub fn hart_cycles(&self, harts: usize) -> HartCycles {
        let units_per_cycle = u128::from(self.oracle.units_per_cycle().max(1));
        let mut units = [0_u128; SpeedupComponent::COUNT];
        let mut idle = match (harts, u128::from(self.scheduler.region_cycles())) {
            (..=1, _) | (_, 0) => u128::from(self.idle) * units_per_cycle,
            (harts, of_region) => {
                let all = of_region * harts as u128 * units_per_cycle;
                all.saturating_sub(u128::from(self.oracle.total()))
            }
        };
        let mut user = vec![0_u128; self.processes.len()];
        let is_user = |inst: InstId| {
            self.static_info.get(inst.0 as usize).is_some_and(|info| info.privilege == USER)
        };
        for (process, inst, stack) in self.stacks.iter() {
            if self.is_idle_thread(process) {
                idle += u128::from(stack.total());
                continue;
            }
            if !is_user(inst) {
                units[SpeedupComponent::Kernel as usize] += u128::from(stack.total());
                continue;
            }
            if let Some(user) = user.get_mut(process.0 as usize) {
                *user += u128::from(stack.total());
            }
            for component in Component::ALL {
                let own = SpeedupComponent::of_user(component);
                units[own as usize] += u128::from(stack[component]);
            }
        }
        for (process, inst, stack) in self.spinning.iter() {
            if self.is_idle_thread(process) {
                continue;
            }
            for component in Component::ALL {
                let (from, to) = match is_user(inst) {
                    true => (SpeedupComponent::of_user(component), SpeedupComponent::Spinning),
                    false => (SpeedupComponent::Kernel, SpeedupComponent::KernelSpinning),
                };
                // Only a damaged evaluation spins longer than it takes.
                let spun = u128::from(stack[component]).min(units[from as usize]);
                units[from as usize] -= spun;
                units[to as usize] += spun;
            }
        }
        self.deal_idle(harts, idle, units_per_cycle, &user, &mut units);
        whole_cycles(&units, units_per_cycle)
    }

    /// Returns whether a process is that of the idle threads.
    pub(crate) fn is_idle_thread(&self, process: ProcessId) -> bool {
        let process = self.processes.get(process.0 as usize);
        process.is_some_and(|process| process.pid == Some(IDLE_PID))
    }

    /// Deals the idle harts' units out by what the scheduler's records say. These say when a hart switches to its idle thread, and the
    /// Oracle says what that takes; if the Oracle has more, the rest is not known, and if it has less, each part has as much less.
    fn deal_idle(
        &self,
        harts: usize,
        idle: u128,
        units_per_cycle: u128,
        user: &[u128],
        units: &mut [u128; SpeedupComponent::COUNT],
    ) {
        let own = self.noticeable(user);
        let is_own = |thread: ThreadId| {
            let thread = self.threads.get(thread.0 as usize);
            thread.is_some_and(|thread| own.get(thread.process.0 as usize) == Some(&true))
        };
        let told = self.scheduler.idle_harts(harts, is_own).unwrap_or_default();
        let IdleHarts { ready, locks, other, serial, imbalance, no_thread } = told;
        let whole = u128::from(told.total()) * units_per_cycle;
        let mut left = idle;
        for (component, cycles) in [
            (SpeedupComponent::Ready, ready),
            (SpeedupComponent::Locks, locks),
            (SpeedupComponent::OtherWaits, other),
            (SpeedupComponent::Serial, serial),
            (SpeedupComponent::Imbalance, imbalance),
            (SpeedupComponent::NoThread, no_thread),
        ] {
            let own = u128::from(cycles) * units_per_cycle;
            let part = match whole > idle {
                true => share_of(idle, own, whole),
                false => own,
            };
            let part = part.min(left);
            units[component as usize] += part;
            left -= part;
        }
        units[SpeedupComponent::Idle as usize] += left;
    }

    /// Returns for each process whether its command has a noticeable share of the cycles in user mode.
    fn noticeable(&self, user: &[u128]) -> Vec<bool> {
        let all: u128 = user.iter().sum();
        let commands: Vec<String> =
            self.processes.iter().map(|process| command_name(self, process.id)).collect();
        let mut sums: HashMap<&str, u128> = HashMap::new();
        for (command, units) in commands.iter().zip(user) {
            *sums.entry(command).or_default() += units;
        }
        let least = NOTICEABLE * all as f64;
        commands.iter().map(|command| all > 0 && sums[&**command] as f64 >= least).collect()
    }
}

/// Returns `whole * part / of`, rounded down.
fn share_of(whole: u128, part: u128, of: u128) -> u128 {
    match whole.checked_mul(part) {
        Some(product) => product / of.max(1),
        // Only a damaged evaluation has so many cycles.
        None => (whole as f64 * (part as f64 / of.max(1) as f64)) as u128,
    }
}

/// Returns whole cycles whose sum is that of the units, rounded down: the parts with the largest remainders are rounded up.
fn whole_cycles(
    units: &[u128; SpeedupComponent::COUNT],
    units_per_cycle: u128,
) -> [u64; SpeedupComponent::COUNT] {
    let mut cycles = units.map(|units| units / units_per_cycle);
    let total: u128 = units.iter().sum::<u128>() / units_per_cycle;
    let missing = total - cycles.iter().sum::<u128>();
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(units[at] % units_per_cycle));
    for at in order.into_iter().take(missing as usize) {
        cycles[at] += 1;
    }
    cycles.map(|cycles| u64::try_from(cycles).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
