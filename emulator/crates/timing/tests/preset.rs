//! Presets and their errors.

use crate::asm::{Program, State, TEXT};
use commit_trace::{Commit, CommitSink};
use proptest::prelude::*;
use timing::preset::names;
use timing::{Core, Preset, PresetError};

#[test]
fn every_embedded_preset_is_a_core() {
    for name in names() {
        let preset = Preset::load(name).unwrap();
        assert_eq!(preset.name, name);
        Core::new(&preset, commit_trace::NullSink);
    }
}

#[test]
fn every_key_is_documented_and_described() {
    let description = Preset::default().describe();
    let json = serde_json::to_value(&description).unwrap();
    let parameters = json["parameters"].as_array().unwrap();
    for p in parameters {
        assert!(p["meaning"].as_str().is_some_and(|m| m.len() > 5), "{p}");
        assert!(!p["value"].is_null() && p["value"] != "", "{p}");
    }
    fn leaves(value: &serde_json::Value) -> usize {
        value.as_object().map_or(1, |o| o.values().map(leaves).sum())
    }
    let keys = leaves(&serde_json::to_value(Preset::default()).unwrap());
    assert_eq!(parameters.len(), keys, "boom-4w.toml states and explains every key");
    assert!(description.to_string().contains("rob.entries"));
}

fn error(preset: &mut Preset, key: &str, value: &str) -> String {
    let before = preset.clone();
    let error = preset.set(key, value).unwrap_err();
    assert_eq!(*preset, before, "unchanged by a failed override");
    error.to_string()
}

#[test]
fn parameters_that_limit_each_other_are_set_at_once() {
    let mut preset = Preset::default();
    let narrow = [("decode.width", "1"), ("fetch.buffer", "16")];
    preset.set_all(narrow).unwrap();
    assert_eq!((preset.decode.width, preset.fetch.buffer), (1, 16));
    let mut preset = Preset::default();
    let e = error(&mut preset, "decode.width", "1");
    assert!(e.contains("`fetch.buffer`: expected 9 to 16"), "{e}");
}

#[test]
fn overrides() {
    let mut preset = Preset::default();
    preset.set("rob.entries", "96").unwrap();
    preset.set("dram.model", "fixed").unwrap();
    preset.set("predictor.tage", "false").unwrap();
    assert_eq!(preset.rob.entries, 96);
    let e = error(&mut preset, "rob.entires", "96");
    assert!(e.contains("`rob.entires`") && e.contains("`rob.entries`"), "{e}");
    for (wrong, nearest) in [
        ("entries", "rob.entries"),
        ("issue.int", "issue.int_width"),
        ("lsu.ldq", "lsu.loads"),
        ("l1d.size", "l1d.kib"),
    ] {
        let e = error(&mut preset, wrong, "96");
        let expected =
            format!("override: unknown key `{wrong}`; the nearest known key is `{nearest}`");
        assert_eq!(e, expected);
    }
    let e = error(&mut preset, "rob.entries", "97");
    assert!(e.contains("multiple of decode.width = 4") && e.contains("97"), "{e}");
    let e = error(&mut preset, "l1d.kib", "33");
    assert!(e.contains("`l1d.kib`") && e.contains("power of two"), "{e}");
    let e = error(&mut preset, "l1d.kib", "big");
    assert!(e.contains("expected an integer"), "{e}");
    let e = error(&mut preset, "dram.model", "hbm");
    assert!(e.contains("ddr"), "{e}");
    let e = error(&mut preset, "lsu.loads", "-3");
    assert!(!e.is_empty());
}

#[test]
fn a_description_says_what_was_changed() {
    let mut preset = Preset::default();
    assert!(!preset.describe().to_string().contains("instead"));
    preset.set("rob.entries", "96").unwrap();
    let changed = "512 KiB L2, 8 MiB LLC (the default); but rob.entries = 96 instead of 64";
    assert!(preset.describe().to_string().contains(changed));
    assert!(preset.picture().contains(changed));
    let description = serde_json::to_value(preset.describe()).unwrap();
    let parameters = description["parameters"].as_array().unwrap();
    let changed: Vec<_> = parameters.iter().filter(|p| !p["preset"].is_null()).collect();
    assert_eq!(changed.len(), 1);
    assert_eq!((&changed[0]["value"], &changed[0]["preset"]), (&96.into(), &64.into()));
    for key in ["lsu.loads", "lsu.stores"] {
        preset.set(key, "16").unwrap();
    }
    let many = preset.describe().to_string();
    assert!(many.lines().next().unwrap().ends_with("but 3 parameters are changed"));
    let mut renamed = Preset::default();
    renamed.set("summary", "\"my own\"").unwrap();
    assert!(renamed.describe().to_string().starts_with("boom-4w: my own\n"));
    preset.name = "my-own".into();
    assert!(preset.describe().parameters.iter().all(|p| p.preset.is_none()));
}

#[test]
fn files_state_what_differs() {
    let dir = std::env::temp_dir().join(format!("timing-preset-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let small =
        write("small.toml", "base = \"mega-boom\"\nname = \"small\"\n[rob]\nentries = 32\n");
    let preset = Preset::load(&small).unwrap();
    assert_eq!((preset.rob.entries, preset.fetch.insts, preset.name.as_str()), (32, 8, "small"));
    // A base is relative to the file that names it.
    let smaller = write("smaller.toml", "base = \"small.toml\"\n[lsu]\nloads = 8\n");
    let preset = Preset::load(&smaller).unwrap();
    assert_eq!((preset.rob.entries, preset.lsu.loads), (32, 8));
    let typo = write("typo.toml", "[rob]\nentrys = 32\n");
    let e = Preset::load(&typo).unwrap_err();
    assert!(
        matches!(&e, PresetError::UnknownKey { key, nearest, .. } if key == "rob.entrys" && nearest == "rob.entries")
    );
    assert!(e.to_string().contains("typo.toml"), "{e}");
    let broken = write("broken.toml", "[rob\n");
    assert!(matches!(Preset::load(&broken), Err(PresetError::Syntax { .. })));
    let circle = dir.join("circle.toml");
    let circle = write("circle.toml", &format!("base = {:?}\n", circle.to_str().unwrap()));
    assert!(matches!(Preset::load(&circle), Err(PresetError::Value { .. })));
    std::fs::remove_dir_all(&dir).unwrap();
    let e = Preset::load("no-such-core").unwrap_err().to_string();
    assert!(e.contains("boom-4w, mega-boom"), "{e}");
}

/// Holds what commits to the rules of every core.
#[derive(Default)]
struct InOrder {
    last: u64,
    in_cycle: u32,
    width: u32,
}

impl CommitSink for InOrder {
    fn commit(&mut self, commit: &Commit) {
        let same = commit.commit == self.last;
        self.in_cycle = if same { self.in_cycle + 1 } else { 1 };
        assert!(self.in_cycle <= self.width, "at most a row commits in a cycle");
        assert!(commit.commit >= self.last && commit.dispatch <= commit.commit);
        self.last = commit.commit;
    }
}

/// Numbers at the edges of what is allowed, powers of two, and what is no number.
fn any_value() -> impl Strategy<Value = String> {
    let power = (0..33u32).prop_map(|n| (1u64 << n).to_string());
    let odd = ["", "-1", "0", "4.5", "\"x\"", "true", "[1]", "99999999999999999999"];
    prop_oneof![
        (0..300u32).prop_map(|n| n.to_string()),
        power,
        any::<u32>().prop_map(|n| n.to_string()),
        prop::sample::select(odd.to_vec()).prop_map(str::to_owned),
    ]
}

proptest! {
    /// Whatever is set, either an error names the key, or the core runs.
    #[test]
    fn any_setting_is_refused_by_name_or_runs(
        preset in prop::sample::select(names().collect::<Vec<_>>()),
        settings in prop::collection::vec((any::<prop::sample::Index>(), any_value()), 1..8),
    ) {
        let mut preset = Preset::load(preset).unwrap();
        let keys: Vec<_> = preset.describe().parameters.into_iter().map(|p| p.key).collect();
        for (key, value) in &settings {
            let key = key.get(&keys);
            let before = preset.clone();
            if let Err(error) = preset.set(key, value) {
                prop_assert!(error.to_string().contains('`'), "{key}={value}: {error}");
                prop_assert_eq!(&preset, &before);
            }
        }
        let program = Program::new(
            "FN(f) 1: ld a2,0(a1); sd a2,8(a1); add a3,a3,a2; mul a4,a3,a0; div a5,a4,a0; fadd.d fa0,fa1,fa2\n\
             addi a1,a1,64; addi a0,a0,-1; bnez a0,1b; fence; jalr zero,s3\n",
        );
        let width = preset.decode.width;
        let mut core = Core::new(&preset, InOrder { width, ..InOrder::default() });
        program.define(&mut core);
        let mut state = State::new();
        (state.x[10], state.x[11], state.x[19], state.pc) = (200, 0x8100_0000, 0x1000, TEXT);
        program.run(&mut core, &mut state);
        prop_assert!(core.cycle() > 200);
    }
}

#[test]
fn every_extension_has_its_key() {
    use isa::{Extension, Extensions};
    let mut preset = Preset::default();
    let off = [Extension::Sv48, Extension::Svadu];
    let default = off.into_iter().fold(Extensions::ALL, |set, e| set.with(e, false));
    assert_eq!(preset.isa.extensions(), default);
    let key = |extension: Extension| format!("isa.{}", extension.name());
    let on: Vec<_> = off.iter().map(|e| (key(*e), "true")).collect();
    let set_all = preset.set_all(on.iter().map(|(key, value)| (key.as_str(), *value)));
    set_all.unwrap();
    assert_eq!(preset.isa.extensions(), Extensions::ALL);
    let e = error(&mut preset, "isa.smcsrind", "false");
    assert!(e.contains("`isa.smcdeleg`: expected false without isa.smcsrind"), "{e}");
    // Extensions that need others go first.
    for extension in [
        &[
            Extension::Zcb,
            Extension::Sspesa,
            Extension::Smpdis,
            Extension::Smcdeleg,
            Extension::Smctr,
        ][..],
        Extension::ALL,
    ]
    .concat()
    {
        let key = key(extension);
        preset.set(&key, "false").unwrap();
        assert!(!preset.isa.extensions().has(extension), "{key}");
    }
    assert_eq!(preset.isa.extensions(), Extensions::NONE);
}
