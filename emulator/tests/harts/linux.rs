//! Linux on several harts: programs of the shared folder and of a disk, replaced between executions in every way; code that
//! threads and devices change under running harts; locks and lock-free structures. Interpreted, translated, and under the
//! timing core.
//!
//! `TIPSIM_STRESS=N` does everything N times as often, and once more with all code translated, which takes minutes.

use std::path::Path;
use std::process::Command;

use crate::common::{guest, scratch, stderr, stdout, succeed, tipsim};

/// Programs that tell what they are.
const VARIANTS: usize = 6;
/// What `code` and `locks` say.
const OK_LINES: usize = 8 + 2 * 11;
const MODES: [&str; 4] = ["off", "auto", "eager", "timing"];

fn compile(out: &Path, source: &str, options: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/harts").join(source);
    let mut compiler = Command::new("riscv64-linux-gnu-gcc");
    compiler.args(["-O1", "-static", "-Wall", "-Wextra", "-Werror", "-o"]);
    succeed(compiler.arg(out).arg(source).args(options));
}

/// The programs, a disk, and a spec for it all. The boot is done once for each number of harts.
fn prepare(dir: &Path) {
    let programs = dir.join("programs");
    std::fs::create_dir(&programs).unwrap();
    for n in 1..=VARIANTS {
        let variant = format!("-DVARIANT={n}");
        let options = ["-nostdlib", &variant];
        compile(&programs.join(format!("variant{n}")), "variant.c", &options);
    }
    compile(&programs.join("execute"), "execute.c", &[]);
    compile(&programs.join("code"), "code.c", &[]);
    compile(&programs.join("locks"), "locks.c", &["-latomic"]);
    let disk = std::fs::File::create(dir.join("disk")).unwrap();
    disk.set_len(16 << 20).unwrap();
    let command = "cd programs; mkdir folder /tmp/disk; echo 4 > /proc/sys/vm/drop_caches; \
        mke2fs -q /dev/vda && mount -t ext4 /dev/vda /tmp/disk && \
        ./execute $VARIANTS $EXECUTE folder /tmp/disk && \
        ./code $CODE folder/blocks /tmp/disk/blocks /tmp/disk/blocks && exec ./locks $LOCKS";
    let spec = format!(
        "[guest]\ndrive = [\"disk\"]\n[run]\nboot = \"functional\"\nfiles = [\"programs\"]\n\
         command = '''{command}'''\n[record]\ntrace = false\nprofilers = false\n"
    );
    std::fs::write(dir.join("spec.toml"), spec).unwrap();
}

fn run(dir: &Path, harts: u32, mode: &str, often: u32) {
    // What costs most: under the timing core each instruction, `eager` each page of code that is new to a hart.
    let counts = match mode {
        "timing" => [3, 2, 16],
        "eager" => [3, 2, 16],
        _ => [30, 8, 160],
    };
    let [execute, code, locks] = counts.map(|count| count * often);
    let spec = std::fs::read_to_string(dir.join("spec.toml")).unwrap();
    let spec = spec
        .replace("$VARIANTS", &VARIANTS.to_string())
        .replace("$EXECUTE", &execute.to_string())
        .replace("$CODE", &code.to_string())
        .replace("$LOCKS", &locks.to_string());
    let name = format!("{harts}-{mode}");
    let (file, out) = (dir.join(format!("{name}.toml")), dir.join(&name));
    std::fs::write(&file, spec).unwrap();
    let mut command = tipsim();
    command.env("TIPSIM_CACHE", dir.join("cache"));
    command.arg("run").arg(&file).arg("--out").arg(&out);
    command.arg("--guest-dir").arg(guest());
    let more = match mode {
        "timing" => "run.region=command".to_owned(),
        _ => format!("run.translator={mode}"),
    };
    command.args(["--set", &format!("guest.harts={harts}"), "--set", &more]);
    let output = command.output().unwrap();
    let console = std::fs::read_to_string(out.join("console.log")).unwrap_or_default();
    let told = format!("{harts} harts, {mode}: {}{}{console}", stdout(&output), stderr(&output));
    assert!(output.status.success(), "{told}");
    let executed = format!(": 0 of {} programs failed on {harts} harts", 2 * execute);
    assert!(console.contains(&executed), "{told}");
    let oks = console.lines().filter(|line| line.ends_with(": ok"));
    assert_eq!(oks.count(), OK_LINES, "{told}");
    assert!(!console.contains("unhandled signal"), "{told}");
}

#[test]
fn harts_execute_what_files_and_memory_hold_and_locks_hold() {
    let stress = std::env::var("TIPSIM_STRESS").ok();
    let often =
        stress.as_ref().map_or(1, |often| often.parse().expect("TIPSIM_STRESS: expected a number"));
    let dir = scratch("harts-linux");
    prepare(&dir);
    for harts in [2, 4, 16] {
        for mode in MODES {
            if mode != "eager" || stress.is_some() {
                run(&dir, harts, mode, often);
            }
        }
    }
}
