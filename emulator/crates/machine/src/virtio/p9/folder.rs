//! The shared folder: names are looked up here, and nothing else of the host can be reached.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Result;
use super::node::{Descriptor, Entry, Inode, Node, Open, entry_kind, inode, os, permissions};
use super::wire::Qid;

const NAME_MAX: usize = 255;
/// Descriptors that are left to the rest of the program.
const RESERVED_DESCRIPTORS: u64 = 128;

/// The folder cannot be shared.
#[derive(Debug, thiserror::Error)]
#[error("shared folder {path}: {error}")]
pub struct FolderError {
    path: PathBuf,
    error: io::Error,
}

/// Everything that is known of the shared folder.
pub struct Folder {
    root: Rc<Node>,
    numbers: HashMap<Inode, u64>,
    live: HashMap<Inode, Weak<Node>>,
    last_number: u64,
    /// Counts the descriptors in use, by its references.
    descriptors: Rc<()>,
    descriptors_max: usize,
}

impl Folder {
    /// Opens the folder to share.
    pub fn open(path: &Path) -> std::result::Result<Self, FolderError> {
        let failed = |e: Errno| FolderError {
            path: path.to_owned(),
            error: e.into(),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = fs::open(path, flags, Mode::empty()).map_err(failed)?;
        let stat = fs::fstat(&fd).map_err(failed)?;
        let descriptors = Rc::new(());
        let root = Rc::new(Node {
            fd,
            qid: Qid {
                kind: Qid::FOLDER,
                path: 1,
            },
            kind: FileType::Directory,
            place: RefCell::new(None),
            _descriptor: Descriptor(descriptors.clone()),
        });
        Ok(Self {
            numbers: HashMap::from([(inode(&stat), 1)]),
            live: HashMap::from([(inode(&stat), Rc::downgrade(&root))]),
            root,
            last_number: 1,
            descriptors,
            descriptors_max: raise_descriptor_limit(),
        })
    }

    /// True if no file in it was seen yet.
    pub fn is_untouched(&self) -> bool {
        self.last_number == 1
    }

    /// The folder itself.
    pub fn root(&self) -> Rc<Node> {
        self.root.clone()
    }

    /// Finds a name in a folder.
    pub fn find(&mut self, parent: &Rc<Node>, name: &[u8]) -> Result<Rc<Node>> {
        if parent.kind != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        match name {
            b"." => return Ok(parent.clone()),
            b".." => return Ok(parent.parent().unwrap_or_else(|| parent.clone())),
            _ => check_name(name)?,
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = self.descriptor()?;
        let fd = fs::openat(&parent.fd, os(name), flags, Mode::empty())?;
        let stat = fs::fstat(&fd)?;
        if let Some(node) = self.live.get(&inode(&stat)).and_then(Weak::upgrade) {
            return Ok(node);
        }
        let node = Rc::new(Node {
            fd,
            qid: self.qid(&stat),
            kind: FileType::from_raw_mode(stat.st_mode),
            place: RefCell::new(Some((parent.clone(), name.to_vec()))),
            _descriptor: descriptor,
        });
        if self.live.len() > 2 * Rc::strong_count(&self.descriptors) + 64 {
            self.live.retain(|_, node| node.strong_count() != 0);
        }
        self.live.insert(inode(&stat), Rc::downgrade(&node));
        Ok(node)
    }

    /// Opens a regular file or a folder, the latter not listed yet.
    pub fn open_node(&mut self, node: &Rc<Node>, flags: OFlags) -> Result<Open> {
        match node.kind {
            FileType::Directory => Ok(Open::Folder(Vec::new())),
            FileType::RegularFile => {
                let descriptor = self.descriptor()?;
                // The link names the very file that is held, which is known to be a regular one.
                let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
                let fd = fs::open(node.magic_link(), flags, Mode::empty())?;
                Ok(Open::File {
                    file: fd.into(),
                    _descriptor: descriptor,
                })
            }
            // Pipes, sockets and devices of the host stay the host's.
            _ => Err(Errno::NXIO),
        }
    }

    /// Creates a file that does not exist yet.
    pub fn create(&mut self, parent: &Rc<Node>, name: &[u8], mode: u32) -> Result<Rc<Node>> {
        check_name(name)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let _descriptor = self.descriptor()?;
        let fd = fs::openat(&parent.fd, os(name), flags, Mode::from_raw_mode(0o600))?;
        // Set apart, so that the host's umask has no say.
        fs::fchmod(&fd, permissions(mode))?;
        self.find(parent, name)
    }

    /// Creates a folder.
    pub fn make_folder(&mut self, parent: &Rc<Node>, name: &[u8], mode: u32) -> Result<Rc<Node>> {
        check_name(name)?;
        fs::mkdirat(&parent.fd, os(name), Mode::from_raw_mode(0o700))?;
        let node = self.find(parent, name)?;
        node.set_permissions(mode)?;
        Ok(node)
    }

    /// Creates a symbolic link. Its target may lie anywhere: it is the guest that follows it.
    pub fn make_link(&mut self, parent: &Rc<Node>, name: &[u8], target: &[u8]) -> Result<Rc<Node>> {
        check_name(name)?;
        fs::symlinkat(os(target), &parent.fd, os(name))?;
        self.find(parent, name)
    }

    /// Gives a file a second name.
    pub fn hard_link(&mut self, node: &Node, parent: &Node, name: &[u8]) -> Result {
        check_name(name)?;
        let follow = AtFlags::SYMLINK_FOLLOW;
        fs::linkat(fs::CWD, node.magic_link(), &parent.fd, os(name), follow)
    }

    /// Removes a name. Returns the file's number if that was its last name.
    pub fn remove(&mut self, parent: &Node, name: &[u8], folder: bool) -> Result<Option<u64>> {
        check_name(name)?;
        let last = self.last_name(parent, name);
        let flags = if folder {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        fs::unlinkat(&parent.fd, os(name), flags)?;
        Ok(last.and_then(|inode| self.forget(inode)))
    }

    /// Renames. Returns the number of a file that was replaced.
    pub fn rename(
        &mut self,
        from: (&Rc<Node>, &[u8]),
        to: (&Rc<Node>, &[u8]),
    ) -> Result<Option<u64>> {
        check_name(from.1)?;
        check_name(to.1)?;
        let moved = self.find(from.0, from.1)?;
        let replaced = self.last_name(to.0, to.1);
        fs::renameat(&from.0.fd, os(from.1), &to.0.fd, os(to.1))?;
        *moved.place.borrow_mut() = Some((to.0.clone(), to.1.to_vec()));
        let same = |inode: &Inode| self.numbers.get(inode) == Some(&moved.qid.path);
        Ok(replaced
            .filter(|inode| !same(inode))
            .and_then(|inode| self.forget(inode)))
    }

    /// The folder and name of a node, if it is still there.
    pub fn place(&self, node: &Node) -> Result<(Rc<Node>, Vec<u8>)> {
        let (parent, name) = node.place.borrow().clone().ok_or(Errno::BUSY)?;
        let there = fs::statat(&parent.fd, os(&name), AtFlags::SYMLINK_NOFOLLOW)?;
        let here = fs::fstat(&node.fd)?;
        if inode(&there) == inode(&here) {
            Ok((parent, name))
        } else {
            Err(Errno::NOENT)
        }
    }

    /// The entries of a folder by name, `.` and `..` first.
    pub fn list(&mut self, folder: &Rc<Node>) -> Result<Vec<Entry>> {
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
        let parent = folder.parent().unwrap_or_else(|| folder.clone());
        let mut list = vec![
            Entry {
                name: b".".to_vec(),
                qid: folder.qid,
                kind: entry_kind(folder.kind),
            },
            Entry {
                name: b"..".to_vec(),
                qid: parent.qid,
                kind: entry_kind(parent.kind),
            },
        ];
        for name in names {
            // Somebody on the host may have removed it meanwhile.
            let Ok(stat) = fs::statat(&folder.fd, os(&name), AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let kind = entry_kind(FileType::from_raw_mode(stat.st_mode));
            list.push(Entry {
                name,
                qid: self.qid(&stat),
                kind,
            });
        }
        Ok(list)
    }

    fn qid(&mut self, stat: &Stat) -> Qid {
        let path = *self.numbers.entry(inode(stat)).or_insert_with(|| {
            self.last_number += 1;
            self.last_number
        });
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Qid::FOLDER,
            FileType::Symlink => Qid::LINK,
            _ => 0,
        };
        Qid { kind, path }
    }

    /// The inode behind a name, if the name is its last. The host gives the inode number of a
    /// removed file to the next one; that one must not get the old number here.
    fn last_name(&self, parent: &Node, name: &[u8]) -> Option<Inode> {
        let stat = fs::statat(&parent.fd, os(name), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        (folder || stat.st_nlink == 1).then(|| inode(&stat))
    }

    fn forget(&mut self, inode: Inode) -> Option<u64> {
        self.live.remove(&inode);
        self.numbers.remove(&inode)
    }

    fn descriptor(&self) -> Result<Descriptor> {
        if Rc::strong_count(&self.descriptors) > self.descriptors_max {
            return Err(Errno::NFILE);
        }
        Ok(Descriptor(self.descriptors.clone()))
    }
}

/// One component, and not a special one.
fn check_name(name: &[u8]) -> Result {
    if matches!(name, b"" | b"." | b"..") || name.iter().any(|byte| matches!(byte, b'/' | 0)) {
        return Err(Errno::INVAL);
    }
    if name.len() > NAME_MAX {
        Err(Errno::NAMETOOLONG)
    } else {
        Ok(())
    }
}

/// The guest holds a descriptor for every file that it knows. Returns how many there can be.
fn raise_descriptor_limit() -> usize {
    const MOST: u64 = 1 << 16;
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit
        .maximum
        .unwrap_or(MOST)
        .min(MOST)
        .max(limit.current.unwrap_or(0));
    let raised = Rlimit {
        current: Some(wanted),
        maximum: limit.maximum,
    };
    let now = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => wanted,
        Err(_) => limit.current.unwrap_or(wanted),
    };
    now.saturating_sub(RESERVED_DESCRIPTORS) as usize
}
