//! Servers of files: asked by build ID for what is not in the host's folders.

use std::fmt;
use std::path::PathBuf;

use super::BuildId;

/// Gives files by build ID. An error is a clause on why there is none, as in "debuginfod has no such file".
pub trait FileServer: fmt::Debug + Send + Sync {
    /// The debug information that was stripped from a program or library, or that several share.
    fn debug_file(&self, build_id: &BuildId) -> Result<PathBuf, String>;

    /// The program or library itself.
    fn program(&self, build_id: &BuildId) -> Result<PathBuf, String>;

    /// Returns a source file of the program or library, by the absolute path that the compiler saw.
    fn source(&self, build_id: &BuildId, path: &str) -> Result<PathBuf, String>;
}
