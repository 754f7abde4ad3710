//! The shared folder: names are looked up here, and nothing else of the host can be reached.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RawDir, RenameFlags, Stat};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Result;
use super::node::{Descriptor, Entry, Inode, Node, Open, inode, os, permissions};

/// Number of the shared folder itself (`FUSE_ROOT_ID`).
pub(crate) const ROOT: u64 = 1;

const NAME_MAX: usize = 255;
/// File descriptors reserved for the rest of the program.
const RESERVED_DESCRIPTORS: u64 = 128;

/// The folder cannot be shared.
#[derive(Debug, thiserror::Error)]
#[error("shared folder {path}: {error}")]
pub struct FolderError {
    path: PathBuf,
    error: io::Error,
}

/// A file that the guest knows.
struct KnownNode {
    node: Rc<Node>,
    /// FUSE lookup count: how often replies named the file, less what the guest forgot.
    lookups: u64,
}

/// The shared folder and the files in it that the guest has seen.
pub(crate) struct Folder {
    root: Rc<Node>,
    numbers: HashMap<Inode, u64>,
    known: HashMap<u64, KnownNode>,
    last_number: u64,
    /// Counter whose references are the file descriptors in use.
    descriptors: Rc<()>,
    descriptors_max: usize,
}

impl Folder {
    /// Opens the folder to share.
    pub(crate) fn open(path: &Path) -> std::result::Result<Self, FolderError> {
        let failed = |e: Errno| FolderError { path: path.to_owned(), error: e.into() };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = fs::open(path, flags, Mode::empty()).map_err(failed)?;
        let stat = fs::fstat(&fd).map_err(failed)?;
        let descriptors = Rc::new(());
        Ok(Self {
            numbers: HashMap::from([(inode(&stat), ROOT)]),
            root: Rc::new(Node {
                fd,
                number: ROOT,
                kind: FileType::Directory,
                _descriptor: Descriptor(descriptors.clone()),
            }),
            known: HashMap::new(),
            last_number: ROOT,
            descriptors,
            descriptors_max: raise_descriptor_limit(),
        })
    }

    /// True if no file in it was seen yet.
    pub(crate) fn is_untouched(&self) -> bool {
        self.last_number == ROOT
    }

    /// A file that the guest knows.
    pub(crate) fn node(&self, number: u64) -> Result<Rc<Node>> {
        if number == ROOT {
            return Ok(self.root.clone());
        }
        let known = self.known.get(&number).ok_or(Errno::STALE)?;
        Ok(known.node.clone())
    }

    /// Finds a name in a folder.
    pub(crate) fn find(&mut self, parent: &Node, name: &[u8]) -> Result<Rc<Node>> {
        if parent.kind != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        check_name(name)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = self.descriptor()?;
        let fd = fs::openat(&parent.fd, os(name), flags, Mode::empty())?;
        self.number_node(fd, descriptor)
    }

    /// Adds one to a file's lookup count: a reply names it.
    pub(crate) fn add_lookup(&mut self, node: &Rc<Node>) {
        if node.number != ROOT {
            let known = self
                .known
                .entry(node.number)
                .or_insert_with(|| KnownNode { node: node.clone(), lookups: 0 });
            known.lookups = known.lookups.saturating_add(1);
        }
    }

    /// Takes `lookups` off a file's lookup count (`FORGET`). Returns its number if it was removed and is now unreachable.
    pub(crate) fn forget(&mut self, number: u64, lookups: u64) -> Option<u64> {
        let known = self.known.get_mut(&number)?;
        known.lookups = known.lookups.saturating_sub(lookups);
        if known.lookups != 0 {
            return None;
        }
        let node = self.known.remove(&number)?.node;
        let gone = node.stat().ok().filter(is_removed)?;
        self.numbers.remove(&inode(&gone))
    }

    /// The guest forgets everything.
    pub(crate) fn forget_all(&mut self) {
        self.known.clear();
    }

    /// Opens a regular file or a folder, the latter not listed yet.
    pub(crate) fn open_node(&self, node: &Node, flags: OFlags) -> Result<Open> {
        match node.kind {
            FileType::Directory => Ok(Open::Folder(Vec::new())),
            FileType::RegularFile => {
                let descriptor = self.descriptor()?;
                // The link leads to the file of the descriptor that is held, a regular file.
                let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
                let fd = fs::open(node.magic_link(), flags, Mode::empty())?;
                if flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
                    drop_special_bits(&fd)?;
                }
                Ok(Open::File { file: fd.into(), _descriptor: descriptor })
            }
            // Pipes, sockets and devices of the host stay the host's.
            _ => Err(Errno::NXIO),
        }
    }

    /// Creates a file that does not exist yet.
    pub(crate) fn create(&mut self, parent: &Node, name: &[u8], mode: u32) -> Result<Rc<Node>> {
        check_name(name)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let _descriptor = self.descriptor()?;
        let fd = fs::openat(&parent.fd, os(name), flags, Mode::from_raw_mode(0o600))?;
        // A call of its own, which the host's umask does not affect.
        fs::fchmod(&fd, permissions(mode))?;
        self.find(parent, name)
    }

    /// Creates a file without a name.
    pub(crate) fn create_unnamed(&mut self, parent: &Node) -> Result<Rc<Node>> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let (descriptor, _other) = (self.descriptor()?, self.descriptor()?);
        let file = fs::openat(&parent.fd, ".", flags, Mode::from_raw_mode(0o600))?;
        // A call of its own, which the host's umask does not affect: the file will be opened once more.
        fs::fchmod(&file, Mode::from_raw_mode(0o600))?;
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let fd = fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        self.number_node(fd, descriptor)
    }

    /// Creates a folder.
    pub(crate) fn make_folder(
        &mut self,
        parent: &Node,
        name: &[u8],
        mode: u32,
    ) -> Result<Rc<Node>> {
        check_name(name)?;
        fs::mkdirat(&parent.fd, os(name), Mode::from_raw_mode(0o700))?;
        let node = self.find(parent, name)?;
        node.set_permissions(mode)?;
        Ok(node)
    }

    /// Creates a symbolic link. Its target may lie anywhere: it is the guest that follows it.
    pub(crate) fn make_link(
        &mut self,
        parent: &Node,
        name: &[u8],
        target: &[u8],
    ) -> Result<Rc<Node>> {
        check_name(name)?;
        fs::symlinkat(os(target), &parent.fd, os(name))?;
        self.find(parent, name)
    }

    /// Gives a file a second name, or the first one to one that has none.
    pub(crate) fn hard_link(&mut self, node: &Node, parent: &Node, name: &[u8]) -> Result {
        check_name(name)?;
        let follow = AtFlags::SYMLINK_FOLLOW;
        fs::linkat(fs::CWD, node.magic_link(), &parent.fd, os(name), follow)
    }

    /// Removes a name. Returns the file's number if it was the last name and the guest does not know the file.
    pub(crate) fn remove(
        &mut self,
        parent: &Node,
        name: &[u8],
        folder: bool,
    ) -> Result<Option<u64>> {
        check_name(name)?;
        let last = self.last_name(parent, name);
        let flags = if folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        fs::unlinkat(&parent.fd, os(name), flags)?;
        Ok(last.and_then(|inode| self.removed(inode)))
    }

    /// Renames or exchanges. Returns the number of a replaced file if it is unreachable now.
    pub(crate) fn rename(
        &mut self,
        from: (&Node, &[u8]),
        to: (&Node, &[u8]),
        flags: RenameFlags,
    ) -> Result<Option<u64>> {
        check_name(from.1)?;
        check_name(to.1)?;
        let replaced = match flags.contains(RenameFlags::EXCHANGE) {
            true => None,
            false => self.last_name(to.0, to.1),
        };
        let moved = fs::statat(&from.0.fd, os(from.1), AtFlags::SYMLINK_NOFOLLOW)?;
        if flags.is_empty() {
            fs::renameat(&from.0.fd, os(from.1), &to.0.fd, os(to.1))?;
        } else {
            fs::renameat_with(&from.0.fd, os(from.1), &to.0.fd, os(to.1), flags)?;
        }
        Ok(replaced
            .filter(|replaced| *replaced != inode(&moved))
            .and_then(|inode| self.removed(inode)))
    }

    /// The entries of a folder by name, `.` and `..` first.
    pub(crate) fn list(&mut self, folder: &Node) -> Result<Vec<Entry>> {
        let _descriptor = self.descriptor()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = fs::openat(&folder.fd, ".", flags, Mode::empty())?;
        let mut names = Vec::new();
        let mut buffer = Vec::with_capacity(32 << 10);
        let mut entries = RawDir::new(&fd, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        names.sort_unstable();
        let entry = |name: &[u8], number, kind| Entry { name: name.to_vec(), number, kind };
        let mut list = vec![
            entry(b".", folder.number, FileType::Directory),
            entry(b"..", self.parent_number(folder), FileType::Directory),
        ];
        for name in names {
            // Another program on the host may have removed it meanwhile.
            let Ok(stat) = fs::statat(&folder.fd, os(&name), AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let kind = FileType::from_raw_mode(stat.st_mode);
            list.push(entry(&name, self.number(&stat), kind));
        }
        Ok(list)
    }

    /// The number for the entry `..`. It is only shown (`ls -ia`): the guest's kernel resolves `..` itself.
    fn parent_number(&self, folder: &Node) -> u64 {
        if folder.number == ROOT {
            return ROOT;
        }
        let parent = fs::statat(&folder.fd, "..", AtFlags::empty());
        parent.ok().and_then(|stat| self.numbers.get(&inode(&stat)).copied()).unwrap_or(ROOT)
    }

    /// The node of an open file: the one that the guest knows, or a new one.
    fn number_node(
        &mut self,
        fd: std::os::fd::OwnedFd,
        descriptor: Descriptor,
    ) -> Result<Rc<Node>> {
        let stat = fs::fstat(&fd)?;
        let number = self.number(&stat);
        if let Ok(node) = self.node(number) {
            return Ok(node);
        }
        Ok(Rc::new(Node {
            fd,
            number,
            kind: FileType::from_raw_mode(stat.st_mode),
            _descriptor: descriptor,
        }))
    }

    fn number(&mut self, stat: &Stat) -> u64 {
        *self.numbers.entry(inode(stat)).or_insert_with(|| {
            self.last_number += 1;
            self.last_number
        })
    }

    /// The inode of a name, if that is its only name.
    fn last_name(&self, parent: &Node, name: &[u8]) -> Option<Inode> {
        let stat = fs::statat(&parent.fd, os(name), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        (folder || stat.st_nlink == 1).then(|| inode(&stat))
    }

    /// Drops the number of a removed file, and returns it: the host reuses the inode number, and the new file must not get
    /// the old file's number. `None` while the guest knows the file: its descriptor keeps the inode from being reused.
    fn removed(&mut self, inode: Inode) -> Option<u64> {
        let number = *self.numbers.get(&inode)?;
        if self.known.contains_key(&number) {
            return None;
        }
        self.numbers.remove(&inode)
    }

    fn descriptor(&self) -> Result<Descriptor> {
        if Rc::strong_count(&self.descriptors) > self.descriptors_max {
            return Err(Errno::NFILE);
        }
        Ok(Descriptor(self.descriptors.clone()))
    }
}

/// Takes set-user-ID and the like from a host's file that the guest is about to write: a program of the host's user must not get the
/// guest's content. The host's kernel does not do so if that user is root.
fn drop_special_bits(file: &impl AsFd) -> Result {
    let mode = fs::fstat(file)?.st_mode;
    match mode & 0o7000 {
        0 => Ok(()),
        _ => fs::fchmod(file, permissions(mode)),
    }
}

/// True for a file without a name. (Some file systems count one link of every folder, removed or not.)
fn is_removed(stat: &Stat) -> bool {
    stat.st_nlink == 0
}

/// Checks that a name is a single path component, and not `.` or `..`.
fn check_name(name: &[u8]) -> Result {
    if matches!(name, b"" | b"." | b"..") || name.iter().any(|byte| matches!(byte, b'/' | 0)) {
        return Err(Errno::INVAL);
    }
    if name.len() > NAME_MAX { Err(Errno::NAMETOOLONG) } else { Ok(()) }
}

/// Raises the process's limit of file descriptors, since every file that the guest knows holds one. Returns the maximum
/// number for the shared folder.
fn raise_descriptor_limit() -> usize {
    const MOST: u64 = 1 << 18;
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(MOST).min(MOST).max(limit.current.unwrap_or(0));
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    let now = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => wanted,
        Err(_) => limit.current.unwrap_or(wanted),
    };
    now.saturating_sub(RESERVED_DESCRIPTORS) as usize
}
