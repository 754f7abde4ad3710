//! `tipsim`: see `--help`, and ARCHITECTURE.md for the map.

/// Like the standard ones, but a reader that has seen enough (`| head`) is no error, and a terminal shows what it would obey.
macro_rules! print {
    ($($arg:tt)*) => { $crate::terminal::say(format_args!($($arg)*)) };
}
macro_rules! println {
    () => { print!("\n") };
    ($($arg:tt)*) => { print!("{}\n", format_args!($($arg)*)) };
}
macro_rules! eprint {
    ($($arg:tt)*) => { $crate::terminal::warn(format_args!($($arg)*)) };
}
macro_rules! eprintln {
    ($($arg:tt)*) => { eprint!("{}\n", format_args!($($arg)*)) };
}

mod boot;
mod checkpoint;
mod cli;
mod core_cmd;
mod core_events;
mod counts;
mod ends;
mod epoch;
mod exec;
mod export_cmd;
mod failure;
mod file_servers;
mod gdb;
mod guest;
mod guest_counts;
mod guest_profiles;
mod host_memory;
mod input;
mod interpreters;
mod kept;
mod kernel;
mod log;
mod manual;
mod names;
mod needed;
mod net;
mod pace;
mod packages;
mod percent;
mod profile_cmd;
mod report_cmd;
mod results;
mod run;
mod sampled_events;
mod samplers;
mod samples_cmd;
mod self_profile;
mod semihosting;
mod sha256;
mod signals;
mod spec;
mod stream;
mod stuck;
mod system;
mod tables_cmd;
mod terminal;
mod timed;
mod tip_bus;
mod trace_cmd;
mod truth;
mod uncore;
mod what_if;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    heed_limits_of_files();
    let log = log::start();
    let command = Cli::try_parse().unwrap_or_else(|error| explain_usage(&error)).command;
    let status = match command {
        Command::Run(args) => run::run(&args),
        Command::Profile(args) => profile_cmd::profile(&args),
        Command::WhatIf(args) => what_if::what_if(&args).map(|()| 0),
        Command::Boot(args) => boot::boot(&args),
        Command::Exec(args) => exec::exec(&args),
        Command::Report(args) => report_cmd::report(&args),
        Command::Samples(args) => samples_cmd::samples(&args).map(|()| 0),
        Command::Trace(command) => trace_cmd::trace(&command),
        Command::Tables(args) => tables_cmd::print(&args).map(|()| 0),
        Command::Core(command) => core_cmd::core(&command).map(|()| 0),
        Command::Completions { shell } => manual::completions(shell).map(|()| 0),
        Command::Man { folder } => manual::pages(&folder).map(|()| 0),
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
