//! The guest's `perf.data`: of any content after its first word.
#![no_main]

use libfuzzer_sys::fuzz_target;
use guest_samples::{GuestProfile, SampleFile};

fuzz_target!(|bytes: &[u8]| {
    let file = [b"PERFILE2", bytes].concat();
    let _ = GuestProfile::parse(&file, "tip");
    let _ = SampleFile::parse(&file);
});
