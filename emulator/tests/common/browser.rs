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

/// How a page is opened.
pub struct Browser<'a> {
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
        Self {
            window: (1100, 900),
            scheme: "light",
            steps: "",
            virtual_time: true,
        }
    }
}

/// What a page said.
pub struct Seen {
    /// Names and values, in order.
    pub said: Vec<(String, Value)>,
    /// Bytes of the screenshot.
    pub picture: u64,
}

impl Seen {
    /// What was said last of this.
    pub fn get(&self, name: &str) -> &Value {
        let found = self.said.iter().rev().find(|(said, _)| said == name);
        &found
            .unwrap_or_else(|| panic!("the page did not say {name}: {:?}", self.said))
            .1
    }
}

impl Browser<'_> {
    /// Opens a page, in a folder of the test's own. A page may not have errors, on its console or elsewhere.
    pub fn open(&self, name: &str, page: &str) -> Seen {
        let folder = scratch(name);
        let (head, rest) = page.split_once("<head>").expect("a page has a head");
        let steps = self.steps;
        let steps = format!(
            "<script>(async () => {{ while (!document.documentElement.dataset.ready) await later(10);\n{steps}\n\
             say(\"done\", true); }})();</script>"
        );
        let file = folder.join("page.html");
        std::fs::write(&file, format!("{head}<head>{PROBE}{rest}{steps}")).expect("write a page");
        let picture = folder.join("picture.png");
        let said = self.run(&file, &picture);
        let errors: Vec<_> = said.iter().filter(|(name, _)| name == "error").collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        let picture = std::fs::metadata(&picture).expect("a screenshot").len();
        Seen { said, picture }
    }

    fn run(&self, page: &Path, picture: &Path) -> Vec<(String, Value)> {
        let mut chromium = Command::new("chromium");
        chromium.args(["--headless", "--no-sandbox", "--disable-gpu"]);
        chromium.args(["--hide-scrollbars", "--enable-logging=stderr"]);
        if self.virtual_time {
            chromium.arg("--virtual-time-budget=8000");
        }
        let (width, height) = self.window;
        let light = u8::from(self.scheme == "light");
        chromium.arg(format!("--window-size={width},{height}"));
        chromium.arg(format!("--blink-settings=preferredColorScheme={light}"));
        chromium.arg(format!("--screenshot={}", picture.display()));
        chromium.arg(format!("file://{}", page.display()));
        let output = chromium.output().expect("start chromium");
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
