//! Extended attributes. Users' own are on the host if its file system has them; the others are kept here for the run, as are
//! those that the host cannot have.

use rustix::fs::{self, XattrFlags};
use rustix::io::Errno;

use crate::virtio::fs::attributes::EXTENDED_MAX;
use crate::virtio::fs::node::Node;
use crate::virtio::fs::wire::{Reader, Writer};
use crate::virtio::fs::{Call, Result};

impl Call<'_> {
    pub(super) fn getxattr(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (size, _, name) = (r.u32()?, r.u32()?, r.name()?);
        let node = self.node()?;
        let kept = self.server.attributes.get(node.number);
        let value = match kept.and_then(|attribute| attribute.extended.get(name)) {
            Some(value) => value.clone(),
            None if is_users(name)? => host_value(&node, name)?,
            None => return Err(Errno::NODATA),
        };
        value_or_size(size, &value, w)
    }

    pub(super) fn listxattr(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let size = r.u32()?;
        let node = self.node()?;
        let mut list = vec![0; EXTENDED_MAX];
        let length = fs::listxattr(node.magic_link(), &mut list[..]).unwrap_or(0);
        let mut names: Vec<Vec<u8>> = list[..length]
            .split(|byte| *byte == 0)
            .filter(|name| name.starts_with(USER))
            .map(<[u8]>::to_vec)
            .collect();
        if let Some(attribute) = self.server.attributes.get(node.number) {
            names.extend(attribute.extended.keys().cloned());
        }
        // The host's order is its own.
        names.sort_unstable();
        names.dedup();
        let list: Vec<u8> = names
            .into_iter()
            .flat_map(|mut name| {
                name.push(0);
                name
            })
            .collect();
        value_or_size(size, &list, w)
    }

    pub(super) fn setxattr(&mut self, r: &mut Reader<'_>) -> Result {
        let (size, flags, name) = (r.u32()?, r.u32()?, r.name()?);
        let value = r.bytes(size as usize)?;
        let node = self.node()?;
        let flags = XattrFlags::from_bits(flags).ok_or(Errno::INVAL)?;
        let on_host = if is_users(name)? {
            fs::setxattr(node.magic_link(), name, value, flags)
        } else {
            Err(Errno::OPNOTSUPP)
        };
        let attributes = &mut self.server.attributes;
        match on_host {
            // The host has none, or no room for it beside the file.
            Err(Errno::OPNOTSUPP | Errno::NOSPC) => {
                let kept = attributes.get(node.number);
                let is_kept = kept.is_some_and(|kept| kept.extended.contains_key(name));
                match (is_kept, flags) {
                    (true, XattrFlags::CREATE) => return Err(Errno::EXIST),
                    (false, XattrFlags::REPLACE) => return Err(Errno::NODATA),
                    _ => {}
                }
                attributes.keep_extended(node.number, name, value)?;
            }
            on_host => on_host?,
        }
        attributes.change(node.number).changed = Some(self.time);
        Ok(())
    }

    pub(super) fn removexattr(&mut self, r: &mut Reader<'_>) -> Result {
        let name = r.name()?;
        let node = self.node()?;
        if !self.server.attributes.drop_extended(node.number, name) {
            if !is_users(name)? {
                return Err(Errno::NODATA);
            }
            match fs::removexattr(node.magic_link(), name) {
                Err(Errno::OPNOTSUPP) => return Err(Errno::NODATA),
                removed => removed?,
            }
        }
        self.server.attributes.change(node.number).changed = Some(self.time);
        Ok(())
    }
}

const USER: &[u8] = b"user.";

/// True for a user's own attribute, which the host's file may have; an error for those that change what a file may do (ACLs).
fn is_users(name: &[u8]) -> Result<bool> {
    if name.starts_with(b"system.") {
        return Err(Errno::OPNOTSUPP);
    }
    Ok(name.starts_with(USER))
}

fn host_value(node: &Node, name: &[u8]) -> Result<Vec<u8>> {
    let mut value = vec![0; EXTENDED_MAX];
    let length = match fs::getxattr(node.magic_link(), name, &mut value[..]) {
        Err(Errno::OPNOTSUPP) => return Err(Errno::NODATA),
        length => length?,
    };
    value.truncate(length);
    Ok(value)
}

/// Replies with a value, or only its size if the guest's buffer size is 0.
fn value_or_size(size: u32, value: &[u8], w: &mut Writer) -> Result {
    if size == 0 {
        w.u32(value.len() as u32);
        w.u32(0);
        return Ok(());
    }
    if value.len() > size as usize {
        return Err(Errno::RANGE);
    }
    w.bytes(value);
    Ok(())
}
