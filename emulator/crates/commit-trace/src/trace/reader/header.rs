//! The file's header: its layout is the same in every version, so that a run can always say what it was.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

use crate::trace::{MAGIC, MAX_METADATA_BYTES, TraceError, VERSION};

/// Bytes before the metadata.
const FIXED: usize = 16;

pub(super) struct Header {
    pub(super) version: u32,
    pub(super) metadata: String,
    /// Size of the header, in bytes, which is the offset of the first chunk.
    pub(super) bytes: u64,
}

/// The error of a file that was written by another version.
pub(super) fn other_version(file: String, found: u32) -> TraceError {
    TraceError::Version { file, found, expected: VERSION }
}

/// Reads the header. The header of a newer version has this layout, too; an older version is an error.
pub(super) fn read(input: &mut (impl Read + Seek), file: &str) -> Result<Header, TraceError> {
    let file = || file.to_owned();
    let failed = |source: io::Error| TraceError::Read { file: file(), source };
    input.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut start = [0; FIXED];
    input.read_exact(&mut start).map_err(|source| match source.kind() {
        ErrorKind::UnexpectedEof => TraceError::NotATrace { file: file() },
        _ => failed(source),
    })?;
    if !start.starts_with(MAGIC) {
        return Err(TraceError::NotATrace { file: file() });
    }
    let [_, _, version, len] =
        std::array::from_fn(|n| u32::from_le_bytes(std::array::from_fn(|b| start[4 * n + b])));
    if version < VERSION {
        return Err(other_version(file(), version));
    }
    let damaged = |what| match version {
        VERSION => TraceError::Damaged { file: file(), offset: 0, what },
        _ => other_version(file(), version),
    };
    if len > MAX_METADATA_BYTES {
        return Err(damaged("the metadata is larger than any writer makes it"));
    }
    let mut body = Vec::new();
    let wanted = u64::from(len) + 4;
    let found = input.by_ref().take(wanted).read_to_end(&mut body).map_err(failed)?;
    if (found as u64) < wanted {
        return Err(damaged("the header is cut"));
    }
    let checksum = body.split_off(len as usize);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&start);
    hasher.update(&body);
    if checksum != hasher.finalize().to_le_bytes() {
        return Err(damaged("the header's checksum is wrong"));
    }
    let metadata = String::from_utf8(body).map_err(|_| damaged("the metadata is not text"))?;
    Ok(Header { version, metadata, bytes: FIXED as u64 + wanted })
}
