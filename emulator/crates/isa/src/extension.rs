//! The extensions that a machine may have or lack.

macro_rules! extensions {
    ($($(#[$doc:meta])* $name:ident $text:literal $($supervisor:literal)?;)*) => {
        /// An extension beyond RV64GC.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Extension {
            $($(#[$doc])* $name,)*
        }

        impl Extension {
            /// All extensions, in the order of the device tree.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the name in the device tree; the machine level's if each level has one.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// Returns all names in the device tree: one, or one for each level.
            pub const fn names(self) -> &'static [&'static str] {
                match self {
                    $(Self::$name => &[$text $(, $supervisor)?],)*
                }
            }
        }
    };
}

extensions! {
    /// Cache-block management.
    Zicbom "zicbom";
    /// Cache-block zeroing.
    Zicboz "zicboz";
    /// Conditional zeroing.
    Zicond "zicond";
    /// Compare and swap.
    Zacas "zacas";
    /// Waiting on a reservation.
    Zawrs "zawrs";
    /// Additional floating-point instructions.
    Zfa "zfa";
    /// Half precision.
    Zfh "zfh";
    /// Half precision in memory, and conversions; part of Zfh.
    Zfhmin "zfhmin";
    /// Address generation.
    Zba "zba";
    /// Basic bit manipulation.
    Zbb "zbb";
    /// Carry-less multiplication.
    Zbc "zbc";
    /// Single-bit instructions.
    Zbs "zbs";
    /// Further compressed instructions.
    Zcb "zcb";
    /// Filtering of `mcycle` and `minstret` by privilege.
    Smcntrpmf "smcntrpmf";
    /// Indirect access to CSRs.
    Smcsrind "smcsrind" "sscsrind";
    /// Delegation of counters to the supervisor; needs Smcsrind.
    Smcdeleg "smcdeleg" "ssccfg";
    /// Control transfer records; needs Smcsrind.
    Smctr "smctr" "ssctr";
    /// Sampled instructions (a draft); needs Smcsrind.
    Smpdis "smpdis" "sspdis";
    /// Overflows of counters attributed to instructions (a draft); needs Smcdeleg.
    Sspesa "sspesa";
    /// The supervisor's own timer.
    Sstc "sstc";
    /// Virtual memory of four levels, beside that of three.
    Sv48 "sv48";
    /// Accessed and dirty bits of pages are written by hardware.
    Svadu "svadu";
    /// Fine-grained invalidation of translations.
    Svinval "svinval";
    /// Naturally aligned 64 KiB pages.
    Svnapot "svnapot";
    /// Memory types of pages.
    Svpbmt "svpbmt";
}

/// A set of extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extensions(u32);

impl Extensions {
    /// None.
    pub const NONE: Self = Self(0);
    /// Every one.
    pub const ALL: Self = Self((1 << Extension::ALL.len()) - 1);

    /// True if it has the extension.
    pub const fn has(self, extension: Extension) -> bool {
        self.0 >> extension as u32 & 1 != 0
    }

    /// True if it has them all.
    pub fn has_all(self, extensions: &[Extension]) -> bool {
        extensions.iter().all(|e| self.has(*e))
    }

    /// The set with, or without, an extension.
    #[must_use]
    pub const fn with(self, extension: Extension, on: bool) -> Self {
        let bit = 1 << extension as u32;
        Self(if on { self.0 | bit } else { self.0 & !bit })
    }
}
