//! Names, lines and sources of a stripped program, from who has them by build ID: elfutils' debuginfod, and a debug archive as
//! Debian's is made.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{json, scratch, stderr, succeed, tipsim};

const SOURCE: &str = "static inline __attribute__((always_inline)) long step(long at)
{
	return at * 3 / 7 + 1; // the division
}

__attribute__((noinline)) long walk(long n)
{
	long at = n;
	for (long i = 0; i < n; i++)
		at = step(at);
	return at;
}

int main(void)
{
	return walk(20000) == 0;
}
";
/// Where the compiler thinks that it is: nowhere on this machine.
const COMPILED_SOURCE: &str = "/build/hot-1.0/hot.c";

/// Ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program, stripped, as `dir/hot`, what it was stripped of as `dir/hot.debug`, and its source below `dir/tree`. Gives its build ID.
fn stripped(dir: &Path) -> String {
    let tree = dir.join("tree");
    let source = tree.join(&COMPILED_SOURCE[1..]);
    std::fs::create_dir_all(source.parent().unwrap()).unwrap();
    std::fs::write(&source, SOURCE).unwrap();
    let run = |tool: &str, arguments: &[&str]| {
        let tool = format!("riscv64-linux-gnu-{tool}");
        succeed(Command::new(tool).current_dir(dir).args(arguments))
    };
    let map = format!("-ffile-prefix-map={}=", tree.display());
    let source = source.display().to_string();
    run("gcc", &["-O2", "-g", &map, "-o", "hot", &source]);
    run("objcopy", &["--only-keep-debug", "hot", "hot.debug"]);
    run("strip", &["hot"]);
    let notes = run("readelf", &["-n", "hot"]);
    let id = notes.lines().find_map(|line| line.split_once("Build ID: "));
    id.expect("a build ID").1.to_owned()
}

/// Starts debuginfod with a package's files in an archive, and returns its address.
fn serve(dir: &Path, id: &str) -> (Server, String) {
    let served = dir.join("served");
    std::fs::create_dir(&served).unwrap();
    std::fs::copy(dir.join("hot.debug"), dir.join("tree/hot.debug")).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(dir.join("tree")).arg("-cf");
    succeed(tar.arg(served.join("hot.tar")).arg("."));
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let port = port.unwrap().port().to_string();
    let log = std::fs::File::create(dir.join("debuginfod.log")).unwrap();
    let mut server = Command::new("debuginfod");
    server.args(["-p", &port, "-d", ":memory:", "-Z", ".tar"]);
    server.arg(&served).stdout(Stdio::null()).stderr(log);
    let server = server.spawn().expect("debuginfod: run scripts/test, which installs it");
    let server = Server(server);
    let url = format!("http://127.0.0.1:{port}");
    let start = Instant::now();
    // The client remembers for minutes that a server does not have a file: each time another cache.
    for attempt in 0.. {
        let mut find = Command::new("debuginfod-find");
        find.args(["debuginfo", id]).env("DEBUGINFOD_URLS", &url);
        let cache = dir.join(format!("asked{attempt}"));
        find.env("DEBUGINFOD_CACHE_PATH", cache);
        if find.output().unwrap().status.success() {
            break;
        }
        let log = dir.join("debuginfod.log");
        let log = || std::fs::read_to_string(&log).unwrap();
        assert!(start.elapsed() < Duration::from_secs(60), "{}", log());
        std::thread::sleep(Duration::from_millis(100));
    }
    (server, url)
}

/// An archive as Debian's, with one package. Gives its address.
fn archive(dir: &Path, id: &str) -> String {
    let package = dir.join("hot-dbgsym");
    let file = package.join(format!("usr/lib/debug/.build-id/{}/{}.debug", &id[..2], &id[2..]));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::copy(dir.join("hot.debug"), file).unwrap();
    std::fs::create_dir(package.join("DEBIAN")).unwrap();
    let control = format!(
        "Package: hot-dbgsym\nVersion: 1.0-1\nArchitecture: riscv64\nMaintainer: nobody <nobody@localhost>\n\
         Build-Ids: {id}\nDescription: debug symbols for hot\n"
    );
    std::fs::write(package.join("DEBIAN/control"), control).unwrap();
    let root = dir.join("archive");
    let list = root.join("dists/trixie-debug/main/binary-riscv64");
    std::fs::create_dir_all(root.join("pool")).unwrap();
    std::fs::create_dir_all(&list).unwrap();
    let mut deb = Command::new("dpkg-deb");
    deb.args(["--root-owner-group", "--build"]);
    succeed(deb.arg(&package).arg(root.join("pool")));
    let mut scan = Command::new("dpkg-scanpackages");
    scan.current_dir(&root).args(["--arch", "riscv64", "--multiversion", "pool"]);
    std::fs::write(list.join("Packages"), succeed(&mut scan)).unwrap();
    let mut release = Command::new("apt-ftparchive");
    for field in ["Codename=trixie-debug", "Components=main"] {
        release.args(["-o", &format!("APT::FTPArchive::Release::{field}")]);
    }
    release.args(["-o", "APT::FTPArchive::Release::Architectures=riscv64"]);
    release.arg("release").arg(root.join("dists/trixie-debug"));
    let text = succeed(&mut release);
    std::fs::write(root.join("dists/trixie-debug/Release"), text).unwrap();
    format!("file:{}", root.display())
}

/// Returns where the division is in the report in `out`: its source line, and the function inlined there, if the report has
/// its function's name.
fn division(out: &Path) -> Option<(String, String)> {
    let report = json(&out.join("report.json"));
    let mut rows = report["instructions"].as_array().unwrap().iter();
    let row = rows.find(|row| {
        let is_division = |text: &str| text.starts_with("div ");
        row["function"] == "walk" && row["text"].as_str().is_some_and(is_division)
    })?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    Some((text(&row["source"]), text(&row["inlined"][0])))
}

/// The page shows the text of the source line.
fn has_source(out: &Path) -> bool {
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    page.contains("// the division")
}

fn rebuild(dir: &Path) -> Command {
    let mut command = tipsim();
    command.args(["report", "--rebuild", "-o", "/dev/null"]);
    // Nobody has asked before.
    command.env("DEBUGINFOD_CACHE_PATH", dir.join("empty"));
    command.arg(dir.join("out"));
    command
}

#[test]
fn a_stripped_program_has_names_lines_and_sources_from_servers() {
    let dir = scratch("debug-files");
    let id = stripped(&dir);
    let (server, url) = serve(&dir, &id);
    let mut command = tipsim();
    command.current_dir(&dir).env("DEBUGINFOD_URLS", &url);
    command.env("DEBUGINFOD_CACHE_PATH", dir.join("cache"));
    command.args(["profile", "--package", "dash", "--out", "out", "--", "./hot"]);
    let text = succeed(&mut command);
    let out: PathBuf = dir.join("out");
    assert!(text.contains("hot.c:3"), "{text}");
    let found = (format!("{COMPILED_SOURCE}:3"), "step".to_owned());
    assert_eq!(division(&out).as_ref(), Some(&found));
    assert!(has_source(&out));

    // The server is gone: said once, and the report is there.
    drop(server);
    let output: Output = rebuild(&dir).output().unwrap();
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("Connection refused").count(), 1, "{said}");
    assert!(said.contains(&url) && said.contains("not asked any more"), "{said}");
    assert_eq!(division(&out), None);

    // A debug archive has names and lines, and no sources.
    let mut command = rebuild(&dir);
    command.args(["--debuginfod", ""]);
    command.env("TIPSIM_DEBUG_MIRROR", archive(&dir, &id));
    succeed(command.env("TIPSIM_CACHE", dir.join("tipsim-cache")));
    assert_eq!(division(&out), Some(found));
    assert!(!has_source(&out));
}
