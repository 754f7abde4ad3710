//! Tells `tipsim --version` which commit is built.

use std::env;
use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TIPSIM_COMMIT");
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    // A build for tests says nothing of the commit: all tests would be built again after each.
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = match env::var("TIPSIM_COMMIT") {
        Ok(commit) if !commit.is_empty() => Some(commit),
        // Sources that were unpacked into somebody else's repository are none of its commits.
        _ if is_release && git(&["ls-files", "build.rs"]).is_some() => {
            if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
                println!("cargo::rerun-if-changed={log}");
            }
            git(&["log", "-1", "--format=%h %cs"])
        }
        _ if is_release => None,
        _ => Some("built for tests".to_owned()),
    };
    let commit = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=TIPSIM_VERSION={version}{commit}");
}
