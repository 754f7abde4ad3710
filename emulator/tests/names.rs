//! Names of the guest's code: one run of programs whose files, debug information or code lie in unusual places.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::common::{guest, json, scratch, stderr, succeed, tipsim};
use serde_json::Value;

/// Two levels of inlined functions in a loop; `NAME` is the loop's function.
const LOOP: &str = "static volatile long sum;\n\
    static inline __attribute__((always_inline)) void deep(long n) { sum += n; }\n\
    static inline __attribute__((always_inline)) void shallow(long n) { deep(n); sum ^= n; }\n\
    __attribute__((noinline)) void NAME(long n) { for (long i = 0; i < n; i++) shallow(i); }\n\
    int main(void) { NAME(60000); return 0; }\n";

/// Makes two functions at run time, and a second one where the first was; names them as JITs do.
const JIT: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void put(char *at, int step) {
    /* addi a0, a0, -step; bnez a0, -4; ret */
    uint32_t code[] = { 0x00050513u | (uint32_t)-step << 20, 0xfe051ee3, 0x00008067 };
    memcpy(at, code, sizeof code);
    __builtin___clear_cache(at, at + sizeof code);
}

static void record(FILE *dump, char *at, long number, const char *name) {
    uint32_t head[] = { 0, 16 + 40 + strlen(name) + 1 + 12, number, 0, getpid(), getpid() };
    uint64_t place[] = { (uintptr_t)at, (uintptr_t)at, 12, number };
    fwrite(head, 1, sizeof head, dump);
    fwrite(place, 1, sizeof place, dump);
    fwrite(name, 1, strlen(name) + 1, dump);
    fwrite(at, 1, 12, dump);
}

int main(int argc, char **argv) {
    char *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char name[64];
    put(page, 1);
    if (argc > 1) {
        uint32_t head[] = { 0x4A695444, 1, 40, 243, 0, getpid(), 0, 0, 0, 0 };
        snprintf(name, sizeof name, "/tmp/jit-%d.dump", getpid());
        FILE *dump = fopen(name, "w");
        fwrite(head, 1, sizeof head, dump);
        record(dump, page, 1, "before");
        ((void (*)(long))page)(800000);
        put(page, 2);
        record(dump, page, 2, "after");
        fclose(dump);
        ((void (*)(long))page)(800000);
    } else {
        snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
        FILE *map = fopen(name, "w");
        fprintf(map, "%lx c made;at <run> \"time\"\n", (long)page);
        fclose(map);
        ((void (*)(long))page)(800000);
    }
    return 0;
}
"#;

fn compile(dir: &Path, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let file = dir.join(name);
    let c = dir.join(format!("{name}.c"));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&c, source).unwrap();
    let mut gcc = Command::new("riscv64-linux-gnu-gcc");
    gcc.current_dir(dir).args(["-O2", "-g", "-static", "-o"]).arg(&file).arg(&c);
    succeed(gcc.args(options));
    file
}

fn strip(file: &Path, options: &[&str], to: &Path) {
    succeed(Command::new("riscv64-linux-gnu-objcopy").args(options).args([file, to]));
}

/// The run, once; its folder.
fn run() -> &'static Path {
    static RUN: OnceLock<PathBuf> = OnceLock::new();
    RUN.get_or_init(|| {
        let dir = scratch("names");
        let named = |name: &str| LOOP.replace("NAME", name);
        compile(&dir, "plain", &named("in_the_folder"), &["-Wl,--build-id=none"]);
        compile(&dir, "split", &named("in_split"), &["-gsplit-dwarf"]);
        let whole = compile(&dir, "linked", &named("in_linked"), &["-Wl,--build-id=none"]);
        strip(&whole, &["--only-keep-debug"], &dir.join("linked.debug"));
        let link = format!("--add-gnu-debuglink={}", dir.join("linked.debug").display());
        strip(&whole, &["--strip-all", &link], &whole);
        let stripped = compile(&dir, "stripped", &named("nobody_knows"), &[]);
        strip(&stripped, &["--strip-all"], &stripped);
        compile(&dir, "root/usr/bin/real", &named("in_the_root"), &["-Wl,--build-id=none"]);
        std::os::unix::fs::symlink("/usr/bin/real", dir.join("root/usr/bin/linked-to")).unwrap();
        std::fs::create_dir(dir.join("root/tmp")).unwrap();
        compile(&dir, "root/usr/bin/jit", JIT, &[]);
        compile(&dir, "jit", JIT, &[]);
        // Where a reader looks, but of another program than the one that the guest copies there.
        compile(&dir, "wrong/out/copied", &named("of_another_program").replace("sum ^= n", "sum += 3 * n"), &["-Wl,--build-id=none"]);
        let spec = dir.join("spec.toml");
        let files = ["plain", "split", "linked", "stripped", "root", "jit"];
        let files = files.map(|file| format!("{:?}", dir.join(file))).join(", ");
        let symbols = dir.join("wrong");
        std::fs::write(
            &spec,
            format!(
                "[guest]\nsymbols = [{symbols:?}]\n[run]\nboot = \"functional\"\nthreads = \"one\"\nregion = \"command\"\nfiles = [{files}]\n\
                 command = \"\"\"./plain; cp plain copied; ./copied; ./split; \
                 ./linked; ./stripped; chroot root /usr/bin/linked-to; ./jit; ./jit dump; chroot root /usr/bin/jit; true\"\"\"\n"
            ),
        )
        .unwrap();
        let out = dir.join("out");
        let mut command = tipsim();
        command.arg("run").arg(&spec).arg("--out").arg(&out).arg("--guest-dir").arg(guest());
        succeed(&mut command);
        out
    })
}

/// Functions of a process that have at least a tenth of its time in user mode, and what is missing there.
fn functions(report: &Value, process: &str) -> Vec<(String, String)> {
    let processes = report["processes"].as_array().unwrap();
    let own = |index: &Value| {
        let name = processes[index.as_u64().unwrap() as usize]["name"].as_str().unwrap();
        name == process || name.strip_prefix(process).is_some_and(|rest| rest.starts_with('-'))
    };
    let rows = report["functions"].as_array().unwrap().iter();
    rows.filter(|row| own(&row["process"]) && row["share"].as_f64().unwrap() > 0.1)
        .map(|row| (row["name"].as_str().unwrap().to_owned(), row["missing"].to_string()))
        .collect()
}

#[track_caller]
fn assert_named(process: &str, names: &[&str]) {
    let report = json(&run().join("report.json"));
    let found: Vec<String> =
        functions(&report, process).into_iter().map(|(name, _)| name).collect();
    for name in names {
        assert!(found.iter().any(|found| found == name), "{process}: no {name} in {found:?}");
    }
    assert!(!found.iter().any(|name| name == "of_another_program" || name == "wrong"), "{found:?}");
}

#[test]
fn a_program_of_the_working_folder_is_named_by_the_hosts_file() {
    assert_named("plain", &["in_the_folder"]);
    assert_named("linked", &["in_linked"]);
}

#[test]
fn a_program_that_the_guest_made_is_named_by_what_it_left() {
    assert_named("copied", &["in_the_folder"]);
}

#[test]
fn a_chrooted_program_is_named_by_the_shared_root() {
    assert_named("linked-to", &["in_the_root"]);
}

#[test]
fn what_to_hand_in_is_said_beside_the_name() {
    let report = json(&run().join("report.json"));
    let found = functions(&report, "stripped");
    assert!(found[0].1.contains(".debug (--debug-dir)"), "{found:?}");
    for file in ["report.txt", "report.html"] {
        let text = std::fs::read_to_string(run().join(file)).unwrap();
        assert!(
            text.contains("stripped: its names and source lines are in the debug file of"),
            "{file}"
        );
    }
}

#[test]
fn inlined_functions_of_split_and_linked_debug_information() {
    let mut command = tipsim();
    command.arg("report").arg(run()).args(["--format", "folded", "--profiler", "oracle"]);
    let folded = succeed(&mut command);
    for (process, function) in
        [("plain", "in_the_folder"), ("split", "in_split"), ("linked", "in_linked")]
    {
        let wanted = format!("{function};shallow_[i];deep_[i]");
        let mut own = folded.lines().filter(|line| line.starts_with(process));
        assert!(own.any(|line| line.contains(&wanted)), "{process}: no {wanted} in {folded}");
    }
}

#[test]
fn code_made_at_run_time_is_named_in_every_format() {
    const NAME: &str = "made;at <run> \"time\"";
    assert_named("jit", &[NAME, "before", "after"]);
    let report = json(&run().join("report.json"));
    let twice = functions(&report, "jit").into_iter().filter(|(name, _)| name == NAME).count();
    assert_eq!(twice, 2, "the chrooted one, too");
    for (format, name) in [
        ("folded", "made:at <run> \"time\""),
        ("speedscope", "made;at <run> \\\"time\\\""),
        ("firefox", "made;at <run> \\\"time\\\""),
    ] {
        let file = run().join(format);
        let mut command = tipsim();
        command.arg("report").arg(run()).args(["--format", format, "-o"]).arg(&file);
        succeed(&mut command);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(name), "{format}");
        if format != "folded" {
            json(&file);
        }
    }
    // perf reads names from files; two functions were at one address, one after the other.
    let file = run().join("perf-data");
    let mut command = tipsim();
    command
        .args(["report", "--format", "perf-data", "--profiler", "oracle"])
        .arg(run())
        .arg("-o")
        .arg(&file);
    succeed(&mut command);
    let mut perf = Command::new("perf");
    perf.args(["report", "--stdio", "--no-children", "-g", "none"]);
    perf.args(["--sort", "comm,sym", "-i"]);
    let report = succeed(perf.arg(&file));
    for name in [NAME, "before", "after"] {
        let named = |line: &&str| line.contains(" jit ") && line.trim_end().ends_with(name);
        let line = report.lines().find(named);
        let percent = line.and_then(|line| line.split('%').next()?.trim().parse::<f64>().ok());
        assert!(percent.is_some_and(|percent| percent > 0.5), "{name}: {report}");
    }
}

#[test]
fn a_file_of_another_program_is_refused_with_a_word() {
    // Without what the guest left, only the wrong file is there.
    let moved = scratch("names-moved");
    for file in ["run.json", "trace.tip", "evaluation.zst", "report.json"] {
        std::fs::copy(run().join(file), moved.join(file)).unwrap();
    }
    let output = tipsim().arg("report").arg(&moved).arg("--rebuild").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&moved.join("report.json"));
    let found = functions(&report, "copied");
    assert!(found[0].1.contains("is another file than the guest ran"), "{found:?}");
    assert!(found.iter().all(|(name, _)| name != "of_another_program"), "{found:?}");
}
