//! Files that others have: asked for by build ID, and checked as the host's own.

use std::path::PathBuf;

use super::super::*;
use super::parts::{MUL_WITH_ID, SQUARE, forms, inlined, with};
use super::*;

/// Has one file, whatever it is asked for.
#[derive(Debug)]
struct One(PathBuf);

impl FileServer for One {
    fn debug_file(&self, _: &BuildId) -> Result<PathBuf, String> {
        Ok(self.0.clone())
    }

    fn program(&self, _: &BuildId) -> Result<PathBuf, String> {
        Ok(self.0.clone())
    }

    fn source(&self, _: &BuildId, path: &str) -> Result<PathBuf, String> {
        assert!(path.ends_with(".c"), "{path}");
        Ok(self.0.clone())
    }
}

fn served(root: &Path, file: &str) -> Symbolizer {
    Symbolizer::new(SymbolFiles {
        roots: vec![root.to_owned()],
        servers: vec![Arc::new(One(forms().join(file)))],
        ..SymbolFiles::default()
    })
}

#[test]
fn shared_debug_information_comes_from_a_server() {
    let root = with(&["shared.elf"]);
    let place = [Place::file("/shared.elf", None, MUL_WITH_ID)];
    let symbols = served(root.path(), "common.dwz").resolve(&place);
    assert_eq!(inlined(&symbols), SQUARE);
    let symbols = served(root.path(), "zlib.elf").resolve(&place);
    assert_ne!(inlined(&symbols), SQUARE, "of another build ID");
    let missing = &symbols.modules[0].missing;
    assert!(missing[0].contains("common.dwz (build ID "), "{missing:?}");
}

#[test]
fn programs_come_from_a_server_by_build_id() {
    let root = with(&[]);
    let label = |id: Option<BuildId>, file: &str| {
        let place = [Place::file("/gone/zlib", id, MUL_WITH_ID)];
        served(root.path(), file).resolve(&place).label(0)
    };
    let id = BuildId::of(&forms().join("zlib.elf"));
    assert_eq!(label(id.clone(), "zlib.elf"), "length+0x10");
    let another = Some(BuildId(vec![1; 20]));
    assert_eq!(label(another, "zlib.elf"), "zlib+0x154");
    assert_eq!(label(None, "zlib.elf"), "zlib+0x154", "nobody to ask for");
}

#[test]
fn sources_come_from_a_server_if_they_are_called_so() {
    let root = with(&[]);
    let symbolizer = served(root.path(), "make");
    let id = BuildId(vec![0; 20]);
    let text = |file: &str, id: Option<&BuildId>| {
        let file = file.into();
        let at = Source { file, line: 1 };
        symbolizer.sources().line(&at, id).map(str::to_owned)
    };
    assert!(text("/build/a.c", Some(&id)).unwrap().starts_with("#!"));
    assert_eq!(text("/build/a.c", None), None);
    assert_eq!(text("a.c", Some(&id)), None, "no path that a server knows");
    assert_eq!(text("/etc/passwd", Some(&id)), None);
}
