//! Owners, times and special mode bits. They are kept per run and never reach the host: its user
//! may not be allowed to set them, and its clock must not reach the guest.

use std::collections::HashMap;

/// What is remembered of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Set-user-ID, set-group-ID and sticky bits.
    pub special: u32,
    /// Last access, nanoseconds since 1970. Reading does not change it (`noatime`).
    pub accessed: u64,
    /// Last change of the content.
    pub modified: u64,
    /// Last change of anything.
    pub changed: u64,
}

/// The attributes of every file that the guest has changed; the others belong to root and are as
/// old as the run.
pub struct Attributes {
    default: Attribute,
    changed: HashMap<u64, Attribute>,
}

impl Attributes {
    /// Attributes for a run that starts at `epoch`, in nanoseconds since 1970.
    pub fn new(epoch: u64) -> Self {
        let (accessed, modified, changed) = (epoch, epoch, epoch);
        let default = Attribute {
            uid: 0,
            gid: 0,
            special: 0,
            accessed,
            modified,
            changed,
        };
        Self {
            default,
            changed: HashMap::new(),
        }
    }

    /// True if the guest has changed nothing.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty()
    }

    /// Attributes of the file with the number `path`.
    pub fn get(&self, path: u64) -> Attribute {
        self.changed.get(&path).copied().unwrap_or(self.default)
    }

    /// The same, to be changed.
    pub fn change(&mut self, path: u64) -> &mut Attribute {
        self.changed.entry(path).or_insert(self.default)
    }

    /// A new file.
    pub fn create(&mut self, path: u64, (uid, gid): (u32, u32), special: u32, time: u64) {
        let (accessed, modified, changed) = (time, time, time);
        self.changed.insert(
            path,
            Attribute {
                uid,
                gid,
                special,
                accessed,
                modified,
                changed,
            },
        );
    }

    /// The content of a file or folder changed.
    pub fn touch(&mut self, path: u64, time: u64) {
        let attribute = self.change(path);
        (attribute.modified, attribute.changed) = (time, time);
    }

    /// The file is gone for good.
    pub fn forget(&mut self, path: u64) {
        self.changed.remove(&path);
    }
}
