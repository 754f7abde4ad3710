//! Opens pages in a headless Chromium, does what a test says there, and brings back what the page says.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{scratch, stderr};

/// Catches what goes wrong in a page, and lets a test speak.
const PROBE: &str = r#"<script>
const say = (name, value) => console.log("tipsim-test " + JSON.stringify([name, value]));
addEventListener("error", (event) => say("error", event.message));
addEventListener("unhandledrejection", (event) => say("error", String(event.reason)));
new PerformanceObserver((list) => list.getEntries().forEach((entry) => say(entry.name, entry.startTime)))
  .observe({ type: "paint", buffered: true });
addEventListener("DOMContentLoaded", () => say("loaded", performance.now()));
const press = (key, target = document.activeElement, more = {}) =>
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
const later = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
</script>
"#;

/// What lets the steps of a test be executed under the page's policy.
pub(crate) const NONCE: &str = "tipsim-test";

/// Seconds that Chromium may take for a page. Few pages take ten, and once in hundreds of runs it hangs.
const SECONDS: &str = "120";
/// Times that a page is opened at most.
const TRIES: u32 = 2;
/// Exit status of `timeout` if its command did not end in time.
const TIMED_OUT: i32 = 124;

/// How a page is opened.
pub(crate) struct Browser<'a> {
    /// Width and height in pixels.
    pub window: (u32, u32),
    /// `light` or `dark`.
    pub scheme: &'a str,
    /// JavaScript that is executed when the page has drawn everything; it may `say(name, value)`.
    pub steps: &'a str,
    /// Time passes as fast as the page can use it; without, as it does.
    pub virtual_time: bool,
}

impl Default for Browser<'_> {
    fn default() -> Self {
        Self { window: (1100, 900), scheme: "light", steps: "", virtual_time: true }
    }
}

/// What a page said.
pub(crate) struct Seen {
    /// Names and values, in order.
    pub said: Vec<(String, Value)>,
    /// The screenshot.
    pub picture: Picture,
}

/// A screenshot: its size in pixels, and three bytes for each of them.
#[derive(PartialEq, Eq)]
pub(crate) struct Picture {
    pub width: u32,
    pub height: u32,
    pub pixels: Vec<u8>,
}

impl Picture {
    fn read(file: &Path) -> Self {
        let file = std::fs::File::open(file).expect("a screenshot");
        let mut decoder = png::Decoder::new(std::io::BufReader::new(file));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().expect("a PNG file");
        let mut bytes = vec![0; reader.output_buffer_size().expect("it fits into memory")];
        let info = reader.next_frame(&mut bytes).expect("a whole PNG file");
        let size = info.color_type.samples();
        assert!(size >= 3, "{:?}", info.color_type);
        Self {
            width: info.width,
            height: info.height,
            pixels: bytes
                .chunks_exact(size)
                .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]])
                .collect(),
        }
    }

    /// The share of pixels that are clearly of another colour: those of letters' edges may differ a little.
    pub(crate) fn difference(&self, other: &Self) -> f64 {
        assert_eq!((self.width, self.height), (other.width, other.height));
        let pairs = self.pixels.chunks(3).zip(other.pixels.chunks(3));
        let differ = pairs.filter(|(a, b)| a.iter().zip(*b).any(|(a, b)| a.abs_diff(*b) > 24));
        differ.count() as f64 / f64::from(self.width * self.height)
    }

    /// Mean of all bytes, from 0 (black) to 255.
    pub(crate) fn brightness(&self) -> f64 {
        let sum: u64 = self.pixels.iter().map(|byte| u64::from(*byte)).sum();
        sum as f64 / self.pixels.len() as f64
    }

    /// Returns the number of colours of the picture.
    pub(crate) fn colours(&self) -> usize {
        let colours: std::collections::HashSet<&[u8]> = self.pixels.chunks(3).collect();
        colours.len()
    }
}

impl Seen {
    /// Returns what the page said last under `name`.
    pub(crate) fn get(&self, name: &str) -> &Value {
        let found = self.said.iter().rev().find(|(said, _)| said == name);
        &found.unwrap_or_else(|| panic!("the page did not say {name}: {:?}", self.said)).1
    }
}

impl Browser<'_> {
    /// Opens a page, in a folder of the test's own. A page may not have errors, on its console or elsewhere.
    pub(crate) fn open(&self, name: &str, page: &str) -> Seen {
        let seen = self.look(name, page);
        let errors: Vec<_> = seen.said.iter().filter(|(name, _)| name == "error").collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        seen
    }

    /// Opens a page that may have errors: each is said as `error`.
    pub(crate) fn look(&self, name: &str, page: &str) -> Seen {
        let folder = scratch(name);
        let (head, rest) = page.split_once("<head>").expect("a page has a head");
        let steps = self.steps;
        let steps = format!(
            "<script nonce=\"{NONCE}\">(async () => {{ while (!document.documentElement.dataset.ready) await later(10);\n{steps}\n\
             say(\"done\", true); }})();</script>"
        );
        // The probe comes before the page's policy, which need not know of it.
        let rest = rest.replacen("script-src ", &format!("script-src 'nonce-{NONCE}' "), 1);
        let file = folder.join("page.html");
        std::fs::write(&file, format!("{head}<head>{PROBE}{rest}{steps}")).expect("write a page");
        let picture = folder.join("picture.png");
        let said = self.run(&file, &picture);
        let picture = Picture::read(&picture);
        Seen { said, picture }
    }

    fn run(&self, page: &Path, picture: &Path) -> Vec<(String, Value)> {
        let mut chromium = Command::new("timeout");
        chromium.args([SECONDS, "chromium"]);
        chromium.args(["--headless", "--no-sandbox", "--disable-gpu"]);
        chromium.args(["--hide-scrollbars", "--enable-logging=stderr"]);
        // A screenshot is of a page that is drawn as a whole.
        chromium.arg("--run-all-compositor-stages-before-draw");
        if self.virtual_time {
            chromium.arg("--virtual-time-budget=8000");
        }
        let (width, height) = self.window;
        let light = u8::from(self.scheme == "light");
        chromium.arg(format!("--window-size={width},{height}"));
        chromium.arg(format!("--blink-settings=preferredColorScheme={light}"));
        chromium.arg(format!("--screenshot={}", picture.display()));
        chromium.arg(format!("file://{}", page.display()));
        let mut tries = (0..TRIES).map(|_| chromium.output().expect("start chromium"));
        let in_time = tries.find(|output| output.status.code() != Some(TIMED_OUT));
        let output = in_time.unwrap_or_else(|| panic!("chromium hangs: {}", page.display()));
        assert!(output.status.success(), "{}", stderr(&output));
        let log = stderr(&output);
        let lines = log.lines().filter(|line| line.contains(":CONSOLE"));
        let said = lines.map(|line| {
            let own = line.split_once("\"tipsim-test ");
            let own = own.and_then(|(_, said)| Some(said.rsplit_once("\", source:")?.0));
            let said = own.and_then(|said| serde_json::from_str(said).ok());
            said.unwrap_or_else(|| ("error".to_owned(), line.into()))
        });
        said.collect()
    }
}
