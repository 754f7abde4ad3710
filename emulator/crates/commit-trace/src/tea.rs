//! The events of an instruction's signature.

/// Event bits of an execution: TEA's nine (ISCA'23, table 1), and after them our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct TeaEvents(pub u16);

snapshot::snapshot!(TeaEvents(0));

/// The table of events: a row's place is its bit, in files, too, so that a further event is a row at the end. Whatever depends
/// on how many there are takes it from here.
macro_rules! events {
    ($($event:ident $name:literal $about:literal,)*) => {
        impl TeaEvents {
            /// The events' names and what each says of the execution, in the order of the bits.
            pub const TABLE: &[(&str, &str)] = &[$(($name, $about),)*];
            $(
                #[doc = concat!("It ", $about, ".")]
                pub const $event: Self = Self(1 << Bit::$event as u32);
            )*
        }

        #[expect(non_camel_case_types, reason = "named as the events")]
        enum Bit {
            $($event,)*
        }
    };
}

events! {
    DR_L1 "DR-L1" "missed in the L1 instruction cache",
    DR_TLB "DR-TLB" "missed in the instruction TLB",
    DR_SQ "DR-SQ" "waited at dispatch for a place in the store queue",
    FL_MB "FL-MB" "was a mispredicted branch",
    FL_EX "FL-EX" "caused an exception, or a flush at commit",
    FL_MO "FL-MO" "failed memory ordering, and was executed again",
    ST_L1 "ST-L1" "missed in the L1 data cache",
    ST_TLB "ST-TLB" "missed in the data TLB",
    ST_LLC "ST-LLC" "missed in the last-level cache",
    // Not among the published nine.
    ST_PEER "ST-PEER" "waited for a line that another hart's cache supplied or had to give up",
}

impl TeaEvents {
    /// Bits of a signature: how many events there are.
    pub const BITS: u32 = Self::TABLE.len() as u32;
    /// All events.
    pub const ALL: Self = Self((1 << Self::BITS) - 1);

    /// True if all bits of `events` are set.
    #[inline]
    pub const fn contains(self, events: Self) -> bool {
        self.0 & events.0 == events.0
    }
}

/// The events' names, joined by `|`; nothing for none.
impl std::fmt::Display for TeaEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut between = "";
        let met = (0..).zip(Self::TABLE).filter(|(bit, _)| self.0 >> bit & 1 != 0);
        for (_, (name, _)) in met {
            write!(f, "{between}{name}")?;
            between = "|";
        }
        Ok(())
    }
}

impl std::ops::BitOr for TeaEvents {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl std::ops::BitOrAssign for TeaEvents {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CommitRecord, InstId};

    /// Old traces have the published nine in these bits of a record's flags.
    #[test]
    fn bits_stay_where_they_are_in_files() {
        let published =
            ["DR-L1", "DR-TLB", "DR-SQ", "FL-MB", "FL-EX", "FL-MO", "ST-L1", "ST-TLB", "ST-LLC"];
        let read = |flags| CommitRecord::from_packed(InstId(0), 0, 0, flags).tea();
        for (bit, name) in (8..).zip(published) {
            assert_eq!(read(1 << bit).to_string(), name);
        }
        assert_eq!(read(0x1ff << 8).to_string(), published.join("|"));
        assert_eq!(read(1 << 17), TeaEvents::ST_PEER);
        // What a later version may have is no event of this one.
        assert_eq!(read(!0 << (8 + TeaEvents::BITS)), TeaEvents::default());
        assert_eq!(read(!0), TeaEvents::ALL);
    }
}
