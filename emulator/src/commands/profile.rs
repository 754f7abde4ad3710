//! `tipsim profile`: any command, from the shell's words to the verdict. It writes the run spec that says the same, and runs it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use clap::{Arg, CommandFactory};
use timing::Preset;

use super::{run, what_if};
use crate::cli::{Cli, Made, ProfileArgs, RunArgs, WhatIfArgs};
use crate::experiment::command::{self, quote};
use crate::experiment::input::{MADE_INPUT, standard_input};
use crate::failure::{BadInput, bad_input, nearest};
use crate::guest_files::images::GuestFiles;
use crate::guest_files::needed::{GuestPaths, check_machine};
use crate::guest_files::packages::Packages;
use crate::run_folder::PROFILE_SPEC;
use crate::spec::GuestImage;

/// Bytes of a run's name that is made of its command.
const MAX_RUN_NAME_BYTES: usize = 200;

/// Profiles a command; the exit status is its own.
pub(crate) fn profile(args: &ProfileArgs) -> anyhow::Result<u8> {
    if args.command[0].trim().is_empty() {
        return Err(BadInput("expected a command, found an empty word".to_owned()).into());
    }
    check_is_no_option(&args.command[0])?;
    let mut files = absolute(&args.file)?;
    let (command, program) = command(&args.command);
    let name = match &program {
        Some(program) => name(&program.file_name().unwrap_or_default().to_string_lossy()),
        None => name(first_word(&args.command[0])),
    };
    if let Some(program) = program {
        check_machine(&program)?;
        check_executable(&program)?;
        let program = absolute(&[program])?.remove(0);
        if !files.contains(&program) {
            files.push(program);
        }
    } else if is_plain(&args.command[0]) {
        check_path(&args.command[0], &args.file)?;
    }
    let packages = packages(args, &files)?;
    let variables = command::variables(&args.env)?;
    let out = match &args.out {
        Some(out) => out.clone(),
        None => Path::new("out").join(format!("profile-{name}")),
    };
    let input = standard_input()?;
    let made = Specified { name, command, files, packages, variables, has_input: input.is_some() };
    let text = spec_text(args, &made)?;
    not_in_the_guest(args);
    let status = run::run(&RunArgs {
        spec: out.join(PROFILE_SPEC),
        set: args.set.clone(),
        out: out.clone(),
        guest_dir: args.guest_dir.clone(),
        debuginfod: args.debuginfod.clone(),
        console: args.console,
        gdb: None,
        self_profile: false,
        made: Some(Made { spec: text, input, has_default_out: args.out.is_none(), prints: false }),
        brief: true,
    })?;
    println!("report: {}", out.join("report.html").display());
    let set: String = args.set.iter().map(|set| format!(" --set {}", quote(set))).collect();
    let servers = args
        .debuginfod
        .iter()
        .filter(|urls| !urls.is_empty())
        .map(|urls| format!(" --debuginfod {}", quote(urls)));
    let servers: String = servers.collect();
    println!(
        "again: tipsim run {}{set}{servers} --out DIR",
        quote(&out.join(PROFILE_SPEC).display().to_string())
    );
    if args.what_if {
        what_if::what_if(&WhatIfArgs::suggested(out, args.guest_dir.clone()))?;
    }
    Ok(status)
}

/// A command that begins with a dash is a misspelt option.
fn check_is_no_option(word: &str) -> Result<(), BadInput> {
    // What comes after `--` is the command, whatever it begins with.
    if !word.starts_with('-') || std::env::args_os().any(|argument| argument == "--") {
        return Ok(());
    }
    let given = word.split('=').next().unwrap_or_default();
    let command = Cli::command();
    let options = command.find_subcommand("profile").into_iter();
    let options = options.flat_map(|profile| profile.get_arguments().filter_map(Arg::get_long));
    let options: Vec<String> = options.map(|name| format!("--{name}")).collect();
    let meant = nearest(given, options.iter().map(String::as_str), 0.8);
    let meant = meant.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    Err(BadInput(format!(
        "{given}: no option of tipsim profile{meant} (tipsim profile --help lists them; what comes after -- is the command)"
    )))
}

/// The guest refuses to execute a file without the permission, after it has booted.
fn check_executable(program: &Path) -> Result<(), BadInput> {
    let metadata = program.metadata().map_err(|e| bad_input(program, e))?;
    if metadata.permissions().mode() & 0o111 != 0 {
        return Ok(());
    }
    let cure = match program.extension().and_then(OsStr::to_str) {
        Some("py") => {
            "its interpreter first: tipsim profile --package python3-minimal --file FILE python3 FILE"
        }
        Some("sh") => "its interpreter first: tipsim profile --file FILE sh FILE",
        Some("c" | "cc" | "cpp" | "cxx" | "rs" | "go") => "the program that is compiled of it",
        _ => "a program, or `chmod +x`",
    };
    Err(bad_input(program, format!("expected a file that may be executed: {cure}")))
}

/// Returns the command for the guest's shell, and the host's program that the command begins with, if it does.
fn command(words: &[String]) -> (String, Option<PathBuf>) {
    let first = Path::new(&words[0]);
    // A word without a slash is not taken for a file of this folder, as in shells.
    let is_path = words[0].contains('/') && first.is_file();
    if let ([script], false) = (words, is_path) {
        return (script.clone(), None);
    }
    let program = is_path.then(|| first.to_owned());
    let mut quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    if let Some(program) = &program {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        quoted[0] = quote(&format!("./{name}"));
    }
    (quoted.join(" "), program)
}

/// Returns whether a word has no meaning to a shell: whether it is the name or the path of a program.
fn is_plain(word: &str) -> bool {
    quote(word) == word && !word.contains('=')
}

/// The first word of a script.
fn first_word(script: &str) -> &str {
    script.split_whitespace().next().unwrap_or_default()
}

/// A relative path that is no file here must be one of what is given to the guest.
fn check_path(path: &str, given: &[PathBuf]) -> Result<(), BadInput> {
    if path.starts_with('/') || !path.contains('/') {
        return Ok(());
    }
    let mut parts = Path::new(path).components().filter(|part| *part != Component::CurDir);
    let first = parts.next().map(Component::as_os_str);
    let is_given = given.iter().any(|file| file.file_name() == first);
    let what = match Path::new(path).is_dir() {
        _ if is_given => return Ok(()),
        true => "expected a program, found a folder (--file brings folders along)",
        false => "no such file here, and none that --file gives to the guest",
    };
    Err(bad_input(Path::new(path), what))
}

/// The packages that are asked for, and those that files of the host need: a compiler's libraries. What the guest lacks is told before
/// anything boots.
fn packages(args: &ProfileArgs, files: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    let mut packages = args.package.clone();
    // A guest of the user's own, or all of Debian, may have whatever it likes.
    if args.image == GuestImage::Debian || args.set.iter().any(|set| set.starts_with("guest.")) {
        return Ok(packages);
    }
    let guest = GuestFiles::resolve(args.guest_dir.as_deref(), None, None, None)?;
    let Some(paths) = GuestPaths::of(&guest, &packages)? else {
        return Ok(packages);
    };
    let word = &args.command[0];
    let is_file = Path::new(word).is_file();
    if is_plain(word) && (!word.contains('/') || word.starts_with('/') && !is_file) {
        paths.check_command(word)?;
    }
    for (needed, package) in paths.packages_for(files)? {
        eprintln!(
            "tipsim: note: {needed} is not in the guest by itself: brought along, as by --package {package}"
        );
        packages.push(package);
    }
    if packages.len() > args.package.len() {
        let found = Packages::find(&packages);
        found.map_err(|e| BadInput(format!("{e}; or link with -static")))?;
    }
    Ok(packages)
}

/// Returns what the run is called: the program's name.
fn name(program: &str) -> String {
    let base = program.rsplit('/').next().unwrap_or_default();
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-+.".contains(c);
    let name: String = base.chars().filter(|c| allowed(*c)).collect();
    match name.trim_matches('.') {
        "" => "command".to_owned(),
        // Names of files have 255 bytes at most, and tipsim puts something before and behind it.
        name => name[..name.len().min(MAX_RUN_NAME_BYTES)].to_owned(),
    }
}

/// Files named in a spec are relative to it: these are of where the user is.
fn absolute(files: &[PathBuf]) -> Result<Vec<PathBuf>, BadInput> {
    let absolute = |file: &PathBuf| {
        let kind = std::fs::metadata(file).map_err(|e| bad_input(file, e))?;
        if !kind.is_file() && !kind.is_dir() {
            return Err(bad_input(file, "expected a file or a folder, found something else"));
        }
        file.canonicalize().map_err(|e| bad_input(file, e))
    };
    files.iter().map(absolute).collect()
}

/// What a run spec says beside what is in the arguments themselves.
struct Specified {
    name: String,
    command: String,
    files: Vec<PathBuf>,
    packages: Vec<String>,
    variables: BTreeMap<String, String>,
    has_input: bool,
}

fn spec_text(args: &ProfileArgs, made: &Specified) -> anyhow::Result<String> {
    let core = Path::new(&args.core);
    let core = match core.is_file() {
        true => absolute(&[core.to_owned()])?[0].display().to_string(),
        // Told here, as what is no preset's name would be looked for beside the spec.
        false => match Preset::load(&args.core) {
            Ok(_) => args.core.clone(),
            Err(e) => {
                let error = super::core::not_loaded(&args.core, &e);
                return Err(BadInput(format!("--core {error}")).into());
            }
        },
    };
    let files = made.files.iter().map(|file| file.display().to_string());
    let table = toml::toml! {
        [guest]
        [core]
        [run]
        boot = "functional"
        [[sampler]]
        profiler = "all"
        frequency = "4kHz"
    };
    let mut table = table;
    let mut set = |section: &str, key: &str, value: toml::Value| {
        if let Some(section) = table.get_mut(section).and_then(toml::Value::as_table_mut) {
            section.insert(key.to_owned(), value);
        }
    };
    set("guest", "harts", i64::from(args.harts).into());
    set("guest", "memory", args.memory.clone().into());
    let image = toml::Value::try_from(args.image)?;
    set("guest", "image", image);
    set("guest", "packages", made.packages.clone().into());
    set("core", "preset", core.into());
    set("run", "files", files.collect::<Vec<_>>().into());
    if made.has_input {
        set("run", "input", MADE_INPUT.into());
    }
    set("run", "command", format!("{}\n", made.command).into());
    if !made.variables.is_empty() {
        set("run", "env", toml::Value::try_from(&made.variables)?);
    }
    let region = if args.marked { "marked" } else { "command" };
    set("run", "region", region.into());
    if args.sampled {
        // Other keys have their defaults, so that one of them that is given is known to be.
        set("run", "sampling", toml::toml! { scheme = "systematic" }.into());
    }
    if args.call_stacks {
        let record = toml::toml! { call_stacks = true };
        table.insert("record".to_owned(), record.into());
    }
    table.insert("name".to_owned(), made.name.as_str().into());
    Ok(toml::to_string(&table)?)
}

/// An argument that names a file of the host and not of the guest is most often a mistake.
fn not_in_the_guest(args: &ProfileArgs) {
    let name = |path: &Path| path.file_name().map(ToOwned::to_owned);
    let given = |word: &str| args.file.iter().any(|file| name(file) == name(Path::new(word)));
    for word in &args.command[1..] {
        if Path::new(word).is_file() && !word.starts_with('/') && !given(word) {
            eprintln!(
                "tipsim: note: {word} is a file here; the guest has it only by --file {word}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_guest_as_they_are() {
        let words = |words: &[&str]| words.iter().map(|&w| w.to_owned()).collect::<Vec<_>>();
        let made = |given: &[&str]| command(&words(given)).0;
        assert_eq!(made(&["perl", "-e", "print 'x y'"]), r"perl -e 'print '\''x y'\'''");
        assert_eq!(made(&["sort a b | head -n 3"]), "sort a b | head -n 3");
        assert_eq!(made(&["echo", ""]), "echo ''");
    }

    #[test]
    fn a_run_has_the_programs_name() {
        assert_eq!(name("/usr/bin/xz"), "xz");
        assert_eq!(name(first_word("sort a b | head")), "sort");
        assert_eq!(name("../.."), "command");
        assert_eq!(name(&"q".repeat(250)).len(), MAX_RUN_NAME_BYTES);
    }
}
