//! `tipsim` as a library: its command line, the folder of a run, run specs, sources of symbols, and the server for GDB. The simulator
//! itself is the crate `simulation`. See `--help` for the commands, and ARCHITECTURE.md for the map.

/// Like the standard ones, but a reader that has seen enough (`| head`) is no error, and a terminal shows what it would obey.
macro_rules! print {
    ($($arg:tt)*) => { $crate::host::terminal::say(format_args!($($arg)*)) };
}
macro_rules! println {
    () => { print!("\n") };
    ($($arg:tt)*) => { print!("{}\n", format_args!($($arg)*)) };
}
macro_rules! eprint {
    ($($arg:tt)*) => { $crate::host::terminal::warn(format_args!($($arg)*)) };
}
macro_rules! eprintln {
    ($($arg:tt)*) => { eprint!("{}\n", format_args!($($arg)*)) };
}

mod cli;
mod commands;
mod experiment;
mod failure;
mod gdb;
mod guest_files;
mod host;
mod run_folder;
pub mod session;
mod spec;
mod symbol_sources;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use host::{log, terminal};

/// Does what the command line asks for. Returns the exit status: 2 for bad input, 1 for a failed run, or the guest's own.
pub fn main() -> ExitCode {
    heed_limits_of_files();
    let log = log::start();
    let command = Cli::try_parse().unwrap_or_else(|error| explain_usage(&error)).command;
    let status = match command {
        Command::Run(args) => commands::run::run(&args),
        Command::Profile(args) => commands::profile::profile(&args),
        Command::Phases(args) => commands::phases::phases(&args),
        Command::Schemes(args) => commands::schemes::schemes(&args),
        Command::Retime(args) => commands::retime::retime(&args),
        Command::WhatIf(args) => commands::what_if::what_if(&args).map(|()| 0),
        Command::Boot(args) => commands::boot::boot(&args),
        Command::Exec(args) => commands::exec::exec(&args),
        Command::Report(args) => commands::report::report(&args),
        Command::Samples(args) => commands::samples::samples(&args).map(|()| 0),
        Command::Trace(command) => commands::trace::trace(&command),
        Command::Tables(args) => commands::tables::print(&args).map(|()| 0),
        Command::Schema(args) => commands::schema::schema(&args).map(|()| 0),
        Command::Core(command) => commands::core::core(&command).map(|()| 0),
        Command::Completions { shell } => commands::manual::completions(shell).map(|()| 0),
        Command::Man { folder } => commands::manual::pages(&folder).map(|()| 0),
    };
    log.end();
    status.unwrap_or_else(|error| failure::report(&error)).into()
}

/// Prints the help that was asked for, or what is wrong with the command line, and ends.
fn explain_usage(error: &clap::Error) -> ! {
    let printed = error.print().and_then(|()| std::io::stdout().flush());
    match printed {
        Err(failed) if !error.use_stderr() => terminal::end_without_output(&failed),
        _ => std::process::exit(error.exit_code()),
    }
}

/// A write beyond a limit on the size of files (`ulimit -f`) shall fail, as on a full disk, instead of ending the program
/// without a word.
fn heed_limits_of_files() {
    // SAFETY: the signal has no handler whose work this would undo, and no other thread runs yet.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
