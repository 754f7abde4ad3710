//! Attributes of files that only the guest sees: owners, special mode bits, times of what it wrote, and the kind of pipes,
//! sockets and devices. They are kept here for one run, since the host's user may not be allowed to set them, and the
//! host's clock must not reach the guest.

use std::collections::{BTreeMap, HashMap};

use rustix::fs::Stat;
use rustix::io::Errno;

use super::Result;

/// Maximum number of bytes of one file's extended attributes that are kept here.
pub(crate) const EXTENDED_MAX: usize = 64 << 10;
/// Maximum number of bytes of all files' extended attributes that are kept here.
const ALL_EXTENDED_MAX: usize = if cfg!(test) { 128 << 10 } else { 64 << 20 };

/// The attributes of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attribute {
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Set-user-ID, set-group-ID and sticky bits.
    pub special: u32,
    /// For a pipe, socket or device that the guest made: the kind's bits of the mode, and the device number. On the host
    /// it is an empty file.
    pub device: Option<(u32, u32)>,
    /// Last access, in nanoseconds since 1970. Reading does not change it (`noatime`). Here and below, `None` stands for
    /// the modification time of the host's file.
    pub accessed: Option<u64>,
    /// Last change of the content.
    pub modified: Option<u64>,
    /// Last change of anything.
    pub changed: Option<u64>,
    /// Creation; `None`: not known.
    pub born: Option<u64>,
    /// Extended attributes that the host's file cannot have.
    pub extended: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The guest changed the content since `version` was taken.
    written: bool,
    /// Modification time and size of the host's file when they were last compared.
    version: Option<(u64, i64)>,
    /// Somebody on the host changed the file since the guest last opened it.
    stale: bool,
}

/// The attributes of every file that the guest has looked at; the others belong to root.
#[derive(Default)]
pub(crate) struct Attributes {
    files: HashMap<u64, Attribute>,
    /// Bytes of all extended attributes that are kept here.
    extended: usize,
}

impl Attributes {
    /// True if the guest has looked at nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the attributes of the file with this number; `None` if the guest has not looked at it.
    pub(crate) fn get(&self, number: u64) -> Option<&Attribute> {
        self.files.get(&number)
    }

    /// Returns the attributes of the file with this number, to be changed.
    pub(crate) fn change(&mut self, number: u64) -> &mut Attribute {
        self.files.entry(number).or_default()
    }

    /// Adds a new file.
    pub(crate) fn create(&mut self, number: u64, (uid, gid): (u32, u32), special: u32, time: u64) {
        let now = Some(time);
        self.forget(number);
        self.files.insert(
            number,
            Attribute {
                uid,
                gid,
                special,
                accessed: now,
                modified: now,
                changed: now,
                born: now,
                written: true,
                ..Attribute::default()
            },
        );
    }

    /// Notes that the guest changed the content of a file or folder.
    pub(crate) fn touch(&mut self, number: u64, time: u64) {
        let attribute = self.change(number);
        attribute.set_written(time);
        (attribute.modified, attribute.changed) = (Some(time), Some(time));
    }

    /// Keeps an extended attribute that the host's file cannot have, unless too much is kept already.
    pub(crate) fn keep_extended(&mut self, number: u64, name: &[u8], value: &[u8]) -> Result {
        let kept = &mut self.files.entry(number).or_default().extended;
        let of_file = bytes(kept);
        let before = kept.get(name).map_or(0, |value| name.len() + value.len());
        let new = name.len() + value.len();
        if of_file - before + new > EXTENDED_MAX || self.extended - before + new > ALL_EXTENDED_MAX
        {
            return Err(Errno::NOSPC);
        }
        self.extended = self.extended - before + new;
        kept.insert(name.to_vec(), value.to_vec());
        Ok(())
    }

    /// Drops an extended attribute that is kept here; false if there is none.
    pub(crate) fn drop_extended(&mut self, number: u64, name: &[u8]) -> bool {
        let kept = &mut self.files.entry(number).or_default().extended;
        let value = kept.remove(name);
        self.extended -= value.as_ref().map_or(0, |value| name.len() + value.len());
        value.is_some()
    }

    /// The file is gone for good.
    pub(crate) fn forget(&mut self, number: u64) {
        let gone = self.files.remove(&number);
        self.extended -= gone.map_or(0, |attribute| bytes(&attribute.extended));
    }
}

/// Bytes of extended attributes.
fn bytes(extended: &BTreeMap<Vec<u8>, Vec<u8>>) -> usize {
    let extended = extended.iter();
    extended.map(|(name, value)| name.len() + value.len()).sum()
}

impl Attribute {
    /// The guest changes the content or the times: from now on it sees the times kept here instead of the host's.
    pub(crate) fn set_written(&mut self, time: u64) {
        self.written = true;
        let before = self.version.map_or(time, |(host, _)| host);
        for time in [&mut self.accessed, &mut self.modified, &mut self.changed] {
            time.get_or_insert(before);
        }
    }

    /// Compares with the host's file. If another program changed that, the guest sees the host's times again.
    pub(crate) fn follow(&mut self, stat: &Stat, folder: bool) {
        let size = if folder { 0 } else { stat.st_size };
        let now = Some((host_time(stat), size));
        if !self.written && self.version.is_some() && self.version != now {
            (self.accessed, self.modified, self.changed) = (None, None, None);
            self.stale = true;
        }
        (self.written, self.version) = (false, now);
    }

    /// True once after another program changed the host's file: the guest's cached content is then stale.
    pub(crate) fn take_stale(&mut self) -> bool {
        std::mem::take(&mut self.stale)
    }

    /// Clears set-user-ID, and set-group-ID of programs, as the kernel does after a write by an unprivileged process.
    pub(crate) fn drop_set_id(&mut self, permissions: u32) {
        self.special &= !0o4000;
        if permissions & 0o010 != 0 {
            self.special &= !0o2000;
        }
    }
}

/// When the host's file was last changed, in nanoseconds since 1970.
#[allow(clippy::unnecessary_cast, reason = "not all hosts have the same widths")]
pub(crate) fn host_time(stat: &Stat) -> u64 {
    let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(stat.st_mtime_nsec as u64)
}
