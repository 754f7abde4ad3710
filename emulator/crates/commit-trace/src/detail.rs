//! What sampling units want to know of an instruction beside its record.

macro_rules! numbered {
    ($(#[$doc:meta])* $enum:ident { $($(#[$variant_doc:meta])* $name:ident = $number:literal $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $enum {
            $($(#[$variant_doc])* $name = $number,)*
        }

        impl $enum {
            /// All variants, by number.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the variant with this number; `None` if there is none.
            pub const fn of_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Returns the variant's name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }

        snapshot::snapshot_enum!($enum: $($name),*);
    };
}

numbered! {
    /// Who answered a load, a store's request for its line, or a fetch; the number is `DSRC` in a sample record.
    DataSource {
        /// The source is not known.
        #[default]
        Unknown = 0 "unknown",
        /// The L1 cache.
        L1 = 1 "L1",
        /// A store in the store queue, which forwarded its data.
        StoreQueue = 2 "store queue",
        /// The L1 cache, to which the line was already on its way.
        InFlight = 3 "in flight",
        /// The hart's L2.
        L2 = 4 "L2",
        /// The last-level cache.
        Llc = 5 "LLC",
        /// Memory.
        Memory = 6 "memory",
        /// The cache of another hart, which had not modified the line.
        PeerClean = 7 "peer cache",
        /// The cache of another hart, which had modified the line.
        PeerModified = 8 "peer cache, modified",
        /// A device register.
        Device = 9 "device",
        /// The hart's own cache, after other harts had dropped their copies.
        Upgrade = 10 "upgrade",
    }
}

numbered! {
    /// How a virtual address was translated.
    Translation {
        /// By the first-level TLB, or not at all.
        #[default]
        L1 = 0 "L1 TLB",
        /// By the second-level TLB.
        L2 = 1 "L2 TLB",
        /// By a page-table walk.
        Walk = 2 "page walk",
    }
}

numbered! {
    /// What an instruction does to data in memory.
    AccessKind {
        /// No access to data.
        #[default]
        None = 0 "none",
        /// A load.
        Load = 1 "load",
        /// A store.
        Store = 2 "store",
        /// An atomic, which loads and stores.
        Atomic = 3 "atomic",
    }
}

numbered! {
    /// What an instruction's dispatch waited for, beyond its decode and the instructions before it.
    DispatchWait {
        /// Nothing.
        #[default]
        None = 0 "none",
        /// A row of the ROB.
        Rob = 1 "ROB",
        /// A physical register.
        Registers = 2 "registers",
        /// An entry of the load queue.
        LoadQueue = 3 "load queue",
        /// An entry of the store queue.
        StoreQueue = 4 "store queue",
        /// A slot in the memory issue queue. Every instruction waits for room in each issue queue, whichever it goes to.
        MemoryIssue = 5 "memory issue queue",
        /// A slot in the integer issue queue.
        IntegerIssue = 6 "integer issue queue",
        /// A slot in the FP issue queue.
        FpIssue = 7 "FP issue queue",
        /// A branch tag.
        Tags = 8 "branch tags",
        /// The ROB to be empty: the instruction serialises.
        Empty = 9 "empty ROB",
    }
}

/// A data access. Cycles are the core's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataAccess {
    /// The kind of access.
    pub kind: AccessKind,
    /// Size of the access, in bytes.
    pub size: u8,
    /// Virtual address.
    pub va: u64,
    /// Physical address.
    pub pa: u64,
    /// Who answered the access.
    pub source: DataSource,
    /// How the address was translated.
    pub translation: Translation,
    /// Cycles that the translation took beyond those of a TLB hit.
    pub translating: u32,
    /// For a store: the cycle in which its line is written, which is after its commit.
    pub written: u64,
}

/// The fetch of a packet. Cycles are the core's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketFetch {
    /// The cycle in which the packet was first asked for.
    pub asked: u64,
    /// The cycle in which the packet was delivered to the fetch buffer. 0: the instruction starts no packet.
    pub delivered: u64,
    /// Physical address of the line that the packet is read from.
    pub pa: u64,
    /// Who had the line.
    pub source: DataSource,
    /// How the packet's address was translated.
    pub translation: Translation,
    /// Cycles that the translation took beyond those of a TLB hit.
    pub translating: u32,
}

snapshot::snapshot!(PacketFetch { asked, delivered, pa, source, translation, translating });

/// All stages of an instruction that left the ROB, and what it met on its way. Cycles are the core's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// The cycle in which the instruction was decoded.
    pub decode: u64,
    /// The decode slot that the instruction took, from 0 on.
    pub slot: u8,
    /// The cycle in which the instruction was dispatched: the ROB holds it from the next cycle on.
    pub dispatch: u64,
    /// The cycle in which the instruction was issued; 0: it never was.
    pub issue: u64,
    /// The first cycle in which the instruction's dependents can issue; without meaning if it writes no register.
    pub wake: u64,
    /// The first cycle in which the instruction could have left the ROB.
    pub complete: u64,
    /// What the instruction's dispatch waited for last.
    pub dispatch_wait: DispatchWait,
    /// The instruction's data access.
    pub access: DataAccess,
    /// The fetch of the packet that the instruction starts.
    pub packet: PacketFetch,
    /// Approximate number of younger instructions that were thrown away because of this one: as many as decode can take until
    /// fetch restarts.
    pub flushed: u32,
    /// A bit for each watched counter, 3 to 31, whose event the instruction incurs.
    pub incurred: u32,
    /// A bit for each watched counter that overflows by the instruction.
    pub overflows: u32,
    /// A bit for each watched counter of flushed cycles that overflows by the last instruction before this one that restarted
    /// fetch.
    pub overflows_before: u32,
}
