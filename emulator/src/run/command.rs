//! How the guest's command ended, for the user.

use std::io::{Read as _, Seek as _, SeekFrom};

use super::STATUS;
use crate::results::{CONSOLE, Folder, Results};

/// More is no status.
const MAX_STATUS_BYTES: u64 = 100;

/// Lines of the console that are shown of a command that failed.
const LINES: usize = 10;

/// Linux's names of the signals from 1.
const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// The status that the guest's init wrote for the command, success where there was no command. Anything else is told
/// on standard error, after what the guest printed last: the command, from that byte of the console's file on.
pub fn report_status(run: &Results, from: u64) -> u8 {
    let status = Folder::open(&run.guest_files());
    // The guest may have made anything of this name.
    let status = status.and_then(|files| files.read(STATUS, MAX_STATUS_BYTES));
    let status = String::from_utf8_lossy(&status.unwrap_or_default()).trim().parse::<u32>();
    let status = status.unwrap_or(0);
    if status != 0 {
        let console = run.file(CONSOLE).and_then(|mut file| {
            let mut since = Vec::new();
            file.seek(SeekFrom::Start(from))?;
            file.read_to_end(&mut since)?;
            Ok(since)
        });
        let since = console.unwrap_or_default();
        for line in last_lines(&String::from_utf8_lossy(&since)) {
            eprintln!("  | {line}");
        }
        eprintln!(
            "tipsim: the guest's command ended with {status}{}",
            meaning(status)
        );
    }
    u8::try_from(status).unwrap_or(255)
}

/// What a shell means by a status.
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

/// What was printed last, without the kernel's own lines and what only moves a cursor.
fn last_lines(console: &str) -> Vec<String> {
    let of_the_kernel = |line: &str| {
        let time = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        time.is_some_and(|(time, _)| time.trim().parse::<f64>().is_ok())
    };
    let lines = console.lines().map(|line| {
        let shown = line
            .rsplit('\r')
            .find(|part| !part.is_empty())
            .unwrap_or("");
        shown
            .chars()
            .filter(|c| !c.is_control())
            .collect::<String>()
    });
    let mut lines: Vec<String> = lines
        .filter(|line| !line.trim().is_empty() && !of_the_kernel(line))
        .collect();
    lines.split_off(lines.len().saturating_sub(LINES))
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
    fn the_last_lines_are_the_commands() {
        let console = "one\r\n10 %\r90 %\r\n\n[    1.25] reboot: Power down\n[x] y\n";
        assert_eq!(last_lines(console), ["one", "90 %", "[x] y"]);
        let many: String = (0..50).map(|n| format!("{n}\n")).collect();
        assert_eq!(last_lines(&many).len(), LINES);
        assert_eq!(last_lines(&many)[LINES - 1], "49");
        assert!(last_lines("\u{1b}\u{fffd}\0").len() <= 1);
    }
}
