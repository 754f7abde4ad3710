//! What a trace says of its run. Nothing that tells one host or hour from another: equal runs give equal
//! files.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::json;
use symbols::BuildId;

use super::Plan;
use crate::failure::{BadInput, bad_input};
use crate::host::sha256::sha256;
use crate::run_folder::trace_metadata::{BootFile, TraceMetadata};
use crate::spec::Spec;

/// The trace's metadata: simulator, configuration, core, clock, samplers, and the files that booted.
pub(super) fn metadata(plan: &Plan) -> Result<String, BadInput> {
    let described = TraceMetadata {
        tipsim: Some(env!("CARGO_PKG_VERSION").to_owned()),
        name: Some(plan.spec.name.clone()),
        clock_hz: u64::from(plan.preset.clock.mhz) * 1_000_000,
        core: json!(plan.preset),
        samplers: plan.samplers.clone(),
        region: plan.spec.run.region,
        command: plan.spec.run.command.clone(),
        stages: plan.spec.record.stages,
        call_stacks: plan.spec.record.call_stacks,
        bootargs: Some(plan.bootargs.clone()),
        spec: json!(without_folders(&plan.spec)),
        guest: guest(plan)?,
        packages: plan.package_list().map(<[_]>::to_vec),
    };
    Ok(json!(described).to_string())
}

/// The spec with names of files instead of their paths on the host.
fn without_folders(spec: &Spec) -> Spec {
    let mut spec = spec.clone();
    let bare = |path: &mut PathBuf| {
        *path = path.file_name().map(PathBuf::from).unwrap_or_default();
    };
    spec.paths().for_each(bare);
    let mut preset = PathBuf::from(&spec.core.preset);
    bare(&mut preset);
    spec.core.preset = preset.display().to_string();
    spec
}

/// Returns what boots, by content. The build ID is that of the file with symbols. Disks, which may be large, are
/// described by their size alone.
pub(super) fn guest(plan: &Plan) -> Result<BTreeMap<String, BootFile>, BadInput> {
    let files = &plan.files;
    let mut described = BTreeMap::new();
    let role_of_first = if plan.program.is_some() { "program" } else { "firmware" };
    for (role, file, symbols) in [
        (role_of_first, Some(&files.firmware), files.firmware_elf.as_deref()),
        ("kernel", files.kernel.as_ref(), files.vmlinux.as_deref()),
        ("initrd", files.initrd.as_ref(), None),
    ] {
        let Some(file) = file else { continue };
        let bytes = std::fs::read(file).map_err(|e| bad_input(file, e))?;
        let elf = symbols.unwrap_or(file);
        let hash = sha256(&bytes[..]).map_err(|e| bad_input(file, e))?;
        let found = BootFile {
            bytes: bytes.len() as u64,
            sha256: Some(hash),
            build_id: BuildId::of(elf).map(|id| id.to_string()),
        };
        described.insert(role.to_owned(), found);
    }
    for (n, drive) in plan.drives.iter().enumerate() {
        let size = |drive: &Path| std::fs::metadata(drive).map(|m| m.len());
        let bytes = size(drive).map_err(|e| bad_input(drive, e))?;
        described.insert(format!("drive{n}"), BootFile { bytes, ..BootFile::default() });
    }
    Ok(described)
}

/// Returns a hash of what boots and of what else of the host the guest sees: a checkpoint is of one such guest.
pub(super) fn guest_name(plan: &Plan) -> anyhow::Result<String> {
    let input = plan.spec.run.input.as_deref().filter(|_| plan.program.is_some());
    let input = input.map(|input| sha256(File::open(input)?)).transpose()?;
    let described = json!({
        "guest": guest(plan)?,
        "bootargs": plan.bootargs,
        "clock": plan.epoch,
        "arguments": plan.spec.guest.arguments,
        "input": input,
    });
    Ok(sha256(described.to_string().as_bytes())?)
}
