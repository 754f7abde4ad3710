//! The guest's `perf.data`, of any content.
#![no_main]

use libfuzzer_sys::fuzz_target;
use profile::perf_data::GuestProfile;

fuzz_target!(|bytes: &[u8]| {
    let _ = GuestProfile::parse(bytes, "tip");
});
