//! The guest's open files and folders.

use std::collections::HashMap;
use std::fs::File;
use std::rc::Rc;

use rustix::io::Errno;

use super::Result;
use super::node::{Entry, Node, Open};

/// Most handles; each takes a little of the host's memory.
const HANDLES_MAX: usize = 1 << 16;

struct Handle {
    node: Rc<Node>,
    open: Open,
}

/// All handles.
#[derive(Default)]
pub struct Handles {
    open: HashMap<u64, Handle>,
    last: u64,
}

impl Handles {
    /// A new handle.
    pub fn insert(&mut self, node: Rc<Node>, open: Open) -> Result<u64> {
        if self.open.len() == HANDLES_MAX {
            return Err(Errno::NFILE);
        }
        self.last += 1;
        self.open.insert(self.last, Handle { node, open });
        Ok(self.last)
    }

    /// An open file, and its node.
    pub fn file(&self, handle: u64) -> Result<(&Node, &File)> {
        match self.open.get(&handle) {
            Some(Handle {
                node,
                open: Open::File { file, .. },
            }) => Ok((node, file)),
            _ => Err(Errno::BADF),
        }
    }

    /// Returns the folder that a handle lists, and its entries; `EBADF` if the handle is no open folder.
    pub fn folder(&mut self, handle: u64) -> Result<(&Rc<Node>, &mut Vec<Entry>)> {
        match self.open.get_mut(&handle) {
            Some(Handle {
                node,
                open: Open::Folder(entries),
            }) => Ok((node, entries)),
            _ => Err(Errno::BADF),
        }
    }

    /// Gives a handle up.
    pub fn remove(&mut self, handle: u64) -> Result {
        self.open.remove(&handle).map(drop).ok_or(Errno::BADF)
    }

    /// True if there is no handle.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Gives all handles up.
    pub fn clear(&mut self) {
        self.open.clear();
    }
}
