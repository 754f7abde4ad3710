//! Files as `perf record` writes them, made up: for the tests of whatever reads them. Feature `synthetic`.

/// `PERF_SAMPLE_…`: IP, TID, TIME, ADDR, CPU, PERIOD, DATA_SRC, IDENTIFIER, PHYS_ADDR, WEIGHT_STRUCT.
const SAMPLE_TYPE: u64 =
    1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 7 | 1 << 8 | 1 << 15 | 1 << 16 | 1 << 19 | 1 << 24;
/// Bytes of a `perf_event_attr`, and of the place of its ids.
const ATTR_BYTES: u64 = 128 + 16;
const HEADER_BYTES: u64 = 104;
/// Number of the PMU `pdis`.
const PDIS: u64 = 9;

/// A `perf.data` file.
#[derive(Clone, Debug, Default)]
pub struct SyntheticFile {
    events: Vec<(String, u64, u64)>,
    /// The event whose records are AUX data of the PMU `pdis`.
    aux: Option<usize>,
    records: Vec<u8>,
}

/// What a sample says.
#[derive(Clone, Copy, Debug, Default)]
pub struct SyntheticSample {
    /// Number of its event.
    pub event: usize,
    /// Nanoseconds.
    pub time: u64,
    /// Process and thread.
    pub pid: u32,
    /// Hart.
    pub cpu: u32,
    /// The instruction.
    pub ip: u64,
    /// `PERF_RECORD_MISC_…` bits.
    pub misc: u16,
    /// Events that it stands for.
    pub period: u64,
    /// Virtual address.
    pub addr: u64,
    /// Physical address.
    pub phys_addr: u64,
    /// `union perf_mem_data_src`.
    pub data_src: u64,
    /// Three weights: 32, 16 and 16 bits.
    pub weight: u64,
}

/// The data source of a load, L3 hit, HITM, atomic, TLB hit in L1.
pub const HITM: u64 = 2 | 2 << 5 | 16 << 19 | 2 << 24 | (2 | 8) << 26 | 3 << 33;

impl SyntheticSample {
    /// An atomic of the second event that another hart's modified line answered, with all that a sample can say.
    pub fn hitm() -> Self {
        Self {
            event: 1,
            time: 5_000_000_123,
            pid: 42,
            cpu: 1,
            ip: 0x10010,
            misc: 1 << 14 | 2,
            period: 100,
            addr: 0x7fff_0008,
            phys_addr: 0x8000_0008,
            data_src: HITM,
            weight: 3 << 48 | 70 << 32 | 66,
        }
    }
}

/// 64-bit words, little-endian.
pub fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl SyntheticFile {
    /// A file with these events: name, period (in events), `precise_ip`.
    pub fn new(events: &[(&str, u64, u64)]) -> Self {
        let own =
            |(name, period, precise): &(&str, u64, u64)| (name.to_string(), *period, *precise);
        Self { events: events.iter().map(own).collect(), aux: None, records: Vec::new() }
    }

    /// Adds a record.
    pub fn record(&mut self, kind: u32, misc: u16, body: &[u8]) {
        self.records.extend(kind.to_le_bytes());
        self.records.extend(misc.to_le_bytes());
        self.records.extend((body.len() as u16 + 8).to_le_bytes());
        self.records.extend(body);
    }

    /// Adds a sample.
    pub fn sample(&mut self, sample: &SyntheticSample) {
        let thread = u64::from(sample.pid) * (1 | 1 << 32);
        let body = words(&[
            sample.event as u64,
            sample.ip,
            thread,
            sample.time,
            sample.addr,
            sample.cpu.into(),
            sample.period,
            sample.weight,
            sample.data_src,
            sample.phys_addr,
        ]);
        self.record(9, sample.misc, &body);
    }

    /// Adds AUX data of an event, whose only ones they are: records of a task on hart 1, at a time, at an offset of the hart's area.
    pub fn aux_data(&mut self, event: usize, (pid, time): (u32, u64), offset: u64, data: &[u8]) {
        self.aux = Some(event);
        let size = data.len() as u64;
        let thread = u64::from(pid) * (1 | 1 << 32);
        self.aux_record(&[offset, size, 0, thread, time, 1, event as u64]);
        self.record(71, 0, &words(&[size, offset, 0, 0, 1]));
        self.records.extend(data);
    }

    /// Adds a `PERF_RECORD_AUX`: offset, size, flags, and the end of records: thread, time, hart, id.
    pub fn aux_record(&mut self, fields: &[u64; 7]) {
        self.record(11, 0, &words(fields));
    }

    /// Adds the conversion from the hart's time to nanoseconds.
    pub fn time_conversion(&mut self, shift: u64, multiplier: u64, zero: u64) {
        self.record(79, 0, &words(&[shift, multiplier, zero]));
    }

    /// Adds the name of a process.
    pub fn command(&mut self, pid: u32, name: &str) {
        let mut body = [pid.to_le_bytes(), pid.to_le_bytes()].concat();
        body.extend(padded(name));
        self.record(3, 0, &body);
    }

    /// Adds a mapping of a file.
    pub fn mapping(&mut self, pid: u32, start: u64, len: u64, file_offset: u64, path: &str) {
        let mut body = words(&[u64::from(pid) * (1 | 1 << 32), start, len, file_offset]);
        // Device, inode, protection and flags.
        body.extend([0; 32]);
        body.extend(padded(path));
        self.record(10, 2, &body);
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let count = self.events.len() as u64;
        let attrs = HEADER_BYTES + 8 * count;
        let data = attrs + ATTR_BYTES * count;
        // After the table of the two features.
        let description = data + self.records.len() as u64 + 32;
        let mut out = b"PERFILE2".to_vec();
        out.extend(words(&[HEADER_BYTES, ATTR_BYTES, attrs, ATTR_BYTES * count]));
        out.extend(words(&[data, self.records.len() as u64]));
        out.extend(words(&[0, 0, 1 << 12 | 1 << 16, 0, 0, 0]));
        out.extend(words(&(0..count).collect::<Vec<u64>>()));
        for (index, (_, period, precise)) in (0..).zip(&self.events) {
            let start = out.len();
            let (kind, config) = match self.aux {
                Some(event) if event as u64 == index => (PDIS, 1 << 26),
                _ => (4, 0),
            };
            out.extend(words(&[kind, config, *period, SAMPLE_TYPE, 0, precise << 15]));
            out.resize(start + ATTR_BYTES as usize - 16, 0);
            out.extend(words(&[HEADER_BYTES + 8 * index, 8]));
        }
        out.extend(&self.records);
        let mut names = words(&[count | 8 << 32]);
        for (id, (name, ..)) in (0..).zip(&self.events) {
            let name = padded(name);
            names.extend(words(&[0, 1 | (name.len() as u64) << 32]));
            names.extend(name);
            names.extend(words(&[id]));
        }
        let mappings =
            [&words(&[1 | PDIS << 32])[..], &8u32.to_le_bytes(), &padded("pdis")].concat();
        out.extend(words(&[description, names.len() as u64]));
        out.extend(words(&[description + names.len() as u64, mappings.len() as u64]));
        out.extend(names);
        out.extend(mappings);
        out
    }
}

/// A string with at least one zero byte, up to a whole word.
fn padded(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((bytes.len() + 8) & !7, 0);
    bytes
}
