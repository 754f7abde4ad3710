//! A preset as a block diagram.

use std::fmt::Write as _;

use super::{DramModel, Preset};

const WIDTH: u32 = 1120;
const HEIGHT: u32 = 570;
/// Height of a line of text, and of a box's title with the space around it.
const LINE: u32 = 16;
const TITLE: u32 = 30;

/// CSS of the SVG: light or dark colours as the enclosing page, or else the viewer's browser, asks.
const STYLE: &str = "
  svg.core { --box: #ffffff; --ink: #1d1c1a; --muted: #6d6a64; --line: #b9b4a8; --accent: #1e7d5a; }
  @media (prefers-color-scheme: dark) {
    svg.core { --box: #1d1f24; --ink: #e8e6e1; --muted: #9a978f; --line: #565a63; --accent: #43b084; }
  }
  .core rect { fill: var(--box); stroke: var(--line); }
  .core .tip rect { stroke: var(--accent); stroke-width: 2; }
  .core text { fill: var(--muted); font: 12px system-ui, 'DejaVu Sans', sans-serif; }
  .core text.title { fill: var(--ink); font-weight: 600; font-size: 13px; }
  .core text.region { font-size: 11px; letter-spacing: 0.08em; }
  .core path { stroke: var(--muted); fill: none; marker-end: url(#core-arrow); }
  .core marker path { fill: var(--muted); stroke: none; marker-end: none; }
";

struct Canvas(String);

impl Canvas {
    fn part(&mut self, class: &str, (x, y): (u32, u32), width: u32, title: &str, lines: &[String]) {
        let height = TITLE + LINE * lines.len() as u32;
        let left = x + 12;
        let _ = write!(
            self.0,
            "<g class=\"{class}\"><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>\
             <text class=\"title\" x=\"{left}\" y=\"{}\">{title}</text>",
            y + 20
        );
        for (n, line) in lines.iter().enumerate() {
            let at = y + TITLE + 6 + LINE * n as u32;
            let _ = write!(self.0, "<text x=\"{left}\" y=\"{at}\">{line}</text>");
        }
        self.0.push_str("</g>\n");
    }

    fn region(&mut self, x: u32, y: u32, name: &str) {
        let _ = writeln!(self.0, "<text class=\"region\" x=\"{x}\" y=\"{y}\">{name}</text>");
    }

    /// A line through the points, with an arrow at its end.
    fn arrow(&mut self, points: &[(u32, u32)]) {
        let points: Vec<_> = points.iter().map(|(x, y)| format!("{x} {y}")).collect();
        let _ = writeln!(self.0, "<path d=\"M{}\"/>", points.join(" L"));
    }
}

fn kib(kib: u32) -> String {
    if kib >= 1024 && kib.is_multiple_of(1024) {
        format!("{} MiB", kib / 1024)
    } else {
        format!("{kib} KiB")
    }
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Preset {
    /// A block diagram of the core as an SVG image.
    pub fn picture(&self) -> String {
        let mut canvas = Canvas(String::new());
        let name = escape(&self.name);
        let _ = write!(
            canvas.0,
            "<svg class=\"core\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-label=\"Block diagram of the core {name}\">\n<style>{STYLE}</style>\n\
             <defs><marker id=\"core-arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
             orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\"/></marker></defs>\n\
             <text class=\"title\" x=\"20\" y=\"26\">{name}</text><text x=\"20\" y=\"44\">{}</text>\n",
            escape(&self.describe().title())
        );
        self.front_end(&mut canvas);
        self.back_end(&mut canvas);
        self.memory(&mut canvas);
        canvas.0.push_str("</svg>\n");
        canvas.0
    }

    fn front_end(&self, canvas: &mut Canvas) {
        let p = &self.predictor;
        canvas.region(20, 70, "FRONT END");
        let mut stages = vec![
            match p.micro_btb {
                0 => "F1  no micro BTB".into(),
                ways => format!("F1  micro BTB, 2 × {ways} ways"),
            },
            format!("F2  BTB, 2 × {} × 2 ways", p.btb_sets),
            format!("F2  bimodal, 2 × {} rows", p.bimodal_sets),
        ];
        stages.extend(p.tage.then(|| "F3  TAGE, 6 tables".into()));
        stages.extend(p.loops.then(|| "F3  loop predictor".into()));
        stages.push(format!("F3  return stack, {}", p.returns));
        canvas.part("part", (20, 80), 200, "Branch prediction", &stages);
        let packet = format!("{} bytes, {} instructions", self.fetch.bytes, self.fetch.insts);
        canvas.part("part", (20, 232), 200, "Fetch packet", &[packet]);
        let caches = [
            format!("L1I  {}, {} ways", kib(self.l1i.kib), self.l1i.ways),
            format!("ITLB  {} entries", self.itlb.entries),
        ];
        canvas.part("part", (20, 302), 200, "Instruction cache", &caches);
        canvas.arrow(&[(120, 206), (120, 230)]);
        canvas.arrow(&[(120, 302), (120, 280)]);
        let buffer = [
            format!("buffer  {} instructions", self.fetch.buffer),
            format!("target queue  {}", self.fetch.targets),
        ];
        canvas.part("part", (256, 216), 176, "Fetch buffer", &buffer);
        canvas.arrow(&[(220, 247), (254, 247)]);
    }

    fn back_end(&self, canvas: &mut Canvas) {
        let (width, issue, exec) = (self.decode.width, &self.issue, &self.execute);
        canvas.region(256, 70, "BACK END");
        let rename = [
            format!("{width} a cycle"),
            format!("integer registers  {}", self.rename.int_regs),
            format!("FP registers  {}", self.rename.fp_regs),
            format!("branch tags  {}", self.rename.branches),
        ];
        canvas.part("part", (256, 80), 176, "Decode, rename", &rename);
        canvas.arrow(&[(344, 216), (344, 176)]);
        let rob = [
            format!("{} entries", self.rob.entries),
            format!("{} rows × {width}", self.rob.entries / width),
        ];
        canvas.part("part", (700, 80), 176, "Reorder buffer", &rob);
        let queue = |entries: u32, ports: u32| format!("{entries} entries, {ports} ports");
        let queues = [
            (issue.int_entries, issue.int_width, "Integer issue queue"),
            (issue.fp_entries, issue.fp_width, "FP issue queue"),
            (issue.mem_entries, issue.mem_width, "Memory issue queue"),
        ];
        let units = [
            vec![
                format!("ALU × {}, branch", issue.int_width),
                format!("multiply {}, divide 13–69", exec.mul),
                format!("to FP {}", exec.int_to_fp),
            ],
            vec![
                format!("FMA {} × {}", exec.fp, issue.fp_width),
                format!("divide {}, root {}", exec.fdiv, exec.fsqrt),
            ],
            vec![
                format!("load queue  {}", self.lsu.loads),
                format!("store queue  {}", self.lsu.stores),
            ],
        ];
        let titles = ["Integer units (cycles)", "FP units (cycles)", "Load/store unit"];
        for (n, ((entries, ports, title), lines)) in queues.into_iter().zip(units).enumerate() {
            let y = 188 + 96 * n as u32;
            let middle = y + 23;
            canvas.part("part", (476, y), 176, title, &[queue(entries, ports)]);
            canvas.part("part", (700, y), 176, titles[n], &lines);
            canvas.arrow(&[(454, 110), (454, middle), (474, middle)]);
            canvas.arrow(&[(652, middle), (698, middle)]);
        }
        canvas.arrow(&[(432, 110), (698, 110)]);
        canvas.arrow(&[(788, 188), (788, 144)]);
        canvas.region(920, 70, "COMMIT");
        let commit = [format!("up to {width} a cycle, in order")];
        canvas.part("part", (920, 80), 180, "Commit", &commit);
        let tip = ["samples the ROB's head".into(), format!("{} addresses a sample", width.min(4))];
        canvas.part("tip", (920, 162), 180, "TIP unit", &tip);
        canvas.arrow(&[(876, 103), (918, 103)]);
        canvas.arrow(&[(1010, 126), (1010, 160)]);
    }

    fn memory(&self, canvas: &mut Canvas) {
        let y = 484;
        canvas.region(256, y - 10, "MEMORY");
        let l1d = [
            format!("{}, {} ways, {} banks", kib(self.l1d.kib), self.l1d.ways, self.l1d.banks),
            format!("{} MSHRs, DTLB {}", self.l1d.mshrs, self.dtlb.entries),
        ];
        let l2tlb = match self.l2tlb.entries {
            0 => "no L2 TLB".into(),
            entries => format!("L2 TLB {entries}"),
        };
        let l2 = [
            format!("{}, {} ways, {} MSHRs", kib(self.l2.kib), self.l2.ways, self.l2.mshrs),
            l2tlb,
        ];
        let llc = match self.llc.kib {
            0 => ["none".into(), String::new()],
            size => [
                format!("{}, {} ways", kib(size), self.llc.ways),
                format!("{} MSHRs", self.llc.mshrs),
            ],
        };
        let dram = match self.dram.model {
            DramModel::Ddr => [
                format!("{} MHz, {} × {} banks", self.dram.mhz, self.dram.ranks, self.dram.banks),
                format!("CAS {}, RCD {}, RP {}", self.dram.cas, self.dram.rcd, self.dram.rp),
            ],
            DramModel::Fixed => [format!("fixed, {} cycles", self.dram.latency), String::new()],
        };
        let levels = [("L1D", l1d), ("L2", l2), ("LLC", llc), ("DRAM", dram)];
        for (n, (title, lines)) in levels.iter().enumerate() {
            let x = 256 + 216 * n as u32;
            canvas.part("part", (x, y), 190, title, lines);
            if n > 0 {
                canvas.arrow(&[(x - 26, y + 31), (x - 2, y + 31)]);
            }
        }
        canvas.arrow(&[(700, 411), (676, 411), (676, 466), (351, 466), (351, 482)]);
        canvas.arrow(&[(120, 364), (120, 554), (462, 554), (462, 530), (470, 530)]);
    }
}
