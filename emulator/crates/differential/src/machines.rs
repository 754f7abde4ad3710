//! The two machines, QEMU and tipsim: each runs a program and returns its checksums, registers and data.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use commit_trace::{Commit, CommitSink};
use devices::{Bus, Clock, Exit, Htif, RAM_BASE};
use isa::{Extension, Extensions, Untimed};
use machine::{Elf, Hart, Image, Limit, RunExit, Translate};
use timing::{Core, Preset};

use crate::generate::Program;
use crate::layout::*;

/// The result of a run.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// A checksum per block run ([`LOG`]).
    pub log: Vec<u64>,
    /// The save area after the last block run: `x0` to `x31`, `f0` to `f31`, then CSRs, counts and traps.
    pub saved: Vec<u64>,
    /// The memory at [`DATA`].
    pub data: Vec<u8>,
}

/// Execution mode of tipsim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Interpreted, without timing.
    Functional,
    /// Translated to host code from the start, without timing.
    Translated,
    /// Interpreted, with the default timing core.
    Timing,
    /// Translated to host code from the start, with the default timing core.
    TimingTranslated,
}

/// Both machines, ready to run programs.
pub(crate) struct Machines {
    qemu: PathBuf,
    /// QEMU's `-cpu` argument: the model and its extensions.
    cpu: String,
    harness: PathBuf,
    elf: Vec<u8>,
    /// Extensions that both machines have.
    pub extensions: Extensions,
    /// QEMU can be told to fault on a clear A or D bit (Svade) as tipsim does; QEMU before 9.1 sets the bits, and does
    /// not check the PMP for that.
    pub faults_on_clear_bits: bool,
    preset: Preset,
}

/// A sink that ignores a timing core's commits.
pub(crate) struct IgnoredCommits;

impl CommitSink for IgnoredCommits {
    fn commit(&mut self, _: &Commit) {}
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

impl Machines {
    /// Assembles the harness and finds out QEMU's extensions. Temporary files go to `folder`.
    pub(crate) fn new(qemu: &Path, compiler: &Path, folder: &Path) -> anyhow::Result<Self> {
        let (source, script) = (folder.join("harness.S"), folder.join("harness.ld"));
        std::fs::write(&source, include_str!("harness.S"))?;
        std::fs::write(&script, include_str!("harness.ld"))?;
        let harness = folder.join("harness.elf");
        let output = Command::new(compiler)
            .args(["-march=rv64gc", "-mabi=lp64d", "-static", "-nostdlib"])
            .args(["-nostartfiles", "-fno-pic", "-no-pie", "-Wl,--build-id=none", "-T"])
            .args([&script, &source, Path::new("-o"), &harness])
            .output()
            .with_context(|| format!("{}: cannot be run", compiler.display()))?;
        ensure!(
            output.status.success(),
            "{}: {}",
            compiler.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        // QEMU refuses to start with an unknown property; else the monitor's `quit` ends it.
        let qemu_accepts = |property: &str| -> std::io::Result<bool> {
            let cpu = format!("rv64,{property}=true");
            let mut child = Command::new(qemu)
                .args(["-M", "virt", "-display", "none", "-monitor", "stdio", "-S"])
                .args(["-cpu", &cpu])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            if let Some(mut monitor) = child.stdin.take() {
                // A QEMU that did not start has closed the pipe.
                let _ = monitor.write_all(b"quit\n");
            }
            Ok(child.wait()?.success())
        };
        let mut extensions = Extensions::NONE;
        let mut cpu = "rv64,h=false,v=false".to_owned();
        for extension in Extension::ALL {
            // QEMU before 8.1 writes some as `Zfh`.
            let name = extension.name();
            for property in [name.to_owned(), name.replacen('z', "Z", 1)] {
                let present = qemu_accepts(&property)
                    .with_context(|| format!("{}: cannot be run", qemu.display()))?;
                if present && !extensions.has(*extension) {
                    extensions = extensions.with(*extension, true);
                    cpu += &format!(",{property}=true");
                }
            }
        }
        let faults_on_clear_bits = qemu_accepts("svadu=false,svade")
            .with_context(|| format!("{}: cannot be run", qemu.display()))?;
        if faults_on_clear_bits {
            cpu += ",svadu=false,svade=true";
        }
        extensions = extensions.with(Extension::Svadu, false);
        // QEMU before 8.0 has it, too, but no property of that name.
        extensions = extensions.with(Extension::Sv48, true);
        Ok(Self {
            qemu: qemu.to_owned(),
            cpu,
            elf: std::fs::read(&harness)?,
            harness,
            extensions,
            faults_on_clear_bits,
            preset: Preset::default(),
        })
    }

    /// Runs a program on QEMU for `runs` block runs; `None` if QEMU crashes on a division: when QEMU 10.0 folds constants, it
    /// divides the least integer by -1 on the host.
    pub(crate) fn qemu(&self, program: &mut Program, runs: u64) -> anyhow::Result<Option<Outcome>> {
        const SIGFPE: i32 = 8;
        program.poke(PARAMETERS + 8, runs);
        program.poke(PARAMETERS + 16, 0);
        let image = tempfile::Builder::new().prefix("block").tempfile()?;
        std::fs::write(image.path(), &program.image)?;
        let loader =
            format!("loader,file={},addr={TABLES:#x},force-raw=on", image.path().display());
        let output = Command::new("timeout")
            .arg("600")
            .arg(&self.qemu)
            .args(["-M", "virt", "-m", "128M", "-display", "none", "-serial", "none"])
            .args(["-monitor", "none", "-cpu", &self.cpu])
            .args(["-semihosting-config", "enable=on,target=native", "-bios"])
            .arg(&self.harness)
            .args(["-device", &loader])
            .stdin(Stdio::null())
            .output()?;
        if output.status.signal() == Some(SIGFPE) {
            return Ok(None);
        }
        let log = runs as usize * 8;
        let expected = log + SAVE_SIZE as usize + (DATA_PAGES << 12) as usize;
        ensure!(
            output.stdout.len() == expected,
            "QEMU wrote {} bytes, expected {expected}; {} {}",
            output.stdout.len(),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let (log, rest) = output.stdout.split_at(log);
        let (saved, data) = rest.split_at(SAVE_SIZE as usize);
        Ok(Some(Outcome { log: words(log), saved: words(saved), data: data.to_owned() }))
    }

    /// Runs a program on tipsim for `runs` block runs; also returns the number of instructions executed in blocks.
    pub(crate) fn tipsim(
        &self,
        program: &mut Program,
        runs: u64,
        mode: Mode,
    ) -> anyhow::Result<(Outcome, u64)> {
        program.poke(PARAMETERS + 8, runs);
        program.poke(PARAMETERS + 16, 1);
        let mut bus = Bus::new(MEMORY, 1, Clock::default())?;
        let image = Image { name: "harness.elf", bytes: &self.elf };
        let elf = Elf::load(image, RAM_BASE, &mut bus.ram)?;
        let tohost = elf.symbols.tohost.context("harness.elf: no tohost")?;
        bus.attach_htif(Htif::new(tohost, None, Box::new(std::io::sink())));
        bus.ram.write(TABLES, &program.image).context("the program does not fit")?;
        let mut hart = Hart::new(0);
        hart.set_extensions(self.extensions);
        if matches!(mode, Mode::Translated | Mode::TimingTranslated) {
            hart.set_translate(Translate::Everything)?;
        }
        hart.set_pc(elf.entry);
        let limit = Limit::instructions(10_000_000 + runs * 10_000);
        let exit = match mode {
            Mode::Functional | Mode::Translated => hart.run(&mut bus, &mut Untimed, limit),
            Mode::Timing | Mode::TimingTranslated => {
                hart.run(&mut bus, &mut Core::new(&self.preset, IgnoredCommits), limit)
            }
        };
        if exit != RunExit::Exit(Exit::Host(0)) {
            bail!("tipsim ({mode:?}) ended with {exit:?} at {:#x}", hart.pc());
        }
        let slice = |from: u64, size: u64| bus.ram.slice(from, size).unwrap_or_default();
        // The harness's save area follows `tohost` and `fromhost`.
        let outcome = Outcome {
            log: words(slice(LOG, runs * 8)),
            saved: words(slice(tohost + 128, SAVE_SIZE)),
            data: slice(DATA, DATA_PAGES << 12).to_owned(),
        };
        let inside = outcome.saved[SAVED_INSIDE];
        Ok((outcome, inside))
    }
}
