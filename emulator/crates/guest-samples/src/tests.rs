use super::synthetic::{HITM, SyntheticFile, SyntheticSample, words};
use super::*;

/// Two events, `cycles` and `tip:u`, as `perf record` lays a file out.
struct File {
    records: Vec<u8>,
}

const SAMPLE_TYPE: u64 = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 8 | 1 << 10 | 1 << 16; // IP TID TIME PERIOD RAW IDENTIFIER
const CYCLES: u64 = 7;
const TIP: u64 = 8;

impl File {
    fn record(&mut self, kind: u32, body: &[u8]) {
        self.records.extend(kind.to_le_bytes());
        self.records.extend(0u16.to_le_bytes());
        self.records.extend((body.len() as u16 + 8).to_le_bytes());
        self.records.extend(body);
    }

    fn sample(&mut self, event: u64, pid: u64, ip: u64, period: u64, raw: &[u8]) {
        let mut body = words(&[event, ip, pid | pid << 32, 99, period]);
        body.extend((raw.len() as u32).to_le_bytes());
        body.extend(raw);
        self.record(9, &body);
    }

    fn bytes(&self) -> Vec<u8> {
        let (attr_size, ids) = (144, 104);
        let attrs = ids + 16;
        let data = attrs + 2 * attr_size;
        let description = data + self.records.len() as u64 + 16;
        let mut out = b"PERFILE2".to_vec();
        out.extend(words(&[104, attr_size, attrs, 2 * attr_size, data, self.records.len() as u64]));
        out.extend(words(&[0, 0, 1 << 12, 0, 0, 0]));
        out.extend(words(&[CYCLES, TIP]));
        for index in 0..2 {
            let flags = 1 << 10 | if index == 1 { 1 << 5 } else { 0 };
            let mut attr = words(&[0, 0, 4000, SAMPLE_TYPE, 0, flags]);
            attr.resize(attr_size as usize - 16, 0);
            out.extend(attr);
            out.extend(words(&[ids + 8 * index, 8]));
        }
        out.extend(&self.records);
        let mut names = words(&[2 | 8 << 32]);
        for (name, id) in [("cycles", CYCLES), ("tip:u", TIP)] {
            names.extend(words(&[0, 1 | 8 << 32]));
            let mut text = name.as_bytes().to_vec();
            text.resize(8, 0);
            names.extend(text);
            names.extend(words(&[id]));
        }
        out.extend(words(&[description, names.len() as u64]));
        out.extend(names);
        out
    }
}

fn raw(privilege: u16, cycle: u64, addresses: &[u64]) -> Vec<u8> {
    let mut raw = vec![1, addresses.len() as u8];
    raw.extend((privilege << 8 | 1).to_le_bytes());
    raw.extend(words(&[cycle]));
    raw.extend(words(addresses));
    raw
}

fn file() -> File {
    let mut file = File { records: Vec::new() };
    let mut command = (42u32 as u64 | 42 << 32).to_le_bytes().to_vec();
    command.extend(b"quickstart\0\0\0\0\0\0");
    file.record(3, &command);
    file.sample(TIP, 42, 0x1000, 800, &raw(0, 123_456, &[0x1000, 0x1004, 0x1006]));
    file.sample(CYCLES, 42, 0x2000, 900, &[]);
    file.sample(TIP, 42, 0x1008, 700, &raw(0, 123_999, &[0x1008]));
    file.record(2, &words(&[TIP, 3]));
    file
}

#[test]
fn samples_of_one_event() {
    let profile = GuestProfile::parse(&file().bytes(), "tip").unwrap().remove(0);
    assert_eq!(profile.event, "tip:u");
    assert!(profile.exclude_kernel && !profile.exclude_user);
    assert!(profile.is_frequency);
    assert_eq!((profile.period, profile.lost, profile.malformed), (4000, 3, 0));
    assert_eq!(profile.commands[&42], "quickstart");
    assert_eq!(profile.total_cycles(), 1500);
    let first = GuestSample {
        pid: 42,
        tid: 42,
        period: 800,
        cycle: Some(123_456),
        privilege: Some(0),
        addresses: vec![0x1000, 0x1004, 0x1006],
    };
    assert_eq!(profile.samples[0], first);
    assert_eq!(profile.samples[1].addresses, [0x1008]);
}

#[test]
fn an_ordinary_event_has_its_instruction_pointer() {
    let profile = GuestProfile::parse(&file().bytes(), "cycles").unwrap().remove(0);
    assert_eq!(profile.samples.len(), 1);
    assert_eq!(profile.samples[0].addresses, [0x2000]);
    assert_eq!(profile.samples[0].cycle, None);
}

#[test]
fn errors_say_what_is_there() {
    let error = GuestProfile::parse(&file().bytes(), "branches").unwrap_err();
    assert_eq!(error.to_string(), r#"perf.data has no event "branches", only ["cycles", "tip:u"]"#);
    let mut compressed = file();
    compressed.record(81, &[0; 8]);
    let error = GuestProfile::parse(&compressed.bytes(), "tip").unwrap_err();
    assert!(matches!(error, PerfDataError::Compressed));
    let mut pipe = b"PERFILE2".to_vec();
    pipe.extend(words(&[16]));
    assert!(matches!(GuestProfile::parse(&pipe, "tip"), Err(PerfDataError::Pipe)));
}

#[test]
fn damaged_files_do_no_harm() {
    let whole = file().bytes();
    for length in 0..whole.len() {
        let _ = GuestProfile::parse(&whole[..length], "tip");
    }
    for at in 0..whole.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let _ = GuestProfile::parse(&bytes, "tip");
            bytes.iter_mut().skip(at & !7).take(8).for_each(|byte| *byte = value);
            let _ = GuestProfile::parse(&bytes, "tip");
        }
    }
}

#[test]
fn every_field_of_a_sample_is_read() {
    let mut file = SyntheticFile::new(&[("cycles:u", 1000, 0), ("branch-misses:upp", 100, 2)]);
    file.command(42, "work");
    file.mapping(42, 0x10000, 0x2000, 0x1000, "/bin/work");
    let sample = SyntheticSample::hitm();
    file.sample(&sample);
    file.sample(&SyntheticSample {
        ip: 0xffff_ffff_8000_0000,
        misc: 1,
        ..SyntheticSample::default()
    });
    file.record(5, 0, &words(&[1, 2, 3]));
    file.record(2, 0, &words(&[1, 7]));
    let read = SampleFile::parse(&file.bytes()).unwrap();
    let [event, precise] = &read.events[..] else {
        panic!("two events: {:?}", read.events);
    };
    assert_eq!((event.precise, event.period), (0, 1000));
    assert_eq!((precise.name.as_str(), precise.precise), ("branch-misses:upp", 2));
    assert_eq!((read.lost, read.throttled, read.malformed), (7, 1, 0));
    assert_eq!(read.commands[&42], "work");
    let expected = Sample {
        event: 1,
        time: Some(5_000_000_123),
        pid: Some(42),
        tid: Some(42),
        cpu: Some(1),
        ip: Some(0x10010),
        is_exact: true,
        is_user: true,
        period: Some(100),
        addr: Some(0x7fff_0008),
        phys_addr: Some(0x8000_0008),
        data_src: Some(DataSrc(HITM)),
        weight: Some(66),
        ins_lat: Some(70),
        retire_lat: Some(3),
    };
    assert_eq!(read.samples[0], expected);
    assert!(!read.samples[1].is_user && !read.samples[1].is_exact);
    let mapping = read.mapping(42, 0x11fff).unwrap();
    assert_eq!((mapping.path.as_str(), mapping.file_offset), ("/bin/work", 0x1000));
    assert_eq!(read.mapping(42, 0x12000), None);
    assert_eq!(read.mapping(43, 0x11fff), None);
}

/// A load that memory answered, after a walk: executed in 200 of 260 cycles.
const LOAD: [u64; 8] = [
    1 | 1 << 32 | 1 << 33 | 15 << 42 | 6 << 46,
    0x10010,
    1000,
    260 | 3 << 12 | 7 << 24 | 200 << 36 | 7 << 60,
    0x7fff_0009,
    0x8000_0008 >> 2,
    0,
    0,
];

fn aux_file(data: &[u8], chunks: &[[u64; 2]]) -> SyntheticFile {
    let mut file = SyntheticFile::new(&[("dummy:u", 1, 0), ("pdis/loads,aux=1/", 1000, 0)]);
    file.time_conversion(2, 400, 7);
    file.aux_data(1, (42, 99), 0x1000, data);
    for [offset, size] in chunks {
        file.aux_record(&[*offset, *size, 4, 43 | 44 << 32, 100, 1, 1]);
    }
    file
}

#[test]
fn aux_data_are_samples() {
    let mut store = LOAD;
    // A store that had to ask others for its line, earlier.
    store[0] = 2 | 1 << 32 | 1 << 44 | 10 << 46;
    store[2] = 999;
    let file = aux_file(&words(&[LOAD, store].concat()), &[]);
    let read = SampleFile::parse(&file.bytes()).unwrap();
    assert_eq!((read.malformed, read.aux_gaps), (0, 0));
    let expected = Sample {
        event: 1,
        time: Some(100_007),
        pid: Some(42),
        tid: Some(42),
        cpu: Some(1),
        ip: Some(0x10010),
        is_exact: true,
        is_user: true,
        period: Some(1000),
        addr: Some(0x7fff_0009),
        phys_addr: Some(0x8000_0009),
        data_src: read.samples[1].data_src,
        weight: Some(200),
        ins_lat: Some(260),
        retire_lat: Some(50),
    };
    assert_eq!(read.samples[1], expected);
    let says = |at: usize| {
        let source = read.samples[at].data_src.unwrap();
        let words = [source.op(), source.level(), source.snoop(), source.tlb()];
        words.join("; ")
    };
    assert_eq!(says(1), "load; RAM hit; miss; hit walker");
    assert_eq!(says(0), "store; L1 miss; hit; hit L1");
    assert_eq!(read.samples[0].time, Some(99_907));
}

#[test]
fn aux_data_that_are_not_there_are_counted() {
    let data = words(&LOAD.repeat(3));
    // What was read once is not read again; of the other chunk one record is in the file.
    let mut file = SyntheticFile::new(&[("pdis/loads,aux=1/", 1000, 0), ("dummy:u", 1, 0)]);
    file.aux_data(0, (42, 99), 0x1000, &data);
    file.aux_record(&[0x1000, 192, 0, 43, 100, 1, 0]);
    file.aux_record(&[0x10c0, 128, 4, 43, 100, 1, 0]);
    // Another hart's, of which there is nothing, and one that reaches beyond all addresses.
    file.aux_record(&[0, 640, 1, 43, 100, 2, 0]);
    file.aux_record(&[u64::MAX, u64::MAX, 0, 43, 100, 1, 0]);
    // The other event has none.
    file.aux_record(&[0x1000, 192, 1, 43, 100, 1, 1]);
    let read = SampleFile::parse(&file.bytes()).unwrap();
    assert_eq!(read.samples.len(), 3);
    // Without a conversion: when the records were taken.
    assert!(read.samples.iter().all(|sample| sample.time == Some(99)));
    assert_eq!((read.malformed, read.aux_gaps), (2 + 10, 2));
}

#[test]
fn aux_data_of_a_task_that_ends_are_its_own() {
    let mut file = SyntheticFile::new(&[("pdis/loads,aux=1/", 1000, 0)]);
    // Another ends on this hart, and later one on another.
    for (pid, tid, cpu) in [(50, 51, 1), (60, 61, 1), (70, 71, 0)] {
        file.record(4, 0, &words(&[pid, tid, 90, pid | tid << 32, 90, cpu, 0]));
    }
    file.aux_data(0, (u32::MAX, 99), 0x2000, &words(&LOAD));
    let read = SampleFile::parse(&file.bytes()).unwrap();
    assert_eq!(read.samples.len(), 1);
    let sample = read.samples[0];
    assert_eq!((sample.pid, sample.tid), (Some(60), Some(61)));
}

#[test]
fn damaged_aux_data_do_no_harm() {
    let whole = aux_file(&words(&LOAD), &[[0x1040, 64]]).bytes();
    for at in 0..whole.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let _ = SampleFile::parse(&bytes);
        }
        let _ = SampleFile::parse(&whole[..at]);
    }
}

#[test]
fn what_a_data_source_says() {
    let source = DataSrc(HITM);
    assert_eq!(source.op(), "load");
    assert_eq!(source.level(), "L3 hit");
    assert_eq!((source.snoop(), source.is_hitm()), ("HITM".to_owned(), true));
    assert_eq!((source.tlb(), source.lock()), ("hit L1".to_owned(), "locked".to_owned()));
    // A store that missed in L1, as older drivers say it; not known; a peer's cache of another node.
    assert_eq!(DataSrc(4 | (4 | 8) << 5).level(), "L1 miss");
    assert_eq!(DataSrc(1 | 1 << 5).level(), "N/A");
    let remote = DataSrc(2 << 5 | 11 << 33 | 1 << 37 | 2 << 38);
    assert_eq!(
        (remote.level(), remote.snoop()),
        ("remote any cache hit".to_owned(), "peer".to_owned())
    );
}

#[test]
fn what_stands_before_the_weight_is_skipped() {
    // RAW, BRANCH_STACK with an index, REGS_USER of three registers, WEIGHT.
    let attr = attr::Attr {
        sample_type: 1 << 10 | 1 << 11 | 1 << 12 | 1 << 14,
        branch_sample_type: 1 << 17,
        sample_regs_user: 0b111,
        ..attr::Attr::default()
    };
    let mut body = vec![4, 0, 0, 0, 1, 2, 3, 4];
    body.extend(words(&[1, 9, 0x10, 0x20, 0]));
    body.extend(words(&[2, 5, 6, 7]));
    body.extend(words(&[1234]));
    let found = fields::parse(&body, &attr).unwrap();
    assert_eq!((found.weight, found.raw), (Some(1234), Some(&[1, 2, 3, 4][..])));
    assert!(fields::parse(&body[..body.len() - 1], &attr).is_none());
}

#[test]
fn damaged_samples_do_no_harm() {
    let mut file = SyntheticFile::new(&[("cycles", 1000, 0)]);
    file.mapping(42, 0x10000, 0x2000, 0x1000, "/bin/work");
    file.sample(&SyntheticSample::default());
    let whole = file.bytes();
    for at in 0..whole.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let _ = SampleFile::parse(&bytes);
        }
        let _ = SampleFile::parse(&whole[..at]);
    }
}
