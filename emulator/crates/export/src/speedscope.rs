//! speedscope's own format (<https://www.speedscope.app/file-format-schema.json>).

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use serde::Serialize;

use super::{Export, Format};

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: &'a str,
    exporter: String,
    shared: Shared,
    profiles: Vec<Profile<'a>>,
}

#[derive(Serialize)]
struct Shared {
    frames: Vec<Frame>,
}

#[derive(Clone, Serialize, PartialEq, Eq, Hash)]
struct Frame {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// A profile. Weights are cycles, shown as plain numbers, as speedscope has no such unit.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile<'a> {
    r#type: &'static str,
    name: &'a str,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

#[derive(Default)]
struct Frames {
    list: Vec<Frame>,
    known: HashMap<Frame, usize>,
}

impl Frames {
    fn number(&mut self, frame: Frame) -> usize {
        if let Some(&known) = self.known.get(&frame) {
            return known;
        }
        self.list.push(frame.clone());
        self.known.insert(frame, self.list.len() - 1);
        self.list.len() - 1
    }
}

pub(super) fn write(export: &Export<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut frames = Frames::default();
    let stacks: Vec<Vec<usize>> =
        (0..export.rows().len()).map(|row| stack(export, row, &mut frames)).collect();
    let profiles = export.series().into_iter().map(|series| {
        // Equal stacks are added up and stand together: the view in order of time, which the file opens with, shows what callers have.
        let mut cycles: BTreeMap<&[usize], u64> = BTreeMap::new();
        for (row, more) in export.cycles(&series) {
            *cycles.entry(&stacks[row]).or_default() += more;
        }
        Profile {
            r#type: "sampled",
            name: series.name,
            unit: "none",
            start_value: 0,
            end_value: cycles.values().sum(),
            samples: cycles.keys().map(|stack| stack.to_vec()).collect(),
            weights: cycles.into_values().collect(),
        }
    });
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        name: &export.title(),
        exporter: export.exporter(Format::Speedscope),
        profiles: profiles.collect(),
        shared: Shared { frames: frames.list },
    };
    serde_json::to_writer(out, &file).map_err(io::Error::from)
}

/// The frames of a row, outermost first. Only the instruction's frame has a source line, as lines on functions would make a
/// frame of each line.
fn stack(export: &Export<'_>, row: usize, frames: &mut Frames) -> Vec<usize> {
    let inner = export.frames(row);
    let plain = |name: &str, file: Option<&str>| Frame {
        name: name.to_owned(),
        file: file.map(str::to_owned),
        line: None,
    };
    let process = export.process_name(export.rows()[row].process);
    let mut stack = vec![frames.number(plain(process, None))];
    if let Some(thread) = export.own_name(row) {
        stack.push(frames.number(plain(thread, None)));
    }
    let mut rows: Vec<usize> = export.stack(row).collect();
    rows.reverse();
    for frame in rows.into_iter().flat_map(|row| export.frames(row).into_iter().rev()) {
        stack.push(frames.number(plain(frame.name, frame.source.map(|(file, _)| file))));
    }
    if let Some(name) = export.instruction(row) {
        let (file, line) = inner.first().and_then(|frame| frame.source).unzip();
        stack.push(frames.number(Frame {
            name,
            file: file.map(str::to_owned),
            line: line.filter(|line| *line > 0),
        }));
    }
    stack
}
