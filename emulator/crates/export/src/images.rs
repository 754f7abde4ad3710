//! The files that are mapped in memory, for formats that symbolize or disassemble by themselves.

use std::collections::BTreeSet;

use profile::Mapping;
use symbols::{BuildId, ModuleId, code_segments, place};

use super::Export;

/// A part of a file that is mapped in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Image {
    /// First address.
    pub start: u64,
    /// Length, in bytes.
    pub len: u64,
    /// Offset of `start` in the file, in bytes.
    pub file_offset: u64,
    /// The host's file, or the guest's path if the host has none.
    pub path: String,
    /// Build ID; empty if the file has none.
    pub build_id: Vec<u8>,
}

impl Image {
    pub(crate) fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.len
    }
}

impl Export<'_> {
    /// A process's mapping as an image.
    pub(super) fn image(&self, mapping: &Mapping) -> Image {
        let id = (!mapping.build_id.is_empty()).then(|| BuildId(mapping.build_id.clone()));
        let module = self.symbols.modules.iter().find(|module| {
            *module.path == *mapping.path && (id.is_none() || module.build_id == id)
        });
        let file = module.and_then(|module| module.file.as_ref());
        Image {
            start: mapping.start,
            len: mapping.len,
            file_offset: mapping.file_offset,
            path: match file {
                Some(file) => file.display().to_string(),
                None => mapping.path.clone(),
            },
            build_id: mapping.build_id.clone(),
        }
    }

    /// The image that holds a row, of those that its process mapped or of the `shared` ones.
    pub(super) fn image_of(&self, row: usize, shared: &[Image]) -> Option<Image> {
        let static_info = self.static_info(row);
        if self.is_kernel(row) {
            let image = shared.iter().find(|image| image.contains(static_info.pc));
            return image.cloned();
        }
        let mapping = place::mapping(self.evaluation, self.rows()[row].process, static_info);
        mapping.map(|mapping| self.image(mapping))
    }

    /// The executable segments of kernel and firmware, where the guest executed them: the kernel's
    /// at its physical address too, as its first instructions run untranslated.
    pub(super) fn shared_images(&self) -> Vec<Image> {
        // Pairs of a module and the distance between its run-time and its link-time addresses, from any of its rows.
        let mut places: BTreeSet<(ModuleId, u64)> = BTreeSet::new();
        for row in 0..self.rows().len() {
            if place::is_shared(self.static_info(row)) && self.module(row).file.is_some() {
                let at = self.location(row);
                let bias = self.static_info(row).pc.wrapping_sub(at.offset);
                places.insert((at.module, bias));
            }
        }
        let mut images = Vec::new();
        for (module, bias) in places {
            let module = self.symbols.module(module);
            let Some(file) = &module.file else { continue };
            images.extend(code_segments(file).into_iter().map(|segment| Image {
                start: segment.address.wrapping_add(bias),
                len: segment.size,
                file_offset: segment.offset,
                path: file.display().to_string(),
                build_id: module.build_id.as_ref().map_or(Vec::new(), |id| id.0.clone()),
            }));
        }
        images
    }
}
