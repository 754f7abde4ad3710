//! The guest's command: how it gets there, and how it ended.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use base64::Engine as _;

use crate::failure::{BadInput, cannot_write};
use crate::run_folder::{CONSOLE, Folder};
use simulation::{TAIL_BYTES, kernel_panic};

/// Name of the file in the shared folder in which the guest finds its command, in base64.
pub(crate) const COMMAND: &str = ".tipsim-command";
/// Name of the file in the shared folder with the command's standard input; without the file, that is empty.
pub(crate) const INPUT: &str = ".tipsim-input";
/// Name of the file in the shared folder in which the guest leaves the command's exit status.
const STATUS: &str = ".tipsim-status";
/// Most bytes of a file with a status.
const MAX_STATUS_BYTES: u64 = 100;
/// Most bytes of a console that are looked into for its last lines.
const MAX_CONSOLE_BYTES: u64 = 1 << 30;

/// Lines of the console that are shown of a command that failed.
const LINES: usize = 10;
/// Lines that are shown where the kernel's are among them: a panic comes with a dump.
const LINES_WITH_KERNEL: usize = 30;

/// Which lines of a console are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// The kernel's own are left out.
    OfPrograms,
    /// Every line.
    All,
}

/// Linux's names of the signals from 1.
const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// A word for a shell.
pub(crate) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+=./:,%@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A command with these variables in its environment, beside those of the guest's init.
pub(crate) fn with_environment(command: &str, variables: &BTreeMap<String, String>) -> String {
    let exports = variables.iter().map(|(name, value)| format!("export {name}={}\n", quote(value)));
    exports.chain([command.to_owned()]).collect()
}

/// Checks that shells take it for the name of a variable.
pub(crate) fn check_variable(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match name.chars().all(allowed) && name.starts_with(|c: char| !c.is_ascii_digit()) {
        true => Ok(()),
        false => {
            Err(format!("expected the name of a variable, such as OMP_NUM_THREADS; found {name:?}"))
        }
    }
}

/// The variables that `--env` names: `NAME=VALUE`, or `NAME` for that of the host, if it is set there.
pub(crate) fn variables(arguments: &[String]) -> Result<BTreeMap<String, String>, BadInput> {
    let mut variables = BTreeMap::new();
    for argument in arguments {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (argument.as_str(), std::env::var(argument).ok()),
        };
        check_variable(name).map_err(|e| BadInput(format!("--env {argument}: {e}")))?;
        match value {
            Some(value) => drop(variables.insert(name.to_owned(), value)),
            None => {
                eprintln!("tipsim: note: --env {name}: it is not set here, and so not in the guest")
            }
        }
    }
    Ok(variables)
}

/// Puts the command and its standard input where the guest's init finds them. The folder may be one that a guest had before: it is
/// written to as an enemy's.
pub(crate) fn give(
    share: &Path,
    command: Option<&str>,
    input: Option<&mut dyn Read>,
) -> anyhow::Result<()> {
    // A status of another run would be taken for this one's.
    take_back(share);
    let folder = Folder::open(share).map_err(|e| cannot_write(share, e))?;
    if let Some(text) = command {
        let encoded = base64::engine::general_purpose::STANDARD.encode(text) + "\n";
        let written = folder.write(COMMAND, encoded.as_bytes());
        written.map_err(|e| cannot_write(&share.join(COMMAND), e))?;
    }
    if let Some(input) = input {
        let written = folder.create(INPUT).and_then(|mut to| std::io::copy(input, &mut to));
        written.map_err(|e| cannot_write(&share.join(INPUT), e))?;
    }
    Ok(())
}

/// Removes what [`give`] and the guest's init wrote.
pub(crate) fn take_back(share: &Path) {
    for name in [COMMAND, INPUT, STATUS] {
        let _ = std::fs::remove_file(share.join(name));
    }
}

/// The command's exit status, which the guest's init writes after its end. `None`: the command has not ended.
pub(crate) fn status(share: &Path) -> Option<u32> {
    // The guest may have put anything in its place.
    let text = Folder::open(share).and_then(|share| share.read(STATUS, MAX_STATUS_BYTES));
    String::from_utf8(text.ok()?).ok()?.trim().parse().ok()
}

/// Tells on standard error of a command that failed, after what the guest printed last: the command, from that byte of the
/// console's file on.
pub(crate) fn report_status(status: u32, out: &Path, from: u64) {
    if let Some(failure) = failure(status) {
        print_last_lines(out, from, Lines::OfPrograms);
        eprintln!("tipsim: {failure}");
    }
}

/// Returns what is said of a command with this exit status, if it failed.
pub(crate) fn failure(status: u32) -> Option<String> {
    let meaning = meaning(status);
    (status != 0).then(|| format!("the guest's command ended with {status}{meaning}"))
}

/// Returns why the guest's kernel panicked, if the console's file ends with that.
pub(crate) fn panic(out: &Path) -> Option<String> {
    let console = console(out);
    let tail = console.len().saturating_sub(TAIL_BYTES as usize);
    kernel_panic(&String::from_utf8_lossy(&console[tail..]))
}

/// Returns what the console's file has.
fn console(out: &Path) -> Vec<u8> {
    let read = Folder::open(out).and_then(|out| out.read(CONSOLE, MAX_CONSOLE_BYTES));
    read.unwrap_or_default()
}

/// Prints the last lines of the console's file from that byte on.
pub(crate) fn print_last_lines(out: &Path, from: u64, which: Lines) {
    let console = console(out);
    let since = console.get(from as usize..).unwrap_or_default();
    for line in last_lines(&String::from_utf8_lossy(since), which) {
        eprintln!("  | {line}");
    }
}

/// Returns what a shell means by a status.
fn meaning(status: u32) -> String {
    let signal = |number: u32| SIGNALS.get(number.checked_sub(1)? as usize);
    match status {
        126 => ": a command could not be executed".into(),
        127 => ": a command was not found".into(),
        129.. => match signal(status - 128) {
            Some(name) => format!(": killed by signal {} (SIG{name})", status - 128),
            None => String::new(),
        },
        _ => String::new(),
    }
}

/// Returns what was printed last, without what only moves a cursor.
fn last_lines(console: &str, which: Lines) -> Vec<String> {
    let of_the_kernel = |line: &str| {
        let time = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        time.is_some_and(|(time, _)| time.trim().parse::<f64>().is_ok())
    };
    let lines = console.lines().map(|line| {
        let shown = line.rsplit('\r').find(|part| !part.is_empty()).unwrap_or("");
        shown.chars().filter(|c| !c.is_control()).collect::<String>()
    });
    let mut lines: Vec<String> = lines
        .filter(|line| !line.trim().is_empty())
        .filter(|line| which == Lines::All || !of_the_kernel(line))
        .collect();
    let most = match which {
        Lines::OfPrograms => LINES,
        Lines::All => LINES_WITH_KERNEL,
    };
    lines.split_off(lines.len().saturating_sub(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_said_in_words() {
        assert_eq!(meaning(1), "");
        assert_eq!(meaning(127), ": a command was not found");
        assert_eq!(meaning(137), ": killed by signal 9 (SIGKILL)");
        assert_eq!(meaning(139), ": killed by signal 11 (SIGSEGV)");
        assert_eq!(meaning(159), ": killed by signal 31 (SIGSYS)");
        assert_eq!((meaning(128), meaning(255)), (String::new(), String::new()));
    }

    #[test]
    fn variables_reach_the_command() {
        let given = ["A=1".to_owned(), "B=it's".to_owned(), "A=2 3".to_owned()];
        let variables = variables(&given).unwrap();
        assert_eq!(
            with_environment("true\n", &variables),
            "export A='2 3'\nexport B='it'\\''s'\ntrue\n"
        );
        assert_eq!(with_environment("true", &BTreeMap::new()), "true");
        for bad in ["=1", "1A=x", "A B=x", "A-B"] {
            let error = super::variables(&[bad.to_owned()]).unwrap_err().to_string();
            assert!(error.contains(&format!("--env {bad}: ")), "{error}");
        }
    }

    #[test]
    fn the_last_lines_are_the_commands() {
        let console = "one\r\n10 %\r90 %\r\n\n[    1.25] reboot: Power down\n[x] y\n";
        let programs = |console| last_lines(console, Lines::OfPrograms);
        assert_eq!(programs(console), ["one", "90 %", "[x] y"]);
        assert_eq!(last_lines(console, Lines::All)[2], "[    1.25] reboot: Power down");
        let many: String = (0..50).map(|n| format!("{n}\n")).collect();
        assert_eq!(programs(&many).len(), LINES);
        assert_eq!(programs(&many)[LINES - 1], "49");
        assert!(programs("\u{1b}\u{fffd}\0").len() <= 1);
    }

    #[test]
    fn a_status_is_of_this_command() {
        let folder = tempfile::tempdir().unwrap();
        let share = folder.path();
        std::fs::write(share.join(STATUS), "0\n").unwrap();
        give(share, Some("true"), Some(&mut &b"words\n"[..])).unwrap();
        assert_eq!(status(share), None, "it was another one's");
        assert_eq!(std::fs::read_to_string(share.join(COMMAND)).unwrap(), "dHJ1ZQ==\n");
        assert_eq!(std::fs::read_to_string(share.join(INPUT)).unwrap(), "words\n");
        for (text, expected) in [("7\n", Some(7)), ("", None), ("x", None)] {
            std::fs::write(share.join(STATUS), text).unwrap();
            assert_eq!(status(share), expected, "{text:?}");
        }
        take_back(share);
        assert_eq!(std::fs::read_dir(share).unwrap().count(), 0);
    }
}
