//! What identifies a file.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// SHA-256 of what a reader has, in hexadecimal.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn sha256(mut from: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer)? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
    }
    let digits = hash.finalize();
    Ok(digits.iter().map(|byte| format!("{byte:02x}")).collect())
}
