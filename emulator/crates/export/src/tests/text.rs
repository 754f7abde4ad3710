//! Folded stacks, speedscope, Firefox Profiler.

use super::*;

#[test]
fn folded_stacks_make_a_flame_graph() {
    let text = String::from_utf8(written(Format::Folded, true, &[]).unwrap()).unwrap();
    let inlined = "quickstart;length;sum_of_squares_[i];square_[i];0x10154 op1002 a0, a1 2500";
    assert!(text.lines().any(|line| line == inlined), "{text}");
    let kernel = "sh;[kernel]_[k];0xffffffff80001000 op1008 a0, a1 1500";
    assert!(text.lines().any(|line| line == kernel), "{text}");

    let mut graph = Vec::new();
    let mut options = inferno::flamegraph::Options::default();
    inferno::flamegraph::from_lines(&mut options, text.lines(), &mut graph).unwrap();
    let graph = String::from_utf8(graph).unwrap();
    assert!(graph.contains("all (20,000 samples, 100%)"), "{graph}");
    assert!(graph.contains("length (15,750 samples, 78.75%)"), "{graph}");
}

#[test]
fn functions_are_the_leaves_unless_instructions_are_asked_for() {
    let (mut evaluation, windows) = example();
    evaluation.samplers.clear();
    let root = guest_root();
    let symbolizer = Symbolizer::new(SymbolFiles {
        roots: vec![root.path().to_owned()],
        ..SymbolFiles::default()
    });
    let written = |format: Format, instructions: bool| {
        let options = Options {
            name: "",
            notice: None,
            clock_hz: 1,
            oracle: true,
            instructions,
            exact: false,
            by_address: false,
            disassemble: &|_, _| "nop".to_owned(),
            jit_folder: None,
        };
        let mut bytes = Vec::new();
        let export = Export::new(&evaluation, &windows, &symbolizer, options);
        export.write(format, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    for format in [Format::Folded, Format::Speedscope, Format::Firefox] {
        assert!(written(format, true).contains(" nop"), "{format:?}");
        assert!(!written(format, false).contains(" nop"), "{format:?}");
    }
    // The sum stays, and each stack is there once.
    let sum = |instructions: bool| {
        let text = written(Format::Folded, instructions);
        let lines = text.lines().map(|line| line.rsplit_once(' ').unwrap());
        let (stacks, cycles): (Vec<_>, Vec<_>) = lines.unzip();
        let cycles: u64 = cycles.iter().map(|cycles| cycles.parse::<u64>().unwrap()).sum();
        (stacks.len(), cycles)
    };
    let (with, without) = (sum(true), sum(false));
    assert_eq!(with.1, without.1);
    assert!(without.0 < with.0);
    let file: serde_json::Value =
        serde_json::from_str(&written(Format::Speedscope, false)).unwrap();
    let samples = file["profiles"][0]["samples"].as_array().unwrap();
    assert_eq!(samples.len(), without.0);
}

#[test]
fn names_cannot_end_a_folded_frame_or_line() {
    let (mut evaluation, windows) = example();
    evaluation.samplers.clear();
    evaluation.processes[1].name = "a;b\n c 7".to_owned();
    let options = Options {
        name: "",
        notice: None,
        clock_hz: 1,
        oracle: true,
        instructions: true,
        exact: false,
        by_address: false,
        disassemble: &|_, _| "nop".to_owned(),
        jit_folder: None,
    };
    let mut bytes = Vec::new();
    let export = Export::new(&evaluation, &windows, &Symbolizer::default(), options);
    export.write(Format::Folded, &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.starts_with("a:b: c 7;["), "{text}");
    for line in text.lines() {
        let (stack, cycles) = line.rsplit_once(' ').unwrap();
        assert_eq!(stack.split(';').count(), 3, "{line}");
        assert!(cycles.parse::<u64>().is_ok(), "{line}");
    }
}

#[test]
fn speedscope_has_a_profile_per_profiler() {
    let file = json(Format::Speedscope, true, &["tip", "software"]);
    let frames = file["shared"]["frames"].as_array().unwrap();
    let profiles = file["profiles"].as_array().unwrap();
    let names: Vec<_> = profiles.iter().map(|profile| &profile["name"]).collect();
    assert_eq!(names, ["oracle", "tip", "software"]);
    for profile in profiles {
        let samples = profile["samples"].as_array().unwrap();
        let weights = profile["weights"].as_array().unwrap();
        assert_eq!(samples.len(), weights.len());
        assert_eq!(weights.iter().map(|w| w.as_u64().unwrap()).sum::<u64>(), 20_000);
        assert_eq!(profile["endValue"], 20_000);
        for frame in samples.iter().flat_map(|stack| stack.as_array().unwrap()) {
            assert!((frame.as_u64().unwrap() as usize) < frames.len());
        }
    }
    let of = |name: &str| frames.iter().find(|frame| frame["name"] == name).unwrap();
    assert!(of("square")["file"].as_str().unwrap().ends_with("inlined.c"));
    assert!(of("0x10154 op1002 a0, a1")["line"].is_u64());
}

/// Every column of a table is as long as the table, and indices point into theirs.
fn check_thread(thread: &Value) {
    let length = |table: &str| thread[table]["length"].as_u64().unwrap();
    for table in
        ["funcTable", "frameTable", "stackTable", "resourceTable", "nativeSymbols", "samples"]
    {
        for (name, column) in thread[table].as_object().unwrap() {
            if let Some(column) = column.as_array() {
                assert_eq!(column.len() as u64, length(table), "{table}.{name}");
            }
        }
    }
    let strings = thread["stringArray"].as_array().unwrap().len() as u64;
    for (table, column, limit) in [
        ("funcTable", "name", strings),
        ("funcTable", "fileName", strings),
        ("funcTable", "resource", length("resourceTable")),
        ("frameTable", "func", length("funcTable")),
        ("frameTable", "nativeSymbol", length("nativeSymbols")),
        ("stackTable", "frame", length("frameTable")),
        ("stackTable", "prefix", length("stackTable")),
        ("resourceTable", "name", strings),
        ("nativeSymbols", "name", strings),
        ("samples", "stack", length("stackTable")),
    ] {
        for index in thread[table][column].as_array().unwrap() {
            assert!(index.is_null() || index.as_u64().unwrap() < limit, "{table}.{column}");
        }
    }
}

#[test]
fn firefox_has_a_thread_per_profiler_and_process() {
    let profile = json(Format::Firefox, true, &["software"]);
    let threads = profile["threads"].as_array().unwrap();
    threads.iter().for_each(check_thread);
    let cycles = |thread: &Value| -> u64 {
        let weights = thread["samples"]["weight"].as_array().unwrap();
        weights.iter().map(|weight| weight.as_u64().unwrap()).sum()
    };
    let found: Vec<_> = threads.iter().map(|t| (t["name"].as_str().unwrap(), cycles(t))).collect();
    let expected = [
        ("quickstart (oracle)", 18_000),
        ("sh (oracle)", 2_000),
        ("quickstart (software)", 18_000),
        ("sh (software)", 2_000),
    ];
    assert_eq!(found, expected);
    assert_eq!(profile["meta"]["initialSelectedThreads"], serde_json::json!([0]));
    // The Oracle's samples are at the ends of its windows.
    let times = threads[0]["samples"]["time"].as_array().unwrap();
    assert_eq!((&times[0], &times[10]), (&0.0105.into(), &0.021.into()));
}
