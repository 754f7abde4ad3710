//! The working folder of a guest: what programs and perf do there, and what the host finds afterwards.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use crate::common::{guest, scratch, stderr, stdout, succeed, tipsim};

fn compile(dir: &Path, name: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/folder/guest.c");
    let mut compiler = Command::new("riscv64-linux-gnu-gcc");
    compiler.args(["-O1", "-static", "-Wall", "-Wextra", "-Werror", "-o"]);
    succeed(compiler.arg(dir.join(name)).arg(source));
}

/// Shared mappings, pipes, sockets, devices, allocation, locks, attributes, times and the like each say "ok"; perf writes
/// its data there; of all this the host finds what it should.
#[test]
fn is_a_whole_file_system() {
    let dir = scratch("folder");
    compile(&dir, "program");
    fs::write(dir.join("input"), "input\n").unwrap();
    let input = fs::File::open(dir.join("input")).unwrap();
    let old = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    input.set_modified(old).unwrap();
    let command = "./program > result 2>&1; echo $? > failed; \
        perf record -q -e cycles -o perf.data -- ./program > again 2> said; perf report -i perf.data --stdio | grep -c % > lines; \
        mkfifo control ack; perf stat -D -1 --control fifo:control,ack -e cycles -- true 2> stat; echo $? > status-of-stat; \
        mkdir root root/out; mount -t virtiofs out root/out; chroot root /out/program /out/input > chrooted; \
        umount root/out; rm -r root";
    let spec = format!(
        "[guest]\nharts = 2\n[run]\nboot = \"functional\"\ncheckpoint = false\nregion = \"run\"\n\
         files = [{:?}, {:?}]\ncommand = '''{command}'''\n[record]\ntrace = false\nprofilers = false\n",
        dir.join("program"),
        dir.join("input")
    );
    fs::write(dir.join("spec.toml"), spec).unwrap();
    let out = dir.join("out");
    let mut run = tipsim();
    run.arg("run").arg(dir.join("spec.toml"));
    run.arg("--guest-dir").arg(guest()).arg("--out").arg(&out);
    let output = run.output().unwrap();
    let told = format!("{}{}", stdout(&output), stderr(&output));
    let files = out.join("files");
    let text = |name: &str| {
        fs::read_to_string(files.join(name)).unwrap_or_else(|e| panic!("{name}: {e}: {told}"))
    };

    let result = text("result");
    let wrong: Vec<&str> = result.lines().filter(|line| !line.ends_with(": ok")).collect();
    assert_eq!(wrong, [""; 0], "{result}");
    assert_eq!((result.lines().count(), text("failed").trim()), (42, "0"));

    assert_eq!(text("said"), "", "perf writes its data there");
    assert!(text("lines").trim().parse::<u32>().unwrap() > 3);
    assert_eq!(text("status-of-stat").trim(), "0", "{}", text("stat"));
    assert_eq!(text("chrooted"), "input\n");

    let mapped = fs::read(files.join("mapped")).unwrap();
    assert_eq!(
        (mapped.len(), &mapped[5000..5004], &mapped[8192..8197]),
        (1 << 20, &b"abcd"[..], &b"child"[..])
    );
    assert_eq!(text("named"), "temporary");
    for name in ["fifo", "socket", "zero"] {
        let left = fs::symlink_metadata(files.join(name)).unwrap();
        assert!(left.is_file() && left.len() == 0, "{name} is an empty file here");
    }
    let set = fs::metadata(files.join("one")).unwrap().modified().unwrap();
    assert_eq!(set, UNIX_EPOCH + Duration::from_secs(1_234_567_890));
    assert!(!files.join("input").exists(), "what was put in is taken out");
}
