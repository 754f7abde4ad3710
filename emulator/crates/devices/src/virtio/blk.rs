//! Block device (virtio 1.2, section 5.2).

mod disk;

pub(crate) use disk::Disk;
pub use disk::{DiskError, DiskMode};

use std::path::Path;

use super::{Backend, Request};
use disk::SECTOR;

const HEADER: usize = 16;
/// Maximum size of a segment and maximum number of segments of a request: 8 MiB together.
const SIZE_MAX: u32 = 64 << 10;
const SEGMENTS_MAX: u32 = 126;
const ID_LENGTH: usize = 20;

mod feature {
    pub(crate) const SIZE_MAX: u64 = 1 << 1;
    pub(crate) const SEGMENTS_MAX: u64 = 1 << 2;
    pub(crate) const READ_ONLY: u64 = 1 << 5;
    pub(crate) const BLOCK_SIZE: u64 = 1 << 6;
    pub(crate) const FLUSH: u64 = 1 << 9;
}

mod kind {
    pub(crate) const IN: u32 = 0;
    pub(crate) const OUT: u32 = 1;
    pub(crate) const FLUSH: u32 = 4;
    pub(crate) const GET_ID: u32 = 8;
}

/// The last byte of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Status {
    Ok = 0,
    IoError = 1,
    Unsupported = 2,
}

/// A disk in a file of the host.
pub struct Blk {
    disk: Disk,
    id: [u8; ID_LENGTH],
}

snapshot::snapshot!(Blk { disk } keeps { id });

impl Blk {
    /// Opens the image at `path`. `id` is the serial number that the guest reads, cut to 20 bytes.
    pub fn open(path: &Path, mode: DiskMode, id: &str) -> Result<Self, DiskError> {
        let mut bytes = [0; ID_LENGTH];
        bytes.iter_mut().zip(id.bytes()).for_each(|(to, from)| *to = from);
        Ok(Self { disk: Disk::open(path, mode)?, id: bytes })
    }

    /// Fills `data`, the reply without its status.
    fn execute(&mut self, request: &[u8], data: &mut [u8]) -> Status {
        let Some((header, payload)) = request.split_first_chunk::<HEADER>() else {
            return Status::IoError;
        };
        let kind = u32::from_le_bytes(header[..4].try_into().expect("four bytes"));
        let sector = u64::from_le_bytes(header[8..].try_into().expect("eight bytes"));
        let done = match kind {
            kind::IN => self.at(sector, data.len()).and_then(|at| self.disk.read(at, data)),
            kind::OUT => self.at(sector, payload.len()).and_then(|at| self.disk.write(at, payload)),
            kind::FLUSH => self.disk.flush(),
            kind::GET_ID => {
                data.iter_mut().zip(self.id).for_each(|(to, from)| *to = from);
                Some(())
            }
            // Discard and write-zeroes are not offered.
            _ => return Status::Unsupported,
        };
        done.map_or(Status::IoError, |()| Status::Ok)
    }

    /// Byte offset of whole sectors that are on the disk.
    fn at(&self, sector: u64, length: usize) -> Option<u64> {
        let (at, length) = (sector.checked_mul(SECTOR)?, length as u64);
        let fits = at.checked_add(length)? <= self.disk.size() && length.is_multiple_of(SECTOR);
        fits.then_some(at)
    }
}

impl Backend for Blk {
    fn device_type(&self) -> u32 {
        2
    }

    fn features(&self) -> u64 {
        let read_only = if self.disk.read_only() { feature::READ_ONLY } else { 0 };
        feature::SIZE_MAX | feature::SEGMENTS_MAX | feature::BLOCK_SIZE | feature::FLUSH | read_only
    }

    /// A driver that does not take the features `SIZE_MAX` and `SEGMENTS_MAX`, as U-Boot's, asks for whole files.
    fn request_max(&self) -> u64 {
        u64::MAX
    }

    fn queues(&self) -> usize {
        1
    }

    fn config(&self) -> Vec<u8> {
        let mut config = Vec::with_capacity(24);
        config.extend((self.disk.size() / SECTOR).to_le_bytes());
        config.extend(SIZE_MAX.to_le_bytes());
        config.extend(SEGMENTS_MAX.to_le_bytes());
        config.extend([0; 4]); // geometry, which is not offered
        config.extend((SECTOR as u32).to_le_bytes());
        config
    }

    fn serve(&mut self, request: Request<'_>) -> Option<Vec<u8>> {
        let mut reply = vec![0; request.room];
        // The reply to a request without room for a status is empty.
        if let Some((status, data)) = reply.split_last_mut() {
            *status = self.execute(request.bytes, data) as u8;
        }
        Some(reply)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn request(kind: u32, sector: u64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0; 4]);
        bytes.extend(sector.to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    fn serve(blk: &mut Blk, bytes: &[u8], room: usize) -> (Vec<u8>, u8) {
        let mut reply = blk.serve(Request { queue: 0, bytes, room, nanos: 0 }).unwrap();
        let status = reply.pop().unwrap();
        (reply, status)
    }

    /// A disk of 20 sectors and 100 bytes of another, every byte the number of its sector.
    fn image() -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, (0..20 * 512 + 100).map(|n| (n / 512) as u8).collect::<Vec<_>>()).unwrap();
        file
    }

    #[test]
    fn modes() {
        for mode in [DiskMode::ReadOnly, DiskMode::Writable, DiskMode::CopyOnWrite] {
            let file = image();
            let mut blk = Blk::open(file.path(), mode, "disk").unwrap();
            let (_, status) = serve(&mut blk, &request(kind::OUT, 7, &[0xee; 1024]), 1);
            assert_eq!(status, u8::from(mode == DiskMode::ReadOnly), "{mode:?}");
            assert_eq!(blk.features() & feature::READ_ONLY != 0, mode == DiskMode::ReadOnly);
            let (data, status) = serve(&mut blk, &request(kind::IN, 6, &[]), 4 * 512 + 1);
            let changed = if mode == DiskMode::ReadOnly { [7, 8] } else { [0xee; 2] };
            let sectors: Vec<u8> = data.chunks(512).map(|sector| sector[511]).collect();
            assert_eq!((sectors, status), (vec![6, changed[0], changed[1], 9], 0));
            assert_eq!(serve(&mut blk, &request(kind::FLUSH, 0, &[]), 1).1, 0);
            let on_host = fs::read(&file).unwrap()[7 * 512];
            assert_eq!(on_host, if mode == DiskMode::Writable { 0xee } else { 7 });
        }
    }

    #[test]
    fn who_writes_has_the_image_alone() {
        use DiskMode::{CopyOnWrite, Writable};
        let file = image();
        let open = |mode| Blk::open(file.path(), mode, "disk");
        for (first, second, fits) in [
            (CopyOnWrite, CopyOnWrite, true),
            (CopyOnWrite, Writable, false),
            (Writable, CopyOnWrite, false),
            (Writable, Writable, false),
        ] {
            let held = open(first).unwrap();
            assert_eq!(open(second).is_ok(), fits, "{first:?}, {second:?}");
            drop(held);
            assert!(open(second).is_ok());
        }
    }

    #[test]
    fn identity_and_capacity() {
        let file = image();
        let mut blk = Blk::open(file.path(), DiskMode::ReadOnly, "root").unwrap();
        let (data, status) = serve(&mut blk, &request(kind::GET_ID, 0, &[]), 21);
        assert_eq!((&data[..5], status), (&b"root\0"[..], 0));
        assert_eq!(blk.config()[..8], 21_u64.to_le_bytes());
    }

    #[test]
    fn the_rest_of_the_last_sector_is_zeros() {
        for mode in [DiskMode::ReadOnly, DiskMode::Writable, DiskMode::CopyOnWrite] {
            let file = image();
            let mut blk = Blk::open(file.path(), mode, "disk").unwrap();
            let (data, status) = serve(&mut blk, &request(kind::IN, 19, &[]), 2 * 512 + 1);
            assert_eq!(status, 0, "{mode:?}");
            let last: Vec<u8> = [vec![20; 100], vec![0; 412]].concat();
            assert_eq!((data[511], &data[512..]), (19, &last[..]));
            let (_, status) = serve(&mut blk, &request(kind::OUT, 20, &[0xee; 512]), 1);
            assert_eq!(status, u8::from(mode == DiskMode::ReadOnly));
            let (data, _) = serve(&mut blk, &request(kind::IN, 20, &[]), 513);
            let written = if mode == DiskMode::ReadOnly { 0 } else { 0xee };
            assert_eq!(data[511], written);
            let size = fs::metadata(&file).unwrap().len();
            let whole = mode == DiskMode::Writable;
            assert_eq!(size, if whole { 21 * 512 } else { 20 * 512 + 100 });
        }
    }

    /// A request of 24 MiB in one piece, as a boot loader makes it that loads a kernel.
    #[test]
    fn a_request_is_as_large_as_memory() {
        use crate::RAM_BASE;
        use crate::virtio::driver::{Driver, LARGE_DISK_MEMORY};

        let file = tempfile::NamedTempFile::new().unwrap();
        let sectors = 24 * 2048_u64;
        let bytes: Vec<u8> = (0..sectors * 512).map(|n| (n / 512 % 251) as u8).collect();
        fs::write(&file, bytes).unwrap();
        let blk = Blk::open(file.path(), DiskMode::ReadOnly, "disk").unwrap();
        let mut driver = Driver::with_memory(Box::new(blk), LARGE_DISK_MEMORY);
        let (header, data) = (RAM_BASE + 0x4_0000, RAM_BASE + 0x10_0000);
        let status = data + sectors * 512;
        driver.bus.ram.write(header, &request(kind::IN, 0, &[])).unwrap();
        driver.descriptor(0, 0, header, 16, 1, 1);
        driver.descriptor(0, 1, data, (sectors * 512) as u32, 3, 2);
        driver.descriptor(0, 2, status, 1, 2, 0);
        driver.bus.ram.store(status, 1, 0xff).unwrap();
        driver.offer(0, 0);
        driver.wait(0);
        assert_eq!(driver.used(0), 1);
        assert_eq!(driver.bus.ram.load(status, 1), Some(0));
        for sector in [0, 1, sectors - 1] {
            let found = driver.bus.ram.load(data + sector * 512, 1).unwrap();
            assert_eq!(found, sector % 251);
        }
    }

    #[test]
    fn bad_requests() {
        let file = image();
        let mut blk = Blk::open(file.path(), DiskMode::Writable, "").unwrap();
        let io_error = Status::IoError as u8;
        assert_eq!(serve(&mut blk, &[], 1).1, io_error);
        assert_eq!(serve(&mut blk, &request(kind::IN, 21, &[]), 513).1, io_error);
        assert_eq!(serve(&mut blk, &request(kind::IN, u64::MAX, &[]), 513).1, io_error);
        assert_eq!(serve(&mut blk, &request(kind::IN, 0, &[]), 100).1, io_error);
        assert_eq!(serve(&mut blk, &request(kind::OUT, 20, &[0; 1024]), 1).1, io_error);
        assert_eq!(serve(&mut blk, &request(99, 0, &[]), 1).1, Status::Unsupported as u8);
        let nothing = Request { queue: 0, bytes: &[], room: 0, nanos: 0 };
        assert_eq!(blk.serve(nothing), Some(vec![]));
        assert!(Blk::open(Path::new("/nowhere"), DiskMode::ReadOnly, "").is_err());
    }
}
