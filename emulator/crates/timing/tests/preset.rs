//! Presets and their errors.

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
        assert!(!p["value"].is_null(), "{p}");
    }
    fn leaves(value: &serde_json::Value) -> usize {
        value
            .as_object()
            .map_or(1, |o| o.values().map(leaves).sum())
    }
    let keys = leaves(&serde_json::to_value(Preset::default()).unwrap());
    assert_eq!(
        parameters.len(),
        keys,
        "boom-4w.toml states and explains every key"
    );
    assert!(description.to_string().contains("rob.entries"));
}

fn error(preset: &mut Preset, key: &str, value: &str) -> String {
    let before = preset.clone();
    let error = preset.set(key, value).unwrap_err();
    assert_eq!(*preset, before, "unchanged by a failed override");
    error.to_string()
}

#[test]
fn overrides() {
    let mut preset = Preset::default();
    preset.set("rob.entries", "96").unwrap();
    preset.set("dram.model", "fixed").unwrap();
    preset.set("predictor.tage", "false").unwrap();
    assert_eq!(preset.rob.entries, 96);
    let e = error(&mut preset, "rob.entires", "96");
    assert!(
        e.contains("`rob.entires`") && e.contains("`rob.entries`"),
        "{e}"
    );
    let e = error(&mut preset, "entries", "96");
    assert!(e.contains("unknown key `entries`"), "{e}");
    let e = error(&mut preset, "rob.entries", "97");
    assert!(
        e.contains("multiple of decode.width = 4") && e.contains("97"),
        "{e}"
    );
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
fn files_state_what_differs() {
    let dir = std::env::temp_dir().join(format!("timing-preset-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let small = write(
        "small.toml",
        "base = \"mega-boom\"\nname = \"small\"\n[rob]\nentries = 32\n",
    );
    let preset = Preset::load(&small).unwrap();
    assert_eq!(
        (preset.rob.entries, preset.fetch.insts, preset.name.as_str()),
        (32, 8, "small")
    );
    let typo = write("typo.toml", "[rob]\nentrys = 32\n");
    let e = Preset::load(&typo).unwrap_err();
    assert!(
        matches!(&e, PresetError::UnknownKey { key, nearest, .. } if key == "rob.entrys" && nearest == "rob.entries")
    );
    assert!(e.to_string().contains("typo.toml"), "{e}");
    let broken = write("broken.toml", "[rob\n");
    assert!(matches!(
        Preset::load(&broken),
        Err(PresetError::Syntax { .. })
    ));
    let circle = dir.join("circle.toml");
    let circle = write(
        "circle.toml",
        &format!("base = {:?}\n", circle.to_str().unwrap()),
    );
    assert!(matches!(
        Preset::load(&circle),
        Err(PresetError::Value { .. })
    ));
    std::fs::remove_dir_all(&dir).unwrap();
    let e = Preset::load("no-such-core").unwrap_err().to_string();
    assert!(e.contains("boom-4w, mega-boom"), "{e}");
}
