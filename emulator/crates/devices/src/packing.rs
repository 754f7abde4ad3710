//! Compressed files, by their first bytes.

/// Name of the compression format of a file; `None` if it is not compressed.
pub fn packing(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x1f, 0x8b, ..] => Some("gzip data"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("zstd data"),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Some("xz data"),
        [b'B', b'Z', b'h', ..] => Some("bzip2 data"),
        [b'M', b'Z', _, _, b'z', b'i', b'm', b'g', ..] => Some("a compressed EFI image"),
        _ => None,
    }
}
