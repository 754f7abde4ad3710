//! Who has the debug information that Debian's programs are stripped of: debuginfod servers, by elfutils' own client, and Debian's
//! debug archive, by a script of `guest-sw`. Both keep what they got in a cache of their own.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use symbols::{BuildId, FileServer};

use crate::guest_files::images;

const DEBUGINFOD_CLIENT: &str = "debuginfod-find";
/// Longest wait for a file, if `DEBUGINFOD_MAXTIME` says nothing else. A server that is silent elfutils gives up by itself, after
/// `DEBUGINFOD_TIMEOUT` (90 s).
const MAX_WAIT: Duration = Duration::from_secs(600);
/// What [`DEBUGINFOD_CLIENT`] says of a file that no server has (`ENOENT`); all else is a server that does not answer.
const NO_SUCH_FILE: &str = "No such file or directory";

const ARCHIVE_SCRIPT: &str = "debian-debug";
/// Exit status of [`ARCHIVE_SCRIPT`] if there is no archive.
const NO_ARCHIVE: i32 = 3;
const NOT_IN_ARCHIVE: i32 = 4;

/// debuginfod servers.
#[derive(Debug)]
pub(crate) struct Debuginfod {
    /// The servers' addresses, as in `DEBUGINFOD_URLS`.
    urls: String,
}

impl Debuginfod {
    /// Returns the servers at the addresses in `urls`, with spaces between them.
    pub(crate) fn new(urls: &str) -> Self {
        Self { urls: urls.to_owned() }
    }

    fn find<A: AsRef<OsStr>>(&self, what: &[A]) -> Result<PathBuf, String> {
        // A run has a symbolizer for each of its reports: one wait is enough.
        static GIVEN_UP: OnceLock<String> = OnceLock::new();
        if let Some(why) = GIVEN_UP.get() {
            return Err(why.clone());
        }
        let mut command = Command::new(DEBUGINFOD_CLIENT);
        command.args(what).env("DEBUGINFOD_URLS", &self.urls);
        command.env_remove("DEBUGINFOD_PROGRESS").env_remove("DEBUGINFOD_VERBOSE");
        let longest = std::env::var("DEBUGINFOD_MAXTIME").ok();
        let longest = longest
            .and_then(|seconds| seconds.parse().ok())
            .filter(|&seconds| seconds > 0)
            .map_or(MAX_WAIT, Duration::from_secs);
        let why = match output(&mut command, longest) {
            Ok(Some(output)) => match path(&output) {
                Some(path) => return Ok(path),
                None => {
                    let said = String::from_utf8_lossy(&output.stderr);
                    let said = said.trim().lines().last().unwrap_or_default().to_owned();
                    if said.ends_with(NO_SUCH_FILE) {
                        return Err("debuginfod does not have it".into());
                    }
                    format!("debuginfod ({}): {said}", self.urls)
                }
            },
            Ok(None) => format!(
                "debuginfod ({}): no file in {} s (DEBUGINFOD_MAXTIME)",
                self.urls,
                longest.as_secs()
            ),
            Err(error) => {
                format!("debuginfod: {DEBUGINFOD_CLIENT}: {error} (Debian: apt install debuginfod)")
            }
        };
        tracing::warn!(
            "{why}; it is not asked any more: names, lines and sources that it may have are missing"
        );
        Err(GIVEN_UP.get_or_init(|| why).clone())
    }
}

impl FileServer for Debuginfod {
    fn debug_file(&self, build_id: &BuildId) -> Result<PathBuf, String> {
        self.find(&["debuginfo", &build_id.to_string()])
    }

    fn program(&self, build_id: &BuildId) -> Result<PathBuf, String> {
        self.find(&["executable", &build_id.to_string()])
    }

    fn source(&self, build_id: &BuildId, path: &str) -> Result<PathBuf, String> {
        self.find(&["source", &build_id.to_string(), path])
    }
}

/// Debian's archive of `-dbgsym` packages.
#[derive(Debug)]
pub(crate) struct DebugArchive;

impl FileServer for DebugArchive {
    fn debug_file(&self, build_id: &BuildId) -> Result<PathBuf, String> {
        static GIVEN_UP: OnceLock<String> = OnceLock::new();
        if let Some(why) = GIVEN_UP.get() {
            return Err(why.clone());
        }
        let Some(script) = images::script(ARCHIVE_SCRIPT) else {
            let why =
                format!("Debian's debug archive: no guest-sw/{ARCHIVE_SCRIPT} (TIPSIM_GUEST_SW)");
            return Err(GIVEN_UP.get_or_init(|| why).clone());
        };
        // The script shows its progress on standard error.
        let mut command = Command::new(&script);
        command.arg(build_id.to_string());
        command.stdin(Stdio::null()).stderr(Stdio::inherit());
        let why = match command.output() {
            Ok(output) => match (path(&output), output.status.code()) {
                (Some(path), _) => return Ok(path),
                (None, Some(NOT_IN_ARCHIVE)) => {
                    return Err("Debian's debug archive does not have it".into());
                }
                (None, Some(NO_ARCHIVE)) => "there is no debug archive of Debian's".to_owned(),
                (None, _) => {
                    format!(
                        "Debian's debug archive: {} failed (its messages are above)",
                        script.display()
                    )
                }
            },
            Err(error) => format!("Debian's debug archive: {}: {error}", script.display()),
        };
        Err(GIVEN_UP.get_or_init(|| why).clone())
    }

    fn program(&self, _: &BuildId) -> Result<PathBuf, String> {
        Err("Debian's debug archive has no programs".into())
    }

    fn source(&self, _: &BuildId, _: &str) -> Result<PathBuf, String> {
        Err("Debian's debug archive has no sources".into())
    }
}

/// The path that a command printed as its last line, if it ended well.
fn path(output: &Output) -> Option<PathBuf> {
    let text = std::str::from_utf8(&output.stdout).ok()?;
    let path = PathBuf::from(text.lines().last()?);
    (output.status.success() && path.is_file()).then_some(path)
}

/// Runs a command that says little, in English. `None`: it took too long.
fn output(command: &mut Command, longest: Duration) -> std::io::Result<Option<Output>> {
    const POLL_INTERVAL: Duration = Duration::from_millis(5);
    command.env("LC_ALL", "C").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child: Child = command.spawn()?;
    let start = Instant::now();
    while child.try_wait()?.is_none() {
        if start.elapsed() > longest {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    child.wait_with_output().map(Some)
}
