//! Checkpoints: a whole machine in a file. It goes on from there as if it had never stopped, to the cycle.
//!
//! ```text
//! "tipsimCP", version (u32), then one zstd frame with checksum:
//!   length (u32), header (JSON)
//!   length (u64), state (`snapshot`): what the console printed, the region, what was kept warm, machine, then the timing core if it was running
//!   (address (u64), 4096 bytes) for every page of memory that is not all zeros; 0
//! ```

use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use snapshot::{Archive, Snapshot, SnapshotError};
use timing::Preset;
use zstd::{Decoder, Encoder};

use crate::engine::Engine;
use crate::error::SimulationError;
use crate::options::Mode;
use crate::region::RegionState;
use crate::system::System;

const MAGIC: &[u8; 8] = b"tipsimCP";
/// Goes up with every change to what is saved.
const VERSION: u32 = 25;
const PAGE: usize = 4096;
/// Headers are a few kilobytes, states a few megabytes and what was written to disks.
const HEADER_MAX: u64 = 1 << 20;
/// Fast: what takes the time is to read memory.
const LEVEL: i32 = 1;
/// What names of files that are being written end in.
pub const PARTIAL_SUFFIX: &str = "partial";

/// What a machine has to be built with before its state can be loaded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Header {
    /// Version of the simulator.
    pub tipsim: String,
    /// Bytes of guest memory.
    pub memory: u64,
    /// Number of harts.
    pub harts: usize,
    /// The core.
    pub core: Preset,
    /// The timing core's state is there.
    pub timing: bool,
    /// Cycles since reset.
    pub cycles: u64,
    /// Instructions since reset.
    pub instructions: u64,
}

/// What a checkpoint has beside the machine.
#[derive(Clone, Debug, Default)]
pub struct CheckpointContext {
    /// What the guest's console has printed.
    pub printed: Vec<u8>,
    /// Where among marks the machine is.
    pub region: RegionState,
    /// What names the guest that booted, such as a hash; empty if nobody asked.
    pub guest: Vec<u8>,
    /// What the core was taught while it was kept warm before its first timed part; empty if it was not.
    pub warmed_state: Vec<u8>,
}

snapshot::snapshot!(CheckpointContext { printed, region, guest, warmed_state });

/// Saves a machine between two runs; the file is there when it is whole.
///
/// # Errors
/// If the file cannot be written, or a device cannot be saved.
pub fn save(
    path: &Path,
    system: &mut System,
    engine: &mut Engine,
    core: &Preset,
    context: &mut CheckpointContext,
) -> Result<(), SimulationError> {
    let mut archive = Archive::saving();
    context.snapshot(&mut archive)?;
    system.snapshot(&mut archive)?;
    let timing = engine.is_timing();
    if timing {
        system.snapshot_engine(engine, &mut archive)?;
    }
    let header = Header {
        tipsim: env!("CARGO_PKG_VERSION").to_owned(),
        memory: system.board.bus.ram.size(),
        harts: system.harts.len(),
        core: core.clone(),
        timing,
        cycles: system.harts.first().cycle(),
        instructions: system.harts.instructions(),
    };
    let header = serde_json::to_vec(&header).map_err(|e| SimulationError::cannot_write(path, e))?;
    let state = archive.into_bytes();
    // Another file can take the place of a file, not that of a device or a pipe.
    if !std::fs::metadata(path).map_or(true, |found| found.is_file()) {
        return Err(SimulationError::cannot_write(path, "expected a file, found something else"));
    }
    let partial = beside(path);
    let write = || -> io::Result<()> {
        let mut file = File::create_new(&partial)?;
        file.write_all(MAGIC)?;
        file.write_all(&VERSION.to_le_bytes())?;
        let mut encoder = Encoder::new(BufWriter::new(file), LEVEL)?;
        encoder.include_checksum(true)?;
        encoder.write_all(&(header.len() as u32).to_le_bytes())?;
        encoder.write_all(&header)?;
        encoder.write_all(&(state.len() as u64).to_le_bytes())?;
        encoder.write_all(&state)?;
        for (address, page) in system.board.bus.ram.pages() {
            encoder.write_all(&address.to_le_bytes())?;
            encoder.write_all(page)?;
        }
        encoder.write_all(&0u64.to_le_bytes())?;
        let file = encoder.finish()?.into_inner().map_err(|e| e.into_error())?;
        // Another host that shares the folder must not find the name before the content.
        file.sync_all()?;
        std::fs::rename(&partial, path)
    };
    write().map_err(|e| {
        let _ = std::fs::remove_file(&partial);
        SimulationError::cannot_write(path, e)
    })
}

/// Returns the state of a machine between two runs, for [`from_memory`]: with the timing cores, if they are running.
pub fn to_memory(system: &mut System, engine: &mut Engine) -> Result<Vec<u8>, SnapshotError> {
    let mut archive = Archive::saving();
    CheckpointContext::default().snapshot(&mut archive)?;
    system.snapshot(&mut archive)?;
    let timing = engine.is_timing();
    if timing {
        system.snapshot_engine(engine, &mut archive)?;
    }
    let state = archive.into_bytes();
    let mut bytes = vec![u8::from(timing)];
    bytes.extend((state.len() as u64).to_le_bytes());
    bytes.extend(state);
    for (address, page) in system.board.bus.ram.pages() {
        bytes.extend(address.to_le_bytes());
        bytes.extend(page);
    }
    bytes.extend(0u64.to_le_bytes());
    Ok(bytes)
}

/// Puts a machine that has run back into a state of [`to_memory`]. Returns the engine that goes on in `mode`.
pub fn from_memory(
    state: &[u8],
    system: &mut System,
    mode: Mode,
    core: &Preset,
) -> Result<Engine, SimulationError> {
    let (timing, mut reader) = state.split_first().unwrap_or((&0, &[]));
    let used: Vec<u64> = system.board.bus.ram.pages().map(|(at, _)| at).collect();
    for address in used {
        system.board.bus.ram.write(address, &[0; PAGE]);
    }
    system.board.bus.exit = None;
    system.harts.renew()?;
    let loaded = load(&mut reader, *timing != 0, system, mode, core);
    Ok(loaded.map_err(|e| SimulationError::Options(e.to_string()))?.0)
}

/// Returns a name beside `path` that nobody else uses. A process number would not do: several hosts may share the folder.
fn beside(path: &Path) -> PathBuf {
    let random = RandomState::new().build_hasher().finish();
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{random:016x}.{PARTIAL_SUFFIX}"));
    name.into()
}

/// A checkpoint that is being read.
pub struct Checkpoint {
    path: PathBuf,
    reader: Decoder<'static, BufReader<File>>,
    /// What the machine must be.
    pub header: Header,
}

impl Checkpoint {
    /// Opens a checkpoint and reads its header.
    pub fn open(path: &Path) -> Result<Self, SimulationError> {
        // To open a pipe would wait for its other end.
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(SimulationError::file(path, "expected a checkpoint, found no file"));
        }
        let file = File::open(path).map_err(|e| SimulationError::file(path, e))?;
        Self::of(path, file)
    }

    /// Reads the header of a checkpoint whose file is open already; `path` is for messages.
    pub fn of(path: &Path, mut file: File) -> Result<Self, SimulationError> {
        let at = |e: Damage| e.of(path);
        let mut start = [0; 12];
        file.read_exact(&mut start).map_err(|e| at(Damage::Read(e)))?;
        let (magic, version) = start.split_at(8);
        if magic != MAGIC {
            return Err(SimulationError::file(path, "expected a checkpoint of tipsim"));
        }
        let version = u32::from_le_bytes([version[0], version[1], version[2], version[3]]);
        if version != VERSION {
            let error = format!("expected a checkpoint of version {VERSION}, found {version}");
            return Err(SimulationError::file(path, error));
        }
        let mut reader = Decoder::new(file).map_err(|e| at(Damage::Read(e)))?;
        let header = header(&mut reader).map_err(at)?;
        Ok(Self { path: path.to_owned(), reader, header })
    }

    /// Loads the state into a machine that was built as the header says and has not run. Returns the engine that goes on in
    /// `mode`, and what the checkpoint has beside the machine. Without the timing core's state in the checkpoint, `core` starts cold.
    pub fn load(
        mut self,
        system: &mut System,
        mode: Mode,
        core: &Preset,
    ) -> Result<(Engine, CheckpointContext), SimulationError> {
        if self.header.timing && mode == Mode::Timing && *core != self.header.core {
            let error = "its timing core is another one than that of --core";
            return Err(SimulationError::file(&self.path, error));
        }
        load(&mut self.reader, self.header.timing, system, mode, core).map_err(|e| e.of(&self.path))
    }
}

/// Why a checkpoint cannot be loaded.
#[derive(Debug, thiserror::Error)]
enum Damage {
    #[error("damaged or cut short: {0}")]
    Read(io::Error),
    #[error("header: {0}")]
    Header(serde_json::Error),
    #[error("header: expected at most {HEADER_MAX} bytes, found {0}")]
    Length(u64),
    #[error("memory: {0:#x} is no page of it")]
    Page(u64),
    #[error("{0}")]
    State(#[from] SnapshotError),
}

impl From<io::Error> for Damage {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

impl Damage {
    fn of(&self, path: &Path) -> SimulationError {
        SimulationError::file(path, self)
    }
}

fn number(reader: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    reader.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Reads `length` bytes. Memory is allocated as they come, not by the announced length.
fn bytes(reader: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn header(reader: &mut impl Read) -> Result<Header, Damage> {
    let mut length = [0; 4];
    reader.read_exact(&mut length)?;
    let length = u64::from(u32::from_le_bytes(length));
    if length > HEADER_MAX {
        return Err(Damage::Length(length));
    }
    serde_json::from_slice(&bytes(reader, length)?).map_err(Damage::Header)
}

fn load(
    reader: &mut impl Read,
    timing: bool,
    system: &mut System,
    mode: Mode,
    core: &Preset,
) -> Result<(Engine, CheckpointContext), Damage> {
    let length = number(reader)?;
    let state = bytes(reader, length)?;
    let mut archive = Archive::loading(&state);
    let mut context = CheckpointContext::default();
    context.snapshot(&mut archive)?;
    system.snapshot(&mut archive)?;
    let mut engine = system.engine(mode, core);
    if timing && mode == Mode::Timing {
        system.snapshot_engine(&mut engine, &mut archive)?;
    }
    // The state of a timing core that is not asked for stays unread in the archive.
    if !timing || mode == Mode::Timing {
        archive.end()?;
    }
    let mut page = [0; PAGE];
    loop {
        let address = number(reader)?;
        if address == 0 {
            break;
        }
        reader.read_exact(&mut page)?;
        let written = system.board.bus.ram.write(address, &page);
        written.ok_or(Damage::Page(address))?;
    }
    // The checksum is checked at the end of the frame.
    io::copy(reader, &mut io::sink())?;
    Ok((engine, context))
}
