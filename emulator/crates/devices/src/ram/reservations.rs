//! The reservations of load-reserved, by hart (unprivileged specification, section "Load-Reserved/Store-Conditional").
//! A reservation set is a 64-byte line; a write to it by another hart or a device invalidates the reservation.
//!
//! Harts execute one at a time, in turns. During a hart's turn only devices can invalidate its reservation; their writes
//! are compared here. A reservation that is held when the turn ends is published: other harts' stores to its page then
//! take the slow path and are compared too, until the reservation ends.

const LINE: u64 = 64;
const NONE: u64 = u64::MAX;

/// The reservation of one hart.
#[derive(Clone, Copy)]
struct HartReservation {
    /// Physical address of the line, or [`NONE`].
    line: u64,
    /// A write by another invalidated it.
    lost: bool,
    /// Number of the page where other harts' stores take the slow path for it, or [`NONE`].
    published: u64,
}

const NO_RESERVATION: HartReservation =
    HartReservation { line: NONE, lost: false, published: NONE };

/// The pages whose flag [`RESERVED`](super::Ram::RESERVED) changes when a hart publishes.
pub(super) struct Published {
    /// Number of a page in which no published reservation is left.
    pub free: Option<u64>,
    /// Number of the page in which the hart has published one.
    pub taken: Option<u64>,
}

#[derive(Default)]
pub(super) struct Reservations {
    harts: Vec<HartReservation>,
}

impl Reservations {
    /// A hart reserves the line that holds `pa`.
    #[inline]
    pub(crate) fn reserve(&mut self, hart: usize, pa: u64) {
        if self.harts.len() <= hart {
            self.harts.resize(hart + 1, NO_RESERVATION);
        }
        let place = &mut self.harts[hart];
        (place.line, place.lost) = (pa & !(LINE - 1), false);
    }

    /// A hart gives its reservation up. True if it held it until now.
    #[inline]
    pub(crate) fn release(&mut self, hart: usize) -> bool {
        self.harts.get_mut(hart).is_some_and(|place| {
            let held = place.line != NONE && !place.lost;
            place.line = NONE;
            held
        })
    }

    /// True if a hart lost its reservation to another's write and has not released it yet.
    #[inline]
    pub(crate) fn is_lost(&self, hart: usize) -> bool {
        self.harts.get(hart).is_some_and(|place| place.line != NONE && place.lost)
    }

    /// Invalidates reservations of other harts that a write of `len` bytes at `pa` reaches. `by`: the writing hart;
    /// `None` for a device, a debugger or a loader.
    #[inline]
    pub(crate) fn written(&mut self, pa: u64, len: u64, by: Option<usize>) {
        for (hart, place) in self.harts.iter_mut().enumerate() {
            let line = place.line;
            let apart = line == NONE || pa >= line + LINE || line >= pa.saturating_add(len);
            place.lost |= !apart && by != Some(hart);
        }
    }

    /// True if a hart other than `hart` published a reservation in the page.
    #[inline]
    pub(crate) fn stores_need_slow_path_for(&self, page: u64, hart: usize) -> bool {
        let mut others = self.harts.iter().enumerate();
        others.any(|(n, place)| n != hart && place.published == page)
    }

    /// Publishes the reservation that a hart holds at the end of its turn, or withdraws the one published before.
    #[inline]
    pub(crate) fn publish(&mut self, hart: usize) -> Published {
        let Some(place) = self.harts.get_mut(hart) else {
            return Published { free: None, taken: None };
        };
        let open = place.line != NONE && !place.lost;
        let page = if open { place.line >> 12 } else { NONE };
        let before = std::mem::replace(&mut place.published, page);
        let free = before != NONE && !self.harts.iter().any(|place| place.published == before);
        Published {
            free: free.then_some(before),
            taken: (page != NONE && page != before).then_some(page),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_of_others_to_the_line_take_it_away() {
        let mut all = Reservations::default();
        let held = |all: &mut Reservations, pa, len, by| {
            all.reserve(1, 0x1048);
            all.written(pa, len, by);
            all.release(1)
        };
        assert!(held(&mut all, 0x1048, 8, Some(1)), "its own");
        for by in [None, Some(0), Some(7)] {
            assert!(!held(&mut all, 0x1048, 8, by));
            assert!(!held(&mut all, 0x1040, 1, by), "the line's first byte");
            assert!(!held(&mut all, 0x103f, 2, by), "reaches in");
            assert!(!held(&mut all, 0, u64::MAX, by));
            assert!(held(&mut all, 0x1080, 8, by) && held(&mut all, 0x103f, 1, by));
        }
        assert!(!all.release(1) && !all.release(5), "none");
    }

    #[test]
    fn stores_take_the_slow_path_as_long_as_anybody_needs_it() {
        let mut all = Reservations::default();
        let publish = |all: &mut Reservations, hart| {
            let Published { free, taken } = all.publish(hart);
            (free, taken)
        };
        assert_eq!(publish(&mut all, 0), (None, None));
        all.reserve(0, 0x1000);
        all.reserve(1, 0x1fff);
        assert_eq!(publish(&mut all, 0), (None, Some(1)));
        assert_eq!(publish(&mut all, 0), (None, None));
        assert!(all.stores_need_slow_path_for(1, 1) && !all.stores_need_slow_path_for(1, 0));
        assert_eq!(publish(&mut all, 1), (None, Some(1)));
        all.release(0);
        assert_eq!(publish(&mut all, 0), (None, None), "the other one is there");
        all.written(0x1fff, 1, None);
        assert_eq!(publish(&mut all, 1), (Some(1), None));
    }
}
