//! ELF files inside of other files, from which they are mapped where they lie: libraries in an Android package, programs in an image.

use std::ops::Range;
use std::path::PathBuf;

use super::{Location, Origin, Resolution};
use crate::check::Wanted;
use crate::elf::{self, Elf};
use crate::{BuildId, Place};

/// Bytes of a page: files are mapped by pages.
const PAGE_BYTES: usize = 4096;
/// First bytes of an ELF file.
const ELF_MAGIC: &[u8] = b"\x7fELF";
/// Bytes of a local header of a ZIP archive without its name and its extra field (APPNOTE.TXT 6.3.10, section 4.3.7).
const ZIP_HEADER_BYTES: usize = 30;
/// Signature of a local header of a ZIP archive.
const ZIP_SIGNATURE: &[u8] = b"PK\x03\x04";
/// ELF headers before an offset that are tried, the nearest first: the file around them may be made to have millions.
const MAX_TRIES: usize = 64;
/// Bytes before a stored file in which its header is searched for: names and padding are not longer.
const MAX_HEADER: usize = 32 << 10;

/// An ELF file inside of another file.
struct Image {
    /// Offset of the ELF file in the file around it, in bytes.
    start: usize,
    /// The name that the archive has for it, or else its offset.
    name: String,
    /// Which of the sorted members lie in the ELF file, by index.
    members: Range<usize>,
}

impl Resolution<'_> {
    /// Names the addresses of a file that is no ELF file itself by those inside of it; false if there are none, and nothing was named.
    pub(super) fn images(
        &mut self,
        source: &Origin,
        places: &[Place],
        members: &[(usize, u64)],
        located: &mut [Option<Location>],
    ) -> bool {
        let Origin::Path(path, build_id) = source else {
            return false;
        };
        let Some((file, bytes)) = self.container(path, build_id.as_ref()) else {
            return false;
        };
        let images = images(&bytes, members);
        let mut rest: Vec<(usize, u64)> = Vec::new();
        let mut named = 0;
        for (number, image) in images.iter().enumerate() {
            rest.extend(&members[named..image.members.start]);
            named = image.members.end;
            let within: Vec<(usize, u64)> = members[image.members.clone()]
                .iter()
                .map(|(at, offset)| (*at, offset - image.start as u64))
                .collect();
            let code = |&(at, offset): &(usize, u64)| Some((offset, places[at].code()?));
            let wanted = Wanted { build_id: None, code: within.iter().filter_map(code).collect() };
            // All copies together are no longer than the file.
            let end = images.get(number + 1).map_or(bytes.len(), |next| next.start);
            let elf = bytes[image.start..end].to_vec();
            let opened = wanted.check(&file, elf, false).map_err(|why| {
                let missing =
                    format!("no symbols: {why}; hand in the folder of the file (--debug-dir)");
                self.warn(format!("{path}!{}: {missing}", image.name));
                Some(missing)
            });
            let name = format!("{path}!{}", image.name).into();
            self.opened(source, name, None, opened, &within, located);
        }
        rest.extend(&members[named..]);
        if !images.is_empty() && !rest.is_empty() {
            let missing = format!(
                "no symbols: {}: no ELF file is there; hand in the folder of the file (--debug-dir)",
                file.display()
            );
            self.warn(format!("{path}: {missing}"));
            self.opened(source, path.clone(), None, Err(Some(missing)), &rest, located);
        }
        !images.is_empty()
    }

    /// The host's file of a path, if it is there and is no ELF file.
    fn container(&self, path: &str, build_id: Option<&BuildId>) -> Option<(PathBuf, Vec<u8>)> {
        if !path.starts_with('/') || path.starts_with("//") {
            return None;
        }
        let candidates = self.symbolizer.files.candidates(path, build_id);
        let file = candidates.into_iter().find(|file| !file.needs_proof)?.path;
        if elf::is_elf(&file) {
            return None;
        }
        let bytes = elf::read(&file).ok()?;
        Some((file, bytes))
    }
}

/// Returns the ELF files in which members are, by ascending offset, as the members' offsets are.
fn images(bytes: &[u8], members: &[(usize, u64)]) -> Vec<Image> {
    let starts: Vec<usize> = { 0..bytes.len() }
        .step_by(PAGE_BYTES)
        .filter(|&start| bytes[start..].starts_with(ELF_MAGIC))
        .collect();
    let mut found: Vec<Image> = Vec::new();
    for (number, &(_, offset)) in members.iter().enumerate() {
        let has = |start: usize| {
            let elf = Elf::parse(&bytes[start..]).ok();
            elf.and_then(|elf| elf.address_of(offset - start as u64)).is_some()
        };
        if let Some(last) = found.last_mut()
            && last.members.end == number
            && has(last.start)
        {
            last.members.end = number + 1;
            continue;
        }
        let behind = found.last().map_or(0, |last| last.start + 1);
        let before = starts.partition_point(|&start| start as u64 <= offset);
        let near = starts[..before].iter().rev().copied().take(MAX_TRIES);
        if let Some(start) = { near }.find(|&start| start >= behind && has(start)) {
            found.push(Image { start, name: name(bytes, start), members: number..number + 1 });
        }
    }
    found
}

/// What a ZIP archive calls the file that it stores from `start` on, or else where that is.
fn name(bytes: &[u8], start: usize) -> String {
    let first = start.saturating_sub(MAX_HEADER);
    let headers = (first..start.saturating_sub(ZIP_HEADER_BYTES)).rev();
    let mut names = headers.filter(|&at| bytes[at..].starts_with(ZIP_SIGNATURE)).filter_map(|at| {
        let length = |field: usize| -> Option<usize> {
            let two = bytes.get(at + field..at + field + 2)?;
            Some(u16::from_le_bytes([two[0], two[1]]).into())
        };
        let (name, extra) = (length(26)?, length(28)?);
        let from = at + ZIP_HEADER_BYTES;
        (from + name + extra == start)
            .then(|| String::from_utf8_lossy(&bytes[from..from + name]).into_owned())
    });
    names.next().unwrap_or_else(|| format!("{start:#x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_files_have_their_names() {
        let mut archive = vec![0u8; 100];
        let header = archive.len();
        archive.extend(ZIP_SIGNATURE);
        archive.extend([0; 22]);
        archive.extend(11u16.to_le_bytes());
        let padding = 4096 - header - ZIP_HEADER_BYTES - 11;
        archive.extend((padding as u16).to_le_bytes());
        archive.extend(b"lib/libx.so");
        archive.resize(4096, 0);
        archive.extend(ELF_MAGIC);
        assert_eq!(name(&archive, 4096), "lib/libx.so");
        assert_eq!(name(&archive, 4097), "0x1001");
    }

    #[test]
    fn offsets_beyond_the_file_and_headers_of_nothing_end_soon() {
        let mut bytes = Vec::new();
        for _ in 0..1000 {
            bytes.extend(ELF_MAGIC);
            bytes.resize(bytes.len().next_multiple_of(PAGE_BYTES), 0);
        }
        let members = [(0, 5), (1, bytes.len() as u64), (2, 1 << 60), (3, u64::MAX)];
        assert!(images(&bytes, &members).is_empty());
        assert!(images(&[], &members).is_empty());
    }
}
