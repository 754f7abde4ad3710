//! Kernels as distributions pack them: `Image.gz`, `Image.zst`, and those inside a compressed EFI image.

use std::io::Read;
use std::path::Path;

use crate::failure::{BadInput, bad_input};

/// The plain kernel. What is packed otherwise stays, for the loader to refuse it.
pub(super) fn unpack(path: &Path, bytes: Vec<u8>, most: u64) -> Result<Vec<u8>, BadInput> {
    if let Some(payload) = efi_payload(&bytes) {
        let (name, payload) = payload.map_err(|e| bad_input(path, e))?;
        return match decompress(payload, most) {
            Some(plain) => plain.map_err(|e| bad_input(path, e)),
            None => {
                let found = String::from_utf8_lossy(name);
                let found = found.trim_end_matches('\0');
                let expected = "kernel: expected the payload of an EFI image as gzip or zstd";
                Err(bad_input(path, format!("{expected}, found {found}")))
            }
        };
    }
    match decompress(&bytes, most) {
        Some(plain) => plain.map_err(|e| bad_input(path, e)),
        None => Ok(bytes),
    }
}

/// Unpacks gzip and zstd; `None` for anything else. What has more than `most` bytes fits into no memory.
fn decompress(bytes: &[u8], most: u64) -> Option<Result<Vec<u8>, String>> {
    let read = |reader: &mut dyn Read, what: &str| {
        let mut plain = Vec::new();
        let read = reader.take(most + 1).read_to_end(&mut plain);
        read.map_err(|e| format!("kernel: damaged {what} data: {e}"))?;
        if plain.len() as u64 > most {
            return Err(format!(
                "kernel: expected at most {most} bytes (the memory) in the {what} data, found more"
            ));
        }
        Ok(plain)
    };
    match bytes {
        // A second member is padding: the signature or the zeros of a build.
        [0x1f, 0x8b, ..] => Some(read(&mut flate2::read::GzDecoder::new(bytes), "gzip")),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(match zstd::Decoder::new(bytes) {
            Ok(decoder) => read(&mut decoder.single_frame(), "zstd"),
            Err(e) => Err(format!("kernel: damaged zstd data: {e}")),
        }),
        _ => None,
    }
}

/// How the payload of an EFI image is packed, and the payload.
type Payload<'a> = (&'a [u8], &'a [u8]);

/// Returns what a compressed EFI image holds (Linux, drivers/firmware/efi/libstub/zboot-header.S), and how it is packed.
fn efi_payload(bytes: &[u8]) -> Option<Result<Payload<'_>, &'static str>> {
    let header: &[u8; 56] = bytes.first_chunk()?;
    if !header.starts_with(b"MZ") || &header[4..8] != b"zimg" {
        return None;
    }
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let start = word(8) as usize;
    let payload = start.checked_add(word(12) as usize).and_then(|end| bytes.get(start..end));
    Some(match payload {
        Some(payload) => Ok((&header[24..56], payload)),
        None => Err("kernel: the payload of the EFI image ends after the file"),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const KERNEL: &[u8] = b"a kernel, a kernel, a kernel";

    fn gzip() -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(KERNEL).unwrap();
        encoder.finish().unwrap()
    }

    fn efi(packed: &[u8], name: &[u8]) -> Vec<u8> {
        let mut bytes = b"MZ\0\0zimg".to_vec();
        bytes.extend(64u32.to_le_bytes());
        bytes.extend((packed.len() as u32).to_le_bytes());
        bytes.resize(24, 0);
        bytes.extend(name);
        bytes.resize(64, 0);
        bytes.extend(packed);
        bytes
    }

    fn decompress(bytes: Vec<u8>, most: u64) -> Result<Vec<u8>, String> {
        unpack(Path::new("file"), bytes, most).map_err(|e| e.to_string())
    }

    #[test]
    fn image_gz_zst_and_efi_images_are_unpacked() {
        let zstd = zstd::encode_all(KERNEL, 1).unwrap();
        let efis = [efi(&gzip(), b"gzip"), efi(&zstd, b"zstd22")];
        for bytes in [KERNEL.to_vec(), gzip(), zstd].into_iter().chain(efis) {
            assert_eq!(decompress(bytes, 1000).as_deref(), Ok(KERNEL));
        }
    }

    #[test]
    fn what_is_damaged_or_unknown_is_named() {
        let (mut cut, mut outside) = (gzip(), efi(&gzip(), b"gzip"));
        cut.truncate(20);
        outside.truncate(70);
        for (bytes, words) in [
            (cut, "damaged gzip data"),
            (outside, "ends after the file"),
            (efi(b"what", b"lzma"), "found lzma"),
        ] {
            let error = decompress(bytes, 1000).unwrap_err();
            assert!(error.starts_with("file: kernel: ") || error.contains(words), "{error}");
            assert!(error.contains(words), "{error}");
        }
        assert!(decompress(gzip(), 10).unwrap_err().contains("at most 10 bytes"));
    }
}
