//! The guest's counters and its TIP driver: what they must live through, and what user programs may read.

mod common;

use std::path::Path;
use std::process::Command;

use common::{guest, repo, scratch, stderr, stdout, tipsim};

fn compile(source: &Path, program: &Path) {
    let flags = ["-O1", "-g", "-static", "-fno-omit-frame-pointer", "-o"];
    let mut gcc = Command::new("riscv64-linux-gnu-gcc");
    let status = gcc.args(flags).args([program, source]).status();
    assert!(status.expect("run riscv64-linux-gnu-gcc").success());
}

/// Runs a command in the guest, under the timing core; what the console showed.
#[track_caller]
fn console(dir: &Path, harts: u32, command: &str, files: &[&str]) -> String {
    let (spec, out) = (dir.join("spec.toml"), dir.join("out"));
    let text = format!(
        "guest.harts = {harts}\n[run]\nboot = \"functional\"\nregion = \"command\"\n\
         max_cycles = 20000000000\ncommand = '''{command}'''\nfiles = {files:?}\n\
         [record]\ntrace = false\nprofilers = false\n"
    );
    std::fs::write(&spec, text).unwrap();
    let mut run = tipsim();
    run.arg("run").arg(&spec).arg("--guest-dir").arg(guest());
    let output = run.arg("--out").arg(&out).output().unwrap();
    let console = std::fs::read(out.join("console.log")).unwrap_or_default();
    let console = String::from_utf8_lossy(&console).replace('\r', "");
    assert!(
        output.status.success(),
        "{}{}{console}",
        stdout(&output),
        stderr(&output)
    );
    console
}

/// The number after `name` in a line.
fn number(line: &str, name: &str) -> u64 {
    let mut words = line.split([' ', ',']).skip_while(|word| *word != name);
    let value = words.nth(1).and_then(|word| word.parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in: {line}"))
}

/// A low period costs time and not the system, with call chains on, whatever processes, maps, threads, signals and
/// stacks do; and the kernel has nothing to complain of.
#[test]
fn perf_record_lives_through_a_storm_at_low_periods_with_call_chains() {
    let dir = scratch("driver-storm");
    let storm = repo().join("workloads/storm");
    compile(&storm.join("storm.c"), &dir.join("storm"));
    std::fs::copy(storm.join("storm.sh"), dir.join("storm.sh")).unwrap();
    let ways = [
        "-e tip -c 1000 -g",
        "-a -e tip -c 10007 --call-graph dwarf,1024",
        "-e tip -e context-switches -c 10007 -g",
    ];
    std::fs::write(dir.join("ways"), ways.join("\n") + "\n").unwrap();
    let command = "sh storm.sh 1 < ways\n\
        cd /tmp; perf record -q -e tip -c 200 -g -o low -- ls > ls.out; echo low: status $?\n\
        echo low: SAMPLE $(perf script -i low -F ip -G | wc -l); dmesg";
    let said = console(&dir, 2, command, &["storm", "storm.sh", "ways"]);
    assert!(said.contains("\nall 3 over\n"), "{said}");
    for way in ways {
        let line = said.lines().find(|line| line.starts_with(way)).unwrap();
        assert!(number(line, "SAMPLE") > 200, "{line}");
    }
    assert!(said.contains("\nlow: status 0\n"), "{said}");
    let low = said.lines().find(|line| line.starts_with("low: SAMPLE"));
    assert!(number(low.unwrap(), "SAMPLE") > 1000, "{low:?}");
    let frozen = said.lines().find(|line| line.starts_with("stood still"));
    assert!(number(frozen.unwrap(), "still:") > 1_000_000, "{frozen:?}");
    for complaint in [
        "WARNING",
        "BUG:",
        "Call Trace",
        "detected stall",
        "can hang your system",
    ] {
        assert!(!said.contains(complaint), "{complaint}: {said}");
    }
}

/// The unit does not sample what its own interrupt costs, and its samples stand for all cycles but those.
#[test]
fn samples_leave_out_the_handler_and_their_periods_are_the_rest_of_the_cycles() {
    let dir = scratch("driver-frozen");
    let command = "\
        perf stat -x, -e tip -o counted -- seq 1 3000 > /dev/null; cat counted\n\
        perf record -q -e tip -c 10007 -o p -- seq 1 3000 > /dev/null\n\
        perf script -i p -F period,sym | awk '{ n += $1; if ($2 ~ /^(tip_|perf_event_output|perf_prepare)/) own += $1 }\n\
            END { print \"periods: \" n; print \"own: \" own + 0 }'\n\
        perf report -i p --stats | grep -c LOST || true";
    let said = console(&dir, 1, command, &[]);
    let line = said.lines().find(|line| line.contains(",,tip,")).unwrap();
    let counted: u64 = line.split(',').next().unwrap().parse().unwrap();
    let value = |name: &str| {
        let line = said.lines().find(|line| line.starts_with(name)).unwrap();
        number(line, name)
    };
    let (periods, own) = (value("periods:"), value("own:"));
    // Caches and predictors are disturbed by the interrupts, so that the program is slower, by less than this.
    assert!(
        (counted * 9 / 10..counted * 3 / 2).contains(&periods),
        "{counted} counted, {periods} sampled: {said}"
    );
    // What remains is tip_add and the like, at context switches.
    assert!(own * 20 < periods, "{own} of {periods}: {said}");
}

/// A counter of the hart whose period is shorter than its own interrupt leaves time to the program, too.
#[test]
fn a_period_shorter_than_its_interrupt_is_throttled() {
    let dir = scratch("driver-short");
    let command = "\
        perf record -q -e cycles:k -c 211 -o p -- dd if=/dev/zero of=/tmp/z bs=1k count=100; echo short: status $?\n\
        perf report -i p --stats > stats; awk '/THROTTLE|SAMPLE/ { print $1 \": \" $3 }' stats\n\
        perf stat -x, -e cycles:k,instructions:k -- true 2>&1";
    let said = console(&dir, 1, command, &[]);
    assert!(said.contains("\nshort: status 0\n"), "{said}");
    let line = |name: &str| said.lines().find(|line| line.starts_with(name));
    // As many as perf lets through until the next tick.
    assert!(number(line("SAMPLE").unwrap(), "SAMPLE:") >= 4000, "{said}");
    assert!(number(line("THROTTLE").unwrap(), "THROTTLE:") > 0, "{said}");
    // Counters of stopped events are free again.
    assert!(!said.contains("not counted"), "{said}");
}

/// A program without perf reads the counters, before and after the sysctl, beside `perf stat` and after it, on
/// each hart.
#[test]
fn rdcycle_and_rdinstret_count_in_user_programs() {
    let dir = scratch("driver-rdcycle");
    let source = "\
        #include <stdio.h>\n\
        #define READ(name) ({ unsigned long v; __asm__ volatile(\"rd\" name \" %0\" : \"=r\"(v)); v; })\n\
        int main(void) {\n\
            unsigned long c = READ(\"cycle\"), n = READ(\"instret\"), t = READ(\"time\");\n\
            for (volatile int i = 0; i < 20000; i++);\n\
            n = READ(\"instret\") - n; c = READ(\"cycle\") - c; t = READ(\"time\") - t;\n\
            printf(\"read cycles %lu instret %lu time %lu\\n\", c, n, t);\n\
            return 0;\n\
        }\n";
    std::fs::write(dir.join("counts.c"), source).unwrap();
    compile(&dir.join("counts.c"), &dir.join("counts"));
    let command = "\
        taskset 1 ./counts; taskset 2 ./counts\n\
        perf stat -x, -e cycles:u,instructions:u ./counts 2>&1; ./counts\n\
        perf record -q -e cycles -c 10000 -o p ./counts; ./counts\n\
        echo 2 > /proc/sys/kernel/perf_user_access; ./counts\n\
        perf stat -x, -e cycles:u,instructions:u ./counts 2>&1; ./counts\n\
        echo 1 > /proc/sys/kernel/perf_user_access; ./counts\n\
        echo 0 > /proc/sys/kernel/perf_user_access; ./counts; echo refused $?";
    let said = console(&dir, 2, command, &["counts"]);
    let lines: Vec<&str> = said.lines().filter(|l| l.starts_with("read ")).collect();
    assert_eq!(lines.len(), 10, "{said}");
    for line in lines {
        // Each turn of the loop has at least a load, an addition, a store and a branch.
        assert!(
            (80_000..400_000).contains(&number(line, "instret")),
            "{line}"
        );
        assert!(
            (20_000..2_000_000).contains(&number(line, "cycles")),
            "{line}"
        );
        assert!(number(line, "time") > 0, "{line}");
    }
    let perf = said.lines().filter(|line| line.contains("instructions:u"));
    let counts: Vec<u64> = perf
        .map(|line| line.split(',').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(counts.len(), 2, "{said}");
    assert!(counts.iter().all(|count| *count > 80_000), "{said}");
    // 128 + SIGILL.
    assert!(said.contains("refused 132"), "{said}");
}
