//! The guest's counters and its TIP driver: what they must live through, and what user programs may read.

use std::path::Path;
use std::process::Command;

use crate::common::{UNTIMED_PERF_REPORTS, guest, json, repo, scratch, stderr, stdout, tipsim};

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
    // With one thread: a second one takes a third more processor time, and tests that run beside each other leave no processor idle.
    let text = format!(
        "guest.harts = {harts}\n[run]\nboot = \"functional\"\nthreads = \"one\"\nregion = \"command\"\n\
         max_cycles = 20000000000\ncommand = '''{UNTIMED_PERF_REPORTS}{command}'''\nfiles = {files:?}\n\
         [record]\ntrace = false\nprofilers = false\n"
    );
    std::fs::write(&spec, text).unwrap();
    let mut run = tipsim();
    run.arg("run").arg(&spec).arg("--guest-dir").arg(guest());
    let output = run.arg("--out").arg(&out).output().unwrap();
    let console = std::fs::read(out.join("console.log")).unwrap_or_default();
    let console = String::from_utf8_lossy(&console).replace('\r', "");
    assert!(output.status.success(), "{}{}{console}", stdout(&output), stderr(&output));
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
#[ignore = "scripts/test --long"]
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
    for complaint in ["WARNING", "BUG:", "Call Trace", "detected stall", "can hang your system"] {
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
    // perf lets that many samples through until the next tick.
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
        assert!((80_000..400_000).contains(&number(line, "instret")), "{line}");
        assert!((20_000..2_000_000).contains(&number(line, "cycles")), "{line}");
        assert!(number(line, "time") > 0, "{line}");
    }
    let perf = said.lines().filter(|line| line.contains("instructions:u"));
    let counts: Vec<u64> =
        perf.map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
    assert_eq!(counts.len(), 2, "{said}");
    assert!(counts.iter().all(|count| *count > 80_000), "{said}");
    // 128 + SIGILL.
    assert!(said.contains("refused 132"), "{said}");
}

/// Two programs on one hart and on two, with disjoint code in user mode and each with a system call of its own: whatever
/// switches, no sample of one lies in the other's code.
#[test]
#[ignore = "scripts/test --long"]
fn no_sample_of_a_program_lies_in_the_code_of_another() {
    let dir = scratch("driver-crossed");
    let source = "\
        #include <sched.h>\n\
        #include <sys/syscall.h>\n\
        #include <unistd.h>\n\
        int main(void) {\n\
            for (int turn = 0; turn < 300; turn++) {\n\
                for (volatile int i = 0; i < 400; i++);\n\
                for (int i = 0; i < 20; i++) syscall(OWN, 0);\n\
                sched_yield();\n\
            }\n\
            return 0;\n\
        }\n";
    std::fs::write(dir.join("turns.c"), source).unwrap();
    for (name, call, text) in
        [("left", "SYS_getppid", "0x10000000"), ("right", "SYS_getsid", "0x20000000")]
    {
        let mut gcc = Command::new("riscv64-linux-gnu-gcc");
        gcc.args(["-O1", "-g", "-static", "-fno-omit-frame-pointer"]);
        gcc.args([format!("-DOWN={call}"), format!("-Wl,-Ttext-segment={text}")]);
        gcc.arg("-o").args([dir.join(name), dir.join("turns.c")]);
        assert!(gcc.status().expect("run riscv64-linux-gnu-gcc").success());
    }
    let count = "\
        /left|right/ {\n\
            in_code = \"else\"\n\
            if ($2 ~ /^1.......$/ || $3 ~ /getppid/) in_code = \"left\"\n\
            if ($2 ~ /^2.......$/ || $3 ~ /getsid/) in_code = \"right\"\n\
            if ($2 ~ /^ffff/ && in_code != \"else\") n[$1 \" in call of \" in_code]++\n\
            n[$1 \" in \" in_code]++\n\
        }\n\
        END { for (k in n) print way \": \" k \": \" n[k] }\n";
    std::fs::write(dir.join("count.awk"), count).unwrap();
    let command = "\
        one='taskset 1 ./left & taskset 1 ./right & wait'\n\
        two='taskset 1 ./left & taskset 2 ./right & taskset 2 ./left & taskset 1 ./right & wait'\n\
        own='perf stat -e cycles:u -o /tmp/s taskset 1 ./left & taskset 1 ./right & wait'\n\
        record() { way=$1; shift; perf record -q -c 4999 -o /tmp/p-$way \"$@\"; echo $way: status $?; }\n\
        record harts -a -e tip sh -c \"$one\"\n\
        record two-harts -a -e tip sh -c \"$two\"\n\
        record cloned -e tip sh -c \"$one\"\n\
        record own-events -a -e tip sh -c \"$own\"\n\
        record nci -a -e tip/nci/ sh -c \"$one\"\n\
        record software -e tip/software/ sh -c \"$one\"\n\
        record chains -a -g -e tip/random=1/ sh -c \"$one\"\n\
        tipsim-region stop # What reads the files is not timed either.\n\
        for way in harts two-harts cloned own-events nci software; do\n\
            perf.real script -i /tmp/p-$way -F comm,ip,sym | awk -v way=$way -f count.awk\n\
        done\n\
        dmesg";
    let said = console(&dir, 2, command, &["left", "right", "count.awk"]);
    for way in ["harts", "two-harts", "cloned", "own-events", "nci", "software"] {
        assert!(said.contains(&format!("\n{way}: status 0\n")), "{said}");
        let samples = |what: &str| {
            let start = format!("{way}: {what}: ");
            let line = said.lines().find_map(|line| line.strip_prefix(&start));
            line.map_or(0, |count| count.parse::<u64>().unwrap())
        };
        for (own, other) in [("left", "right"), ("right", "left")] {
            assert_eq!(samples(&format!("{own} in {other}")), 0, "{way}: {said}");
            assert!(samples(&format!("{own} in {own}")) > 100, "{way}: {said}");
            assert!(samples(&format!("{own} in call of {own}")) > 0, "{way}: {said}");
        }
    }
    assert!(said.contains("\nchains: status 0\n"), "{said}");
    assert!(!said.contains("WARNING: CPU:"), "{said}");
}

/// A hart may go while all harts or a task on it are recorded, and come back; then it is sampled as before.
#[test]
fn harts_go_offline_and_come_back_while_perf_records() {
    let dir = scratch("driver-hotplug");
    let command = "\
        cpu=/sys/devices/system/cpu/cpu1/online\n\
        off_and_on='for i in 1 2; do echo 0 > '$cpu'; seq 1 200; echo 1 > '$cpu'; taskset 2 seq 1 200; done'\n\
        record() { way=$1; shift; perf record -q -e tip -c 10007 -o /tmp/p \"$@\" > /tmp/out; echo $way: status $?\n\
            perf script -i /tmp/p -F cpu | awk -v way=$way '{ n[$1]++ } END { for (k in n) print way \": \" k \" \" n[k] }'; }\n\
        record during -a sh -c \"$off_and_on\"\n\
        record after -a taskset 2 seq 1 1000\n\
        record task --sample-cpu sh -c \"taskset 3 seq 1 3000 & $off_and_on; wait\"\n\
        echo 0 > $cpu; perf stat -C 1 -e tip true; echo offline: status $?; echo 1 > $cpu\n\
        perf stat -x, -C 1 -e tip taskset 2 seq 1 100 2>&1 > /tmp/out; cat $cpu; dmesg";
    let said = console(&dir, 2, command, &[]);
    for way in ["during", "after", "task"] {
        assert!(said.contains(&format!("\n{way}: status 0\n")), "{said}");
        for hart in ["[000]", "[001]"] {
            let start = format!("{way}: {hart} ");
            let line = said.lines().find_map(|line| line.strip_prefix(&start));
            // In "during" the second hart has the samples until it went offline.
            let least = if way == "after" && hart == "[001]" { 20 } else { 1 };
            let samples = line.map_or(0, |count| count.parse::<u64>().unwrap());
            assert!(samples >= least, "{start}{samples}: {said}");
        }
    }
    assert!(!said.contains("offline: status 0"), "{said}");
    let counted = said.lines().find(|line| line.contains(",,tip,")).unwrap();
    let cycles: u64 = counted.split(',').next().unwrap().parse().unwrap();
    assert!(cycles > 10_000, "{counted}");
    assert!(said.contains("CPU1: off"), "{said}");
    for complaint in ["WARNING: CPU:", "BUG:", "Call Trace", "detected stall"] {
        assert!(!said.contains(complaint), "{complaint}: {said}");
    }
}

/// A hart has one unit: events take turns, and what cannot be is refused with its reason.
#[test]
fn several_tip_events_take_turns_or_are_refused_with_the_reason() {
    let dir = scratch("driver-several");
    let command = "\
        perf record -q -e '{tip,tip:u}' -o p true 2>&1; echo group: status $?\n\
        perf stat -e '{tip,tip:u}' true 2>&1; echo counted group: status $?\n\
        perf record -q -e tip -c 281474976710657 -o p true 2>&1; echo period: status $?\n\
        perf record -q -b -e tip -o p true 2>&1; echo branches: status $?\n\
        perf record -q -C 5 -e tip -o p true 2>&1; echo no hart: status $?\n\
        perf stat -x, -e tip -e tip:u -o counted dd if=/dev/zero of=/dev/null bs=1k count=15000 2> /dev/null; cat counted\n\
        perf record -q -e tip -e tip/random=1/ -c 100003 -o p dd if=/dev/zero of=/dev/null bs=1k count=15000 2> /dev/null\n\
        perf script -i p -F event | sort | uniq -c";
    let said = console(&dir, 1, command, &[]);
    for refused in ["group", "period", "branches", "no hart"] {
        assert!(!said.contains(&format!("\n{refused}: status 0")), "{said}");
        assert!(said.contains(&format!("\n{refused}: status ")), "{said}");
    }
    assert!(said.contains("A hart has one TIP unit"), "{said}");
    // perf stat says no more than this of any event that a group cannot have.
    assert!(said.contains("<not supported>      tip:u"), "{said}");
    assert!(said.contains("a period can be up to 281474976710656"), "{said}");
    assert!(said.contains("doesn't support branch stack"), "{said}");
    let counts = said.lines().filter(|line| line.contains(",,tip"));
    let running: Vec<f64> =
        counts.map(|line| line.split(',').nth(4).unwrap().parse().unwrap()).collect();
    assert_eq!(running.len(), 2, "{said}");
    assert!(running.iter().all(|p| (20.0..80.0).contains(p)), "{said}");
    for event in [" tip:", " tip/random=1/:"] {
        let line = said.lines().find(|line| line.trim_end().ends_with(event));
        let samples = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        assert!(samples.is_some_and(|n| n > 10), "{event}: {said}");
    }
}

/// The longest of these tests, and so by itself: it runs beside the others. Its programs are shorter here than the test wants.
#[test]
#[ignore = "scripts/test --long"]
fn a_guest_passes_perfs_own_test_of_tip_units() {
    let dir = scratch("driver-perf-test");
    let command = "\
        test=/usr/libexec/perf-core/tests/shell/test_tip.sh\n\
        sed -i 's/i < 20000/i < 6000/; s/brstack 500000/brstack 150000/' $test\n\
        grep -c 'i < 6000\\|brstack 150000' $test\n\
        perf test 'TIP PMU' 2>&1; perf test list 2>&1 | grep TIP";
    let said = console(&dir, 1, command, &[]);
    assert!(said.lines().any(|line| line == "2"), "programs are as long as ever: {said}");
    assert!(said.contains("TIP PMU: samples, counts and errors"), "{said}");
    assert!(said.contains(": Ok"), "{said}");
    let run = json(&dir.join("out/run.json"));
    assert!(run["regions"]["count"].as_u64().unwrap() > 10, "perf's reading was timed: {said}");
}

/// With samples in memory there is an interrupt for many of them, each sample has the time of its own cycle, and the profile is that of
/// an interrupt each; on one hart and on two, at low periods, too.
#[test]
#[ignore = "scripts/test --long"]
fn samples_from_memory_take_few_interrupts_and_are_those_of_an_interrupt_each() {
    let dir = scratch("driver-buffer");
    let source = "\
        static unsigned long x = 12345;\n\
        #define WORK(name, turns, what) __attribute__((noinline)) void name(void) { for (long i = 0; i < turns; i++) what; }\n\
        WORK(adds, 3000, __asm__ volatile(\"addi %0, %0, 3\" : \"+r\"(x)))\n\
        WORK(divides, 300, __asm__ volatile(\"div %0, %0, %1\\n addi %0, %0, 99\" : \"+r\"(x) : \"r\"(3L)))\n\
        WORK(branches, 1000, { x ^= x << 13; x ^= x >> 7; x ^= x << 17; if (x & 64) __asm__ volatile(\"\"::: \"memory\"); })\n\
        int main(int argc, char **argv) {\n\
            for (int turn = 0; turn < (argc > 1 ? 4000 : 1000); turn++) { adds(); divides(); branches(); }\n\
            return 0;\n\
        }\n";
    std::fs::write(dir.join("work.c"), source).unwrap();
    compile(&dir.join("work.c"), &dir.join("work"));
    let times = "\
        /TIP: cycle/ { cycle = $4 + 0 }\n\
        /PERF_RECORD_SAMPLE/ {\n\
            time = $2; cpu = $1; if ($2 ~ /^0x/) { time = $1; cpu = 0 }\n\
            if (time < last[cpu]) back++; last[cpu] = time\n\
            off = time - cycle * 5 / 16; if (!n || off < least) least = off; if (!n++ || off > most) most = off\n\
        }\n\
        END { printf \"%s: spread %d back %d\\n\", way, most - least, back }\n";
    std::fs::write(dir.join("times.awk"), times).unwrap();
    let command = "\
        irqs() { awk '/ tip$/ { for (i = 2; i <= 3; i++) n += $i } END { print n }' /proc/interrupts; }\n\
        record() {\n\
            way=$1; shift; before=$(irqs); perf record -q -o /tmp/p-$way \"$@\" > /dev/null; echo $way: status $?\n\
            after=$(irqs); echo \"$way: interrupts $((after - before))\"\n\
        }\n\
        cat /sys/bus/event_source/devices/tip/caps/buffer_records\n\
        record buffer -e tip:u -c 10007 taskset 1 ./work\n\
        record single -e tip:u -c 10007 -k mono taskset 1 ./work\n\
        record chains -e tip:u -c 10007 -g taskset 1 ./work\n\
        record waited -e tip:u -c 10007 --no-buffering taskset 1 ./work\n\
        record low -e tip -c 500 taskset 1 seq 1 300\n\
        record slow -e tip -F 4000 taskset 1 ./work long\n\
        record harts -a -e tip -c 10007 sh -c 'taskset 1 ./work & taskset 2 ./work; wait'\n\
        tipsim-region stop # What reads the files is not timed either.\n\
        for way in buffer single chains waited low slow harts; do\n\
            perf.real report -i /tmp/p-$way --stats | awk -v way=$way '/SAMPLE|LOST|THROTTLE/ && !/tip/ { print way \": \" $1 \" \" $3 }'\n\
            perf.real script -i /tmp/p-$way -F comm,period,ip,sym -G | awk -v way=$way '$1 == \"work\" { n[$4] += $2; all += $2 }\n\
                END { for (k in n) if (n[k] * 50 > all) print way \": share \" k \" \" n[k] / all }'\n\
        done\n\
        for way in buffer low harts; do perf.real script -i /tmp/p-$way -D 2> /dev/null | awk -v way=$way -f times.awk; done\n\
        ls -l /tmp/p-buffer | awk '{ print \"buffer: bytes \" $5 }'\n\
        dmesg";
    let said = console(&dir, 2, command, &["work", "times.awk"]);
    assert!(said.contains("\n256\n"), "{said}");
    let value = |way: &str, name: &str| {
        let start = format!("{way}: {name} ");
        let line = said.lines().find_map(|line| line.strip_prefix(&start));
        line.map_or(0.0, |value| value.trim().parse::<f64>().unwrap())
    };
    for way in ["buffer", "single", "chains", "waited", "low", "slow", "harts"] {
        assert!(said.contains(&format!("\n{way}: status 0\n")), "{said}");
        assert_eq!(value(way, "LOST_SAMPLES"), 0.0, "{way}: {said}");
        assert!(value(way, "SAMPLE") > 10.0, "{way}: {said}");
    }
    for way in ["single", "chains", "waited"] {
        let (samples, interrupts) = (value(way, "SAMPLE"), value(way, "interrupts"));
        assert!(interrupts * 1.2 > samples, "{way}: {said}");
        for function in ["adds", "divides", "branches"] {
            let name = format!("share {function}");
            let (share, other) = (value("buffer", &name), value(way, &name));
            assert!(share > 0.1, "{function}: {said}");
            // The bound is three times what chance does with some thousand samples.
            assert!((share - other).abs() < 0.04, "{way}: {function}: {said}");
        }
    }
    // An interrupt comes for 128 samples at low periods, at 4 kHz for those of a hundredth of a second; a switch takes what
    // there is.
    for (way, threshold) in [("buffer", 128.0), ("low", 128.0), ("harts", 128.0), ("slow", 40.0)] {
        let most = value(way, "SAMPLE") / threshold;
        let interrupts = value(way, "interrupts");
        assert!(interrupts <= most + 1.0, "{way}: {said}");
        assert!(interrupts >= (most / 2.0).floor(), "{way}: {said}");
    }
    for way in ["buffer", "low", "harts"] {
        // Ticks of the time CSR are 100 ns, and nanoseconds are whole.
        let line = said.lines().find(|line| line.starts_with(&format!("{way}: spread")));
        let line = line.unwrap_or_else(|| panic!("{way}: {said}"));
        assert!(number(line, "spread") <= 102, "{line}");
        assert_eq!(number(line, "back"), 0, "{line}");
    }
    assert!(value("buffer", "bytes") / value("buffer", "SAMPLE") < 88.0 + 8.0, "{said}");
    for complaint in
        ["WARNING: CPU:", "BUG:", "Call Trace", "detected stall", "out of order events"]
    {
        assert!(!said.contains(complaint), "{complaint}: {said}");
    }
}
