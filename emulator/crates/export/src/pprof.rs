//! pprof (<https://github.com/google/pprof/blob/main/proto/profile.proto>), gzipped.
//!
//! A sample type per profiler, in cycles. A sample is an instruction and the calls that led there, with inlined
//! functions as lines; processes and threads are labels, so that `pprof -tagroot process,thread` puts them at the root.

pub(super) mod proto;

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use symbols::BuildId;

use super::images::Image;
use super::{Export, Format, model::Frame};
use proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};

pub(super) fn write(export: &Export<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut builder = Builder {
        export,
        shared: export.shared_images(),
        strings: HashMap::new(),
        mappings: HashMap::new(),
        locations: HashMap::new(),
        functions: HashMap::new(),
        profile: Profile::default(),
    };
    builder.build();
    let mut gzip = GzEncoder::new(out, Compression::default());
    gzip.write_all(&builder.profile.encode_to_vec())?;
    gzip.finish()?;
    Ok(())
}

struct Builder<'a> {
    export: &'a Export<'a>,
    shared: Vec<Image>,
    strings: HashMap<String, i64>,
    mappings: HashMap<Image, u64>,
    /// Locations by mapping, address and, of an instruction, encoding.
    locations: HashMap<(u64, u64, Option<u32>), u64>,
    functions: HashMap<(i64, i64), u64>,
    profile: Profile,
}

impl Builder<'_> {
    fn build(&mut self) {
        let export = self.export;
        // The format wants the empty string first.
        self.string("");
        let cycles = self.string("cycles");
        let series = export.series();
        let mut values = vec![vec![0; series.len()]; export.rows().len()];
        for (at, series) in series.iter().enumerate() {
            let name = self.string(series.name);
            self.profile.sample_type.push(ValueType { r#type: name, unit: cycles });
            for (row, cycles) in export.cycles(series) {
                values[row][at] = i64::try_from(cycles).unwrap_or(i64::MAX);
            }
        }
        let (process, pid) = (self.string("process"), self.string("pid"));
        let (thread, tid) = (self.string("thread"), self.string("tid"));
        let mut rows: Vec<(usize, Vec<i64>)> = values.into_iter().enumerate().collect();
        rows.retain(|(_, value)| value.iter().any(|cycles| *cycles > 0));
        // The hottest first: pprof calls the first mapping the main one.
        rows.sort_by_key(|(_, value)| std::cmp::Reverse(value.first().copied()));
        for (row, value) in rows {
            let stack = export.stack(row).map(|row| self.location(row)).collect();
            let id = export.rows()[row].process;
            let name = self.string(export.process_name(id));
            let own = export.own_name(row).unwrap_or(export.process_name(id));
            let own = self.string(own);
            let label = |key, str, num| Label { key, str, num, num_unit: 0 };
            self.profile.sample.push(Sample {
                location_id: stack,
                value,
                label: vec![
                    label(process, name, 0),
                    label(pid, 0, i64::from(export.pid(id))),
                    label(thread, own, 0),
                    label(tid, 0, i64::from(export.tid(row))),
                ],
            });
        }
        let comment =
            self.string(&format!("{}, {}", export.title(), export.exporter(Format::Pprof)));
        let duration = export.nanos(export.evaluation.cycles);
        self.profile.comment.push(comment);
        self.profile.duration_nanos = i64::try_from(duration).unwrap_or(i64::MAX);
        self.profile.default_sample_type = self.profile.sample_type.first().map_or(0, |t| t.r#type);
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(&known) = self.strings.get(text) {
            return known;
        }
        let index = self.profile.string_table.len() as i64;
        self.profile.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), index);
        index
    }

    fn location(&mut self, row: usize) -> u64 {
        let mapping_id = self.mapping(row);
        let static_info = self.export.static_info(row);
        let is_function = self.export.rows()[row].is_function;
        let address = self.export.address(row);
        let raw = (!is_function).then_some(static_info.raw);
        let key = (mapping_id, address, raw);
        if let Some(&known) = self.locations.get(&key) {
            return known;
        }
        let line = self.export.frames(row).iter().map(|frame| self.line(frame)).collect();
        let id = self.profile.location.len() as u64 + 1;
        self.profile.location.push(Location { id, mapping_id, address, line, is_folded: false });
        self.locations.insert(key, id);
        id
    }

    fn line(&mut self, frame: &Frame<'_>) -> Line {
        let (file, line) = frame.source.unwrap_or(("", 0));
        let (name, filename) = (self.string(frame.name), self.string(file));
        let next = self.functions.len() as u64 + 1;
        let functions = &mut self.profile.function;
        let id = *self.functions.entry((name, filename)).or_insert_with(|| {
            functions.push(Function { id: next, name, system_name: name, filename, start_line: 0 });
            next
        });
        Line { function_id: id, line: line.into() }
    }

    /// The mapping of a row, or 0 if no file backs it.
    fn mapping(&mut self, row: usize) -> u64 {
        let Some(image) = self.export.image_of(row, &self.shared) else {
            return 0;
        };
        if let Some(&known) = self.mappings.get(&image) {
            return known;
        }
        let id = self.mappings.len() as u64 + 1;
        let filename = self.string(&image.path);
        let build_id = self.string(&BuildId(image.build_id.clone()).to_string());
        self.profile.mapping.push(Mapping {
            id,
            memory_start: image.start,
            memory_limit: image.start.saturating_add(image.len),
            file_offset: image.file_offset,
            filename,
            build_id,
            // Everything is named already: pprof need not look for symbols.
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
        });
        self.mappings.insert(image, id);
        id
    }
}
