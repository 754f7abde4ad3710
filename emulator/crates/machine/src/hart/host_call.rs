//! Calls of the host by `ebreak` between two instructions that do nothing (RISC-V Semihosting, 1.0).

use std::cell::RefCell;
use std::rc::Rc;

use devices::{Bus, Exit};
use isa::{Slot, TimingModel};

use super::{Env, Hart, InstPosition, after};

/// `slli x0, x0, 0x1f` before the `ebreak`, and `srai x0, x0, 7` after it.
const BEFORE: u64 = 0x01f0_1013;
const AFTER: u64 = 0x4070_5013;

/// Who carries out a program's calls of the host.
pub trait HostCalls {
    /// Carries out operation `number` with `parameter`, and gives its result. A call takes no time of the guest's.
    fn call(&mut self, number: u64, parameter: u64, caller: &mut Caller<'_>) -> HostResult;
}

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostResult {
    /// The program goes on with this result.
    Value(u64),
    /// The program ends with this status.
    Exit(u64),
}

/// The machine as a call sees it: memory as the calling hart maps it.
pub struct Caller<'a> {
    hart: &'a mut Hart,
    bus: &'a mut Bus,
}

impl Caller<'_> {
    /// Reads memory; false if not all of it is mapped to RAM.
    pub fn read(&mut self, va: u64, bytes: &mut [u8]) -> bool {
        self.hart.debug_read(self.bus, va, bytes) == bytes.len()
    }

    /// Writes memory; false if not all of it is mapped to RAM, and then part of it may be written.
    pub fn write(&mut self, va: u64, bytes: &[u8]) -> bool {
        self.hart.debug_write(self.bus, va, bytes)
    }

    /// Simulated nanoseconds since reset.
    pub fn nanos(&self) -> u64 {
        self.bus.clock().nanos(self.bus.now)
    }

    /// The address after the guest's memory.
    pub fn memory_end(&self) -> u64 {
        self.bus.ram.end()
    }
}

impl Hart {
    /// Sets who carries out the calls of programs that know RISC-V semihosting; without it, they are breakpoints.
    pub fn set_host_calls(&mut self, host: Rc<RefCell<dyn HostCalls>>) {
        self.attachments.host_calls = Some(host);
    }

    /// Carries out a call, if the `ebreak` at `at` is one; false if it is an ordinary breakpoint.
    #[cold]
    pub(crate) fn host_call<T: TimingModel>(
        &mut self,
        env: &mut Env<'_, T>,
        inst: &Slot,
        at: InstPosition,
    ) -> bool {
        if self.attachments.host_calls.is_none() || inst.len() != 4 {
            return false;
        }
        let mut word = [0; 4];
        for (va, expected) in [(at.pc.wrapping_sub(4), BEFORE), (at.pc.wrapping_add(4), AFTER)] {
            let read = self.debug_read(env.bus, va, &mut word);
            if read != word.len() || u64::from(u32::from_le_bytes(word)) != expected {
                return false;
            }
        }
        let Some(host) = self.attachments.host_calls.clone() else {
            return false;
        };
        env.bus.now = env.bus.now.max(self.now(env, at.count));
        let (number, parameter) = (self.get(10) & 0xffff_ffff, self.get(11));
        let caller = &mut Caller { hart: self, bus: env.bus };
        match host.borrow_mut().call(number, parameter, caller) {
            HostResult::Value(value) => self.put(10, value),
            HostResult::Exit(status) => {
                env.bus.exit.get_or_insert(Exit::Host(status));
            }
        }
        // The call may have written code, or ended the run.
        self.deadlines.afterwards(after::DEVICE);
        true
    }
}
