//! `tipsim completions` and `tipsim man`.

use std::process::Command;

use crate::common::{scratch, succeed, tipsim};

#[test]
fn bash_completes_commands_options_and_values() {
    let script = scratch("completions").join("tipsim.bash");
    let text = succeed(tipsim().args(["completions", "bash"]));
    std::fs::write(&script, text).unwrap();
    for (words, expected) in [
        ("tipsim rep", "report"),
        ("tipsim boot --mem", "--memory"),
        ("tipsim boot --mode ti", "timing"),
    ] {
        let (before, last) = words.rsplit_once(' ').unwrap();
        let previous = before.rsplit(' ').next().unwrap();
        let line = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD={}; _tipsim tipsim {last} {previous}; echo \"${{COMPREPLY[@]}}\"",
            script.display(),
            words.split(' ').count() - 1
        );
        let completed = succeed(Command::new("bash").args(["-c", &line]));
        assert_eq!(completed.trim(), expected, "{words}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = scratch("man").join("man1");
    succeed(tipsim().arg("man").arg(&folder));
    for (page, word) in [
        ("tipsim", "Oracle"),
        ("tipsim-run", "\\-\\-set"),
        ("tipsim-boot", "\\-\\-restore"),
        ("tipsim-exec", "\\-\\-signature"),
        ("tipsim-report", "\\-\\-format"),
        ("tipsim-trace-expand", "\\-\\-format"),
        ("tipsim-core-show", "PRESET"),
    ] {
        let text = std::fs::read_to_string(folder.join(format!("{page}.1"))).unwrap();
        assert!(text.contains(".TH") && text.contains(word), "{page}: {text}");
    }
}
