//! How much of a report its forms show.

/// How much of a report the text shows.
#[derive(Clone, Debug)]
pub struct Options {
    /// Functions per process.
    pub functions: usize,
    /// Instructions per process.
    pub instructions: usize,
    /// Disagreements per profiler.
    pub disagreements: usize,
    /// Disagreements in words, per profiler.
    pub sentences: usize,
    /// Processes that get tables of their own: the first of [`Common::focus`](crate::Common::focus).
    pub processes: usize,
    /// Share of all cycles from which on a process is listed.
    pub min_share: f64,
    /// Show only this process.
    pub process: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            functions: 12,
            instructions: 16,
            disagreements: 2,
            sentences: 2,
            processes: 3,
            min_share: 0.002,
            process: None,
        }
    }
}
