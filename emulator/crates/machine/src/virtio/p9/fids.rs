//! The guest's handles.

use std::collections::HashMap;
use std::rc::Rc;

use rustix::io::Errno;

use super::Result;
use super::node::{Node, Open};

/// Most handles; each takes a little of the host's memory.
const FIDS_MAX: usize = 1 << 16;

/// A handle: a file, and how it is open.
pub struct Fid {
    /// The file.
    pub node: Rc<Node>,
    /// User who attached.
    pub uid: u32,
    /// Set once it is opened.
    pub open: Option<Open>,
}

/// All handles.
#[derive(Default)]
pub struct Fids(HashMap<u32, Fid>);

impl Fids {
    /// The handle with this number.
    pub fn get(&mut self, number: u32) -> Result<&mut Fid> {
        self.0.get_mut(&number).ok_or(Errno::BADF)
    }

    /// The file behind a handle.
    pub fn node(&mut self, number: u32) -> Result<Rc<Node>> {
        Ok(self.get(number)?.node.clone())
    }

    /// A new handle, which replaces `replaces` (when a walk moves a handle).
    pub fn insert(
        &mut self,
        number: u32,
        replaces: Option<u32>,
        node: Rc<Node>,
        uid: u32,
    ) -> Result {
        if self.0.contains_key(&number) && replaces != Some(number) {
            return Err(Errno::BADF);
        }
        if self.0.len() == FIDS_MAX {
            return Err(Errno::NFILE);
        }
        self.0.insert(
            number,
            Fid {
                node,
                uid,
                open: None,
            },
        );
        Ok(())
    }

    /// Gives a handle up.
    pub fn remove(&mut self, number: u32) -> Result<Fid> {
        self.0.remove(&number).ok_or(Errno::BADF)
    }

    /// True if there is no handle.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Gives all handles up.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
