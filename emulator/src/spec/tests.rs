use super::*;

#[test]
fn sizes_and_frequencies() {
    assert_eq!(parse_size("512M"), Ok(512 << 20));
    assert_eq!(parse_size("4096"), Ok(4096));
    assert!(parse_size("12Q").is_err());
    assert!(parse_size("0M").is_err());
    assert!(parse_size("99999999999G").is_err());
    assert_eq!(parse_frequency("4kHz"), Ok(4000.0));
    assert!(parse_frequency("4k").is_err());
    assert!(parse_frequency("-1Hz").is_err());
}

#[test]
fn overrides_reach_nested_keys() {
    let mut table = toml::Table::new();
    apply(&mut table, "core.rob.entries=96").unwrap();
    apply(&mut table, "core.preset=mega-boom").unwrap();
    let text = toml::to_string(&table).unwrap();
    let spec: Spec = toml::from_str(&text).unwrap();
    assert_eq!(spec.core.preset, "mega-boom");
    assert_eq!(spec.core.set["rob"]["entries"].as_integer(), Some(96));
    assert!(apply(&mut table, "core.preset.x=1").is_err());
    assert!(apply(&mut table, "nothing").is_err());
}

#[test]
fn files_are_relative_to_the_spec() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spec.toml");
    let of = |preset: &str| {
        let text = format!("[core]\npreset = \"{preset}\"\n[guest]\nkernel = \"Image\"\n");
        std::fs::write(&path, text).unwrap();
        Spec::load(&path, &[]).unwrap()
    };
    let beside = |name: &str| folder.path().join(name);
    let spec = of("mine.toml");
    assert_eq!(spec.guest.kernel, Some(beside("Image")));
    assert_eq!(std::path::Path::new(&spec.core.preset), beside("mine.toml"));
    assert_eq!(of("mega-boom").core.preset, "mega-boom");
}

#[test]
fn unknown_key_names_the_nearest() {
    let text = "[guest]\nmemroy = \"1G\"\n";
    let error = toml::from_str::<Spec>(text).unwrap_err();
    let message = toml_message(&error, text);
    assert!(message.contains("line 2") && message.contains("did you mean `memory`?"), "{message}");
}

#[test]
fn debian_is_booted_for_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spec.toml");
    let of = |text: &str| {
        std::fs::write(&path, text).unwrap();
        Spec::load(&path, &[]).map_err(|e| e.to_string())
    };
    let error = of("[guest]\nimage = \"debian\"\n").unwrap_err();
    assert!(error.contains("run.command: expected one"), "{error}");
    let error = of("[guest]\nimage = \"fedora\"\n").unwrap_err();
    let words = ["line 2", "`fedora`", "`minimal`", "`debian`"];
    assert!(words.iter().all(|word| error.contains(word)), "{error}");
    let spec = of("[guest]\nimage = \"debian\"\n[run]\ncommand = \"ls\"\n");
    assert_eq!(spec.unwrap().guest.image, GuestImage::Debian);
}

#[test]
fn errors_of_what_is_set_blame_the_option() {
    let folder = std::env::temp_dir().join(format!("tipsim-spec-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("base.toml");
    std::fs::write(&path, "[guest]\nharts = 1\n[run]\n\ncommand = \"ls\"\n").unwrap();
    let load = |set: &[&str]| {
        let set: Vec<String> = set.iter().map(|s| s.to_string()).collect();
        Spec::load(&path, &set).map_err(|e| e.to_string())
    };
    let cases = [
        (
            "run.command=false",
            "--set run.command=false: expected a string, found boolean `false`; \
             a text of that look wants quotes: --set 'run.command=\"false\"'",
        ),
        ("guest.memroy=1G", "--set guest.memroy=1G: unknown field `memroy`"),
        ("guest.memroy=1G", "did you mean `memory`?"),
        ("run.boot=slow", "--set run.boot=slow: unknown variant `slow`"),
        (
            "run.hart_order=each-instruction",
            "run.hart_order: expected guest.harts of 2 or more with it, found 1",
        ),
        ("guest.harts=17", "--set guest.harts=17: guest.harts: expected 1 to 16, found 17"),
        ("guest.memory=lots", "--set guest.memory=lots: guest.memory: expected a size"),
        ("record.level=0", "--set record.level=0: record.level:"),
        ("guest.harts.x=1", "--set guest.harts.x=1: harts is not a table"),
        ("sampler=3", "--set sampler=3: expected"),
        (
            "run.max_cycles=abc",
            "--set run.max_cycles=abc: expected a whole number from 0 up, found string \"abc\"",
        ),
        ("run.sampling.scheme=1", "--set run.sampling.scheme=1: expected a name in quotes"),
        ("run.warm=1", "--set run.warm=1: expected a boolean, found integer `1`"),
        ("nothing", "--set nothing: expected KEY=VALUE"),
    ];
    for (set, expected) in cases {
        let error = load(&[set]).unwrap_err();
        assert!(error.contains(expected), "{set}: {error}");
        assert!(!error.contains("base.toml"), "{set}: {error}");
    }
    // What another option sets, or nothing does, is not blamed on this one.
    let error = load(&["guest.harts=17", "guest.memory=1G"]).unwrap_err();
    assert!(error.starts_with("--set guest.harts=17:"), "{error}");
    let error = load(&["run.warm=true", "guest.harts=2"]).unwrap_err();
    assert!(error.contains("run.warm: expected guest.harts = 1 with it, found 2"), "{error}");
    let stores = [
        "run.warm=true",
        "run.boot='functional'",
        "run.region='command'",
        "run.sampling.store=true",
    ];
    let error = load(&stores).unwrap_err();
    assert!(error.contains("run.warm: expected run.sampling.store = false"), "{error}");
    assert!(load(&stores[..3]).unwrap().run.warm);
    assert_eq!(load(&["run.command='false'"]).unwrap().run.command.unwrap(), "false");
    assert_eq!(load(&["run.command=echo 1=2"]).unwrap().run.command.unwrap(), "echo 1=2");
    std::fs::write(&path, "[guest]\nharts = 17\n").unwrap();
    let error = load(&["guest.memory=1G"]).unwrap_err();
    assert!(error.contains("base.toml: guest.harts"), "{error}");
    std::fs::write(&path, "[run]\ncommand = false\n").unwrap();
    let error = load(&["guest.memory=1G"]).unwrap_err();
    assert!(error.contains("base.toml: line 2: "), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_spec_is_built_on_others() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    file(
        "far/first.toml",
        "[core]\npreset = \"own.toml\"\nrob.entries = 32\n[guest]\nmemory = \"1G\"\ndrive = [\"disk\"]\n[[sampler]]\nprofiler = \"tip\"\nperiod = 3\n",
    );
    file(
        "second.toml",
        "base = \"far/first.toml\"\n[run]\nfiles = [\"data\"]\nboot = \"functional\"\n[core]\nrob.entries = 64\n",
    );
    let path = file(
        "sub/spec.toml",
        "base = \"../second.toml\"\n[guest]\nharts = 2\n[run]\ncommand = \"true\"\n",
    );
    let spec = Spec::load(&path, &["guest.memory=2G".into()]).unwrap();
    assert_eq!(spec.name, "spec");
    assert_eq!((spec.guest.harts, spec.guest.memory.as_str()), (2, "2G"));
    assert_eq!(spec.run.boot, Mode::Functional);
    assert_eq!(spec.sampler.len(), 1);
    assert_eq!(spec.core.set["rob"]["entries"].as_integer(), Some(64));
    // Files are relative to the spec that names them.
    let same = |found: &Path, expected: &str| {
        let expected = folder.path().join(expected);
        let parent = |path: &Path| path.parent().unwrap().canonicalize().unwrap();
        assert_eq!(parent(found), parent(&expected), "{}", found.display());
        assert_eq!(found.file_name(), expected.file_name());
    };
    same(&spec.guest.drive[0], "far/disk");
    same(&spec.run.files[0], "data");
    same(Path::new(&spec.core.preset), "far/own.toml");

    let error = |text: &str| {
        let path = file("bad.toml", text);
        Spec::load(&path, &[]).unwrap_err().to_string()
    };
    let found = error("base = \"bad.toml\"\n");
    assert!(found.contains("expected at most 16 specs one upon another"), "{found}");
    let found = error("base = \"none.toml\"\n");
    assert!(found.contains("bad.toml: base: ") && found.contains("none.toml"), "{found}");
    file("wrong.toml", "[guest]\nhart = 2\n");
    let found = error("base = \"wrong.toml\"\n");
    assert!(found.contains("wrong.toml: line 2: unknown field `hart`"), "{found}");
}
