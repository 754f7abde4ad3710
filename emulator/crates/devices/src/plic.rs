//! Platform-level interrupt controller (RISC-V PLIC 1.0.0) in SiFive's layout: 63 sources and two
//! contexts per hart, context `2 * hart` for M-mode and `2 * hart + 1` for S-mode.

use crate::AccessFault;

/// Size of the register window in bytes.
pub const PLIC_SIZE: u64 = 0x400_0000;
/// Highest interrupt source; 0 means "no interrupt".
pub const PLIC_SOURCES: u32 = 63;

const PENDING: u64 = 0x1000;
const ENABLE: u64 = 0x2000;
const ENABLE_STRIDE: u64 = 0x80;
const CONTEXT: u64 = 0x20_0000;
const CONTEXT_STRIDE: u64 = 0x1000;
/// Priorities and thresholds keep three bits.
const PRIORITY_MASK: u32 = 7;

#[derive(Clone, Copy)]
enum Register {
    Priority(usize),
    /// Word of the pending bits.
    Pending(u32),
    /// Context, and word of its enable bits.
    Enable(usize, u32),
    Threshold(usize),
    Claim(usize),
    Reserved,
}

impl Register {
    fn at(offset: u64) -> Self {
        match offset {
            0..PENDING => Self::Priority((offset / 4) as usize),
            PENDING..ENABLE => Self::Pending((offset - PENDING) as u32 / 4),
            ENABLE..CONTEXT => {
                let at = offset - ENABLE;
                Self::Enable((at / ENABLE_STRIDE) as usize, (at % ENABLE_STRIDE) as u32 / 4)
            }
            _ => {
                let at = offset - CONTEXT;
                let context = (at / CONTEXT_STRIDE) as usize;
                match at % CONTEXT_STRIDE {
                    0 => Self::Threshold(context),
                    4 => Self::Claim(context),
                    _ => Self::Reserved,
                }
            }
        }
    }
}

#[derive(Clone, Default)]
struct Context {
    enable: u64,
    threshold: u32,
}

/// The controller. Sets of sources are bit masks: bit n is source n.
pub struct Plic {
    priority: [u32; PLIC_SOURCES as usize + 1],
    level: u64,
    pending: u64,
    /// Sources whose gateway waits for a completion before it forwards another request.
    in_flight: u64,
    contexts: Box<[Context]>,
}

snapshot::snapshot!(Context { enable, threshold });
snapshot::snapshot!(Plic { priority, level, pending, in_flight, contexts });

impl Plic {
    /// A controller for `harts` harts, with everything disabled.
    pub fn new(harts: usize) -> Self {
        // More contexts would run into the threshold registers' window.
        let contexts = (2 * harts).min(((PLIC_SIZE - CONTEXT) / CONTEXT_STRIDE) as usize);
        Self {
            priority: [0; PLIC_SOURCES as usize + 1],
            level: 0,
            pending: 0,
            in_flight: 0,
            contexts: vec![Context::default(); contexts].into(),
        }
    }

    /// Drives the line of a source. Sources 0 and above 63 do not exist and are ignored.
    pub fn set_level(&mut self, source: u32, level: bool) {
        if (1..=PLIC_SOURCES).contains(&source) {
            let bit = 1 << source;
            self.level = if level { self.level | bit } else { self.level & !bit };
            self.forward(bit);
        }
    }

    /// Level of the external interrupt of a context.
    #[inline]
    pub fn interrupt(&self, context: usize) -> bool {
        self.contexts.get(context).is_some_and(|c| {
            let source = self.best(c);
            source != 0 && self.priority[source as usize] > c.threshold
        })
    }

    /// A load; registers are 4 bytes.
    pub fn read(&mut self, offset: u64, size: u8) -> Result<u64, AccessFault> {
        if size != 4 {
            return Err(AccessFault);
        }
        let word = |mask: u64, word: u32| mask.checked_shr(32 * word).unwrap_or(0) as u32;
        Ok(u64::from(match Register::at(offset) {
            Register::Priority(source) => self.priority.get(source).copied().unwrap_or(0),
            Register::Pending(n) => word(self.pending, n),
            Register::Enable(context, n) => {
                self.contexts.get(context).map_or(0, |c| word(c.enable, n))
            }
            Register::Threshold(context) => self.contexts.get(context).map_or(0, |c| c.threshold),
            Register::Claim(context) => self.claim(context),
            Register::Reserved => 0,
        }))
    }

    /// A store; registers are 4 bytes.
    pub fn write(&mut self, offset: u64, size: u8, value: u64) -> Result<(), AccessFault> {
        if size != 4 {
            return Err(AccessFault);
        }
        let value = value as u32;
        match Register::at(offset) {
            Register::Priority(0) | Register::Pending(_) | Register::Reserved => {}
            Register::Priority(source) => {
                if let Some(priority) = self.priority.get_mut(source) {
                    *priority = value & PRIORITY_MASK;
                }
            }
            Register::Enable(context, word @ 0..=1) => {
                if let Some(context) = self.contexts.get_mut(context) {
                    let shift = 32 * word;
                    let kept = context.enable & !(0xffff_ffff << shift);
                    context.enable = (kept | u64::from(value) << shift) & !1;
                }
            }
            Register::Enable(..) => {}
            Register::Threshold(context) => {
                if let Some(context) = self.contexts.get_mut(context) {
                    context.threshold = value & PRIORITY_MASK;
                }
            }
            Register::Claim(context) => self.complete(context, value),
        }
        Ok(())
    }

    /// The pending enabled source of highest priority, the lowest number among equals; 0 if none.
    fn best(&self, context: &Context) -> u32 {
        let mut candidates = self.pending & context.enable;
        let (mut best, mut highest) = (0, 0);
        while candidates != 0 {
            let source = candidates.trailing_zeros();
            if self.priority[source as usize] > highest {
                (best, highest) = (source, self.priority[source as usize]);
            }
            candidates &= candidates - 1;
        }
        best
    }

    /// Claims ignore the threshold (PLIC 1.0.0, section 8): a poll with it at the maximum works.
    fn claim(&mut self, context: usize) -> u32 {
        let source = self.contexts.get(context).map_or(0, |c| self.best(c));
        if source != 0 {
            self.pending &= !(1 << source);
        }
        source
    }

    /// A completion for a source that the context has not enabled is ignored (section 9).
    fn complete(&mut self, context: usize, source: u32) {
        let enabled = self.contexts.get(context).map_or(0, |c| c.enable);
        if (1..=PLIC_SOURCES).contains(&source) && enabled >> source & 1 != 0 {
            self.in_flight &= !(1 << source);
            self.forward(1 << source);
        }
    }

    /// The gateways: a high level makes one request, and no other before its completion. A
    /// request is not taken back when the level drops (section 1.3).
    fn forward(&mut self, sources: u64) {
        let requests = sources & self.level & !self.in_flight;
        self.in_flight |= requests;
        self.pending |= requests;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S0: u64 = CONTEXT + CONTEXT_STRIDE;

    fn enable(plic: &mut Plic, context: u64, source: u64, priority: u64) {
        let at = ENABLE + ENABLE_STRIDE * context + 4 * (source / 32);
        let old = plic.read(at, 4).unwrap();
        plic.write(at, 4, old | 1 << (source % 32)).unwrap();
        plic.write(4 * source, 4, priority).unwrap();
    }

    #[test]
    fn claim_complete_cycle_of_a_level() {
        let mut plic = Plic::new(1);
        enable(&mut plic, 1, 10, 1);
        plic.set_level(10, true);
        assert!(plic.interrupt(1) && !plic.interrupt(0));
        assert_eq!(plic.read(S0 + 4, 4), Ok(10));
        assert!(!plic.interrupt(1), "claimed");
        assert_eq!(plic.read(S0 + 4, 4), Ok(0));
        plic.set_level(10, false);
        plic.set_level(10, true);
        assert!(!plic.interrupt(1), "the gateway waits for the completion");
        plic.write(S0 + 4, 4, 10).unwrap();
        assert!(plic.interrupt(1), "still high: a new request");
        assert_eq!(plic.read(S0 + 4, 4), Ok(10));
        plic.set_level(10, false);
        plic.write(S0 + 4, 4, 10).unwrap();
        assert!(!plic.interrupt(1));
    }

    #[test]
    fn a_request_survives_its_level() {
        let mut plic = Plic::new(1);
        enable(&mut plic, 1, 40, 1);
        plic.set_level(40, true);
        plic.set_level(40, false);
        assert_eq!(plic.read(PENDING + 4, 4), Ok(1 << 8));
        assert_eq!(plic.read(S0 + 4, 4), Ok(40));
    }

    #[test]
    fn priorities_ties_and_threshold() {
        let mut plic = Plic::new(1);
        for (source, priority) in [(3, 2), (5, 7), (6, 7), (9, 0)] {
            enable(&mut plic, 1, source, priority);
            plic.set_level(source as u32, true);
        }
        plic.write(S0, 4, 7).unwrap();
        assert!(!plic.interrupt(1), "threshold masks its own priority");
        plic.write(S0, 4, 6).unwrap();
        assert!(plic.interrupt(1));
        assert_eq!(plic.read(S0 + 4, 4), Ok(5));
        assert_eq!(plic.read(S0 + 4, 4), Ok(6));
        assert!(!plic.interrupt(1));
        assert_eq!(plic.read(S0 + 4, 4), Ok(3), "a claim ignores the threshold");
        assert_eq!(plic.read(S0 + 4, 4), Ok(0), "priority 0 never interrupts");
    }

    #[test]
    fn completion_needs_the_enable_bit() {
        let mut plic = Plic::new(2);
        enable(&mut plic, 1, 2, 1);
        plic.set_level(2, true);
        assert_eq!(plic.read(S0 + 4, 4), Ok(2));
        plic.write(CONTEXT + 4, 4, 2).unwrap();
        assert!(!plic.interrupt(1), "context 0 has not enabled it");
        plic.write(S0 + 4, 4, 64).unwrap();
        plic.write(S0 + 4, 4, 0).unwrap();
        assert!(!plic.interrupt(1));
        plic.write(S0 + 4, 4, 2).unwrap();
        assert!(plic.interrupt(1));
    }

    #[test]
    fn every_offset_answers_and_source_0_is_wired_to_0() {
        let mut plic = Plic::new(1);
        for offset in (0..0x30_0000).step_by(4).chain([PLIC_SIZE - 4]) {
            plic.write(offset, 4, 0xffff_ffff).unwrap();
            plic.read(offset, 4).unwrap();
        }
        assert_eq!(plic.read(0, 4), Ok(0));
        assert_eq!(plic.read(ENABLE, 4), Ok(0xffff_fffe));
        assert_eq!(plic.read(4, 4), Ok(7));
        assert_eq!(plic.read(4, 8), Err(AccessFault));
        plic.set_level(0, true);
        plic.set_level(64, true);
        assert_eq!(plic.read(PENDING, 4), Ok(0));
    }
}
