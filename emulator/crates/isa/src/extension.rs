//! The extensions that a machine may have or lack.

/// Makes [`Extension`] of rows: name, its name or names in the device tree, and which others it needs.
macro_rules! extensions {
    ($($(#[$doc:meta])* $name:ident $text:literal $($supervisor:literal)? $(needs $($needed:ident)+)?;)*) => {
        /// An extension beyond RV64GC.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Extension {
            $($(#[$doc])* $name,)*
        }

        impl Extension {
            /// All extensions, in the order of the device tree.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Names of all extensions, as [`Self::name`] gives them, in the order of [`Self::ALL`].
            pub const NAMES: &'static [&'static str] = &[$($text,)*];

            /// Returns the extension with this name, as [`Self::name`] gives it.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|extension| extension.name() == name)
            }

            /// Returns the extensions without which no machine has this one.
            pub const fn needs(self) -> &'static [Self] {
                match self {
                    $(Self::$name => &[$($(Self::$needed),+)?],)*
                }
            }

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
    Zfh "zfh" needs Zfhmin;
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
    Zcb "zcb" needs Zba Zbb;
    /// Filtering of `mcycle` and `minstret` by privilege.
    Smcntrpmf "smcntrpmf";
    /// Indirect access to CSRs.
    Smcsrind "smcsrind" "sscsrind";
    /// Delegation of counters to the supervisor.
    Smcdeleg "smcdeleg" "ssccfg" needs Smcsrind;
    /// Control transfer records.
    Smctr "smctr" "ssctr" needs Smcsrind;
    /// Sampled instructions (a draft).
    Smpdis "smpdis" "sspdis" needs Smcsrind;
    /// Overflows of counters attributed to instructions (a draft).
    Sspesa "sspesa" needs Smcdeleg;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_nothing_needs_itself() {
        for extension in Extension::ALL {
            assert_eq!(Extension::named(extension.name()), Some(*extension));
            assert!(!extension.needs().contains(extension), "{}", extension.name());
        }
        assert_eq!(Extension::named("Zba"), None);
        assert_eq!(Extension::Zcb.needs(), [Extension::Zba, Extension::Zbb]);
    }
}
