//! The macro that makes the events from the table's rows.

/// Makes [`PerfEvent`](super::PerfEvent) from the rows.
macro_rules! events {
    ($( #[doc = $doc:literal] $event:ident = ($set:literal, $bit:literal) $stage:ident $($per_cycle:ident)?, $topic:literal, $name:literal; )*) => {
        /// An event that the programmable counters count.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum PerfEvent {
            $(#[doc = $doc] $event,)*
        }

        impl PerfEvent {
            /// All events.
            pub const ALL: &[Self] = &[$(Self::$event),*];

            /// Returns the event's row of the table.
            pub fn row(self) -> PerfEventRow {
                match self {
                    $(Self::$event => PerfEventRow {
                        name: $name,
                        topic: $topic,
                        description: $doc.trim_ascii(),
                        set: $set,
                        bit: $bit,
                        stage: stage!($stage),
                        per_cycle: per_cycle!($($per_cycle)?),
                    },)*
                }
            }

            /// Returns the event that a bit of a set's mask names; the draft's codes are sets of one event.
            pub(super) fn at(set: u8, bit: u8) -> Option<Self> {
                match (set, bit) {
                    $(($set, $bit) => Some(Self::$event),)*
                    _ => None,
                }
            }
        }
    };
}

macro_rules! stage {
    (clock) => {
        Stage::Clock
    };
    (fetch) => {
        Stage::Fetch
    };
    (decode) => {
        Stage::Decode
    };
    (execute) => {
        Stage::Execute
    };
    (memory) => {
        Stage::Memory
    };
    (commit) => {
        Stage::Commit
    };
}

macro_rules! per_cycle {
    () => {
        false
    };
    (per_cycle) => {
        true
    };
}
