//! The guest's open files and folders.

use std::collections::HashMap;
use std::fs::File;
use std::rc::Rc;

use rustix::io::Errno;

use super::Result;
use super::node::{Entry, Node, Open};

/// Most handles; each takes a little of the host's memory.
const HANDLES_MAX: usize = 1 << 16;
/// Bytes that the entries of all folders that are being listed may take of the host's memory.
const LISTED_MAX: usize = if cfg!(test) { 1 << 20 } else { 256 << 20 };

struct Handle {
    node: Rc<Node>,
    open: Open,
}

/// All handles.
#[derive(Default)]
pub(crate) struct Handles {
    open: HashMap<u64, Handle>,
    last: u64,
    /// Bytes of the entries of all folders that are being listed.
    listed: usize,
}

/// Bytes that entries take of the host's memory.
fn bytes(entries: &[Entry]) -> usize {
    let names = entries.iter().map(|entry| entry.name.capacity());
    size_of_val(entries) + names.sum::<usize>()
}

impl Handles {
    /// A new handle.
    pub(crate) fn insert(&mut self, node: Rc<Node>, open: Open) -> Result<u64> {
        if self.open.len() == HANDLES_MAX {
            return Err(Errno::NFILE);
        }
        self.last += 1;
        self.open.insert(self.last, Handle { node, open });
        Ok(self.last)
    }

    /// An open file, and its node.
    pub(crate) fn file(&self, handle: u64) -> Result<(&Node, &File)> {
        match self.open.get(&handle) {
            Some(Handle { node, open: Open::File { file, .. } }) => Ok((node, file)),
            _ => Err(Errno::BADF),
        }
    }

    /// Returns the folder that a handle lists, and its entries; `EBADF` if the handle is no open folder.
    pub(crate) fn folder(&self, handle: u64) -> Result<(&Rc<Node>, &[Entry])> {
        match self.open.get(&handle) {
            Some(Handle { node, open: Open::Folder(entries) }) => Ok((node, entries)),
            _ => Err(Errno::BADF),
        }
    }

    /// Makes these the entries that a handle lists; `ENFILE` if too many folders are being listed.
    pub(crate) fn list(&mut self, handle: u64, new: Vec<Entry>) -> Result {
        let Some(Handle { open: Open::Folder(entries), .. }) = self.open.get_mut(&handle) else {
            return Err(Errno::BADF);
        };
        self.listed -= bytes(entries);
        *entries = Vec::new();
        if self.listed + bytes(&new) > LISTED_MAX {
            return Err(Errno::NFILE);
        }
        self.listed += bytes(&new);
        *entries = new;
        Ok(())
    }

    /// Gives a handle up.
    pub(crate) fn remove(&mut self, handle: u64) -> Result {
        let handle = self.open.remove(&handle).ok_or(Errno::BADF)?;
        if let Open::Folder(entries) = &handle.open {
            self.listed -= bytes(entries);
        }
        Ok(())
    }

    /// True if there is no handle.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Gives all handles up.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
        self.listed = 0;
    }
}
