//! `tipsim profile`: any command, from the shell's words to the verdict. It writes the run spec that says the same, and runs it.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::cli::{Made, ProfileArgs, RunArgs, WhatIfArgs};
use crate::failure::{BadInput, bad_input};
use crate::input::{MADE_INPUT, standard_input};
use crate::results::PROFILE_SPEC;
use crate::{run, what_if};

/// ELF's number of RISC-V.
const EM_RISCV: u16 = 243;

/// Profiles a command; the exit status is its own.
pub fn profile(args: &ProfileArgs) -> anyhow::Result<u8> {
    let mut files = absolute(&args.file)?;
    let (command, program) = command(&args.command)?;
    if let Some(program) = program {
        let program = absolute(&[program])?.remove(0);
        if !files.contains(&program) {
            files.push(program);
        }
    }
    let name = name(&args.command[0]);
    let out = match &args.out {
        Some(out) => out.clone(),
        None => Path::new("out").join(format!("profile-{name}")),
    };
    let input = standard_input()?;
    let text = spec_text(args, &name, &command, &files, input.is_some())?;
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
        made: Some(Made { spec: text, input }),
        brief: true,
    })?;
    println!("report: {}", out.join("report.html").display());
    let set: String = { args.set.iter() }
        .map(|set| format!(" --set {}", quote(set)))
        .collect();
    let servers = { args.debuginfod.iter().filter(|urls| !urls.is_empty()) }
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

/// The command for the guest's shell, and the program of the host that it begins with, if it does.
fn command(words: &[String]) -> Result<(String, Option<PathBuf>), BadInput> {
    let first = Path::new(&words[0]);
    // As shells do: a name without a slash is no file of this folder.
    let is_path = words[0].contains('/') && first.is_file();
    if let ([script], false) = (words, is_path) {
        return Ok((script.clone(), None));
    }
    let program = is_path.then(|| first.to_owned());
    let mut quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    if let Some(program) = &program {
        check_program(program)?;
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        quoted[0] = quote(&format!("./{name}"));
    }
    Ok((quoted.join(" "), program))
}

/// A program for another machine is told before anything boots.
fn check_program(path: &Path) -> Result<(), BadInput> {
    let mut header = [0; 20];
    let mut file = std::fs::File::open(path).map_err(|e| bad_input(path, e))?;
    let elf = file.read_exact(&mut header).is_ok() && header.starts_with(b"\x7fELF");
    let machine = u16::from_le_bytes([header[18], header[19]]);
    if elf && machine != EM_RISCV {
        return Err(bad_input(
            path,
            format!(
                "expected a program for RISC-V (ELF machine {EM_RISCV}), found machine {machine}: build it with riscv64-linux-gnu-gcc, \
                 or take Debian's (--package)"
            ),
        ));
    }
    Ok(())
}

/// A word for a shell.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+=./:,%@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// What the run is called: the program's name.
fn name(word: &str) -> String {
    let program = word.split_whitespace().next().unwrap_or_default();
    let base = program.rsplit('/').next().unwrap_or_default();
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-+.".contains(c);
    let name: String = base.chars().filter(|c| allowed(*c)).collect();
    match name.trim_matches('.') {
        "" => "command".to_owned(),
        name => name.to_owned(),
    }
}

/// Files named in a spec are relative to it: these are of where the user is.
fn absolute(files: &[PathBuf]) -> Result<Vec<PathBuf>, BadInput> {
    let absolute = |file: &PathBuf| file.canonicalize().map_err(|e| bad_input(file, e));
    files.iter().map(absolute).collect()
}

fn spec_text(
    args: &ProfileArgs,
    name: &str,
    command: &str,
    files: &[PathBuf],
    input: bool,
) -> anyhow::Result<String> {
    let core = Path::new(&args.core);
    let core = match core.is_file() {
        true => absolute(&[core.to_owned()])?[0].display().to_string(),
        false => args.core.clone(),
    };
    let files = files.iter().map(|file| file.display().to_string());
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
    set("guest", "packages", args.package.clone().into());
    set("core", "preset", core.into());
    set("run", "files", files.collect::<Vec<_>>().into());
    if input {
        set("run", "input", MADE_INPUT.into());
    }
    set("run", "command", format!("{command}\n").into());
    let region = if args.marked { "marked" } else { "command" };
    set("run", "region", region.into());
    if args.call_stacks {
        let record = toml::toml! { call_stacks = true };
        table.insert("record".to_owned(), record.into());
    }
    table.insert("name".to_owned(), name.into());
    Ok(toml::to_string(&table)?)
}

/// An argument that names a file of the host and not of the guest is most often a mistake.
fn not_in_the_guest(args: &ProfileArgs) {
    let name = |path: &Path| path.file_name().map(ToOwned::to_owned);
    let given = |word: &str| { args.file.iter() }.any(|file| name(file) == name(Path::new(word)));
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
        let made = |given: &[&str]| command(&words(given)).unwrap().0;
        assert_eq!(
            made(&["perl", "-e", "print 'x y'"]),
            r"perl -e 'print '\''x y'\'''"
        );
        assert_eq!(made(&["sort a b | head -n 3"]), "sort a b | head -n 3");
        assert_eq!(made(&["echo", ""]), "echo ''");
    }

    #[test]
    fn a_run_has_the_programs_name() {
        assert_eq!(name("/usr/bin/xz"), "xz");
        assert_eq!(name("sort a b | head"), "sort");
        assert_eq!(name("../.."), "command");
    }
}
