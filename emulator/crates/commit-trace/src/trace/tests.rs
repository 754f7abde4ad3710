use std::io::{Cursor, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use proptest::prelude::*;

use super::*;
use crate::{
    Batch, CommitRecord, Event, HartId, InstId, Seq, SpanBuilder, SpanSink, Stages, synthetic,
};

const METADATA: &str = r#"{"preset":"boom-4w"}"#;

fn write(batches: &[Batch]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes, "test".into(), METADATA).unwrap();
    for batch in batches {
        writer.batch(batch).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

fn open(bytes: &[u8]) -> Result<TraceReader<Cursor<&[u8]>>, TraceError> {
    TraceReader::new(Cursor::new(bytes), "test".into())
}

/// Reads to the end or the first error.
fn read(bytes: &[u8]) -> (Vec<Batch>, Option<TraceError>) {
    let mut reader = match open(bytes) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut batches = Vec::new();
    loop {
        let mut batch = Batch::default();
        match reader.next_batch(&mut batch) {
            Ok(true) => batches.push(batch),
            Ok(false) => return (batches, None),
            Err(error) => return (batches, Some(error)),
        }
    }
}

/// Records of [`long`].
const LONG: usize = 800_000;

/// A trace of several chunks.
fn long() -> (Vec<Batch>, Vec<u8>) {
    let mut state = 1u32;
    let words: Vec<u32> = (0..LONG)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Few batches are cut short, so that chunks fill up by their records.
            if state >> 24 == 251 { state & 0x00ff_ffff } else { state ^ state >> 15 }
        })
        .collect();
    let batches = synthetic::batches(&words, 4);
    let bytes = write(&batches);
    (batches, bytes)
}

#[test]
fn a_long_trace_reads_back_equal_and_is_small() {
    let (batches, bytes) = long();
    let reader = open(&bytes).unwrap();
    assert_eq!(reader.end(), TraceEnd::Complete);
    assert_eq!(reader.metadata(), METADATA);
    assert!(reader.chunks().len() > 2);
    let (found, error) = read(&bytes);
    assert!(error.is_none());
    assert!(found == batches);
    // This stream is noise; real ones take a fraction of it.
    assert!(bytes.len() < LONG * 6, "{} bytes", bytes.len());
}

#[test]
fn replaying_gives_the_same_batches_and_the_error() {
    type Bytes = Cursor<Vec<u8>>;
    let ways: [fn(TraceReader<Bytes>) -> Replay; 2] = [|reader| reader.ahead(3), TraceReader::here];
    for way in ways {
        let (batches, mut bytes) = long();
        let replay =
            |bytes: Vec<u8>| way(TraceReader::new(Cursor::new(bytes), "test".into()).unwrap());
        let mut found = Vec::new();
        let mut stream = replay(bytes.clone());
        while let Some(batch) = stream.next() {
            let batch = batch.unwrap();
            found.push(batch.clone());
            stream.recycle(batch);
        }
        assert!(found == batches);
        drop(replay(bytes.clone()));
        let chunk = open(&bytes).unwrap().chunks()[1];
        bytes[chunk.offset as usize + 5000] ^= 4;
        let mut stream = replay(bytes);
        assert!(stream.find_map(Result::err).is_some());
        assert!(stream.next().is_none());
    }
}

#[test]
fn equal_runs_give_equal_files() {
    let (batches, bytes) = long();
    assert!(write(&batches) == bytes);
}

#[test]
fn cut_anywhere_it_reads_up_to_the_last_whole_chunk() {
    let (batches, bytes) = long();
    let chunks = open(&bytes).unwrap().chunks().to_vec();
    let cuts = chunks.iter().flat_map(|chunk| {
        let at = chunk.offset as usize;
        [at, at + 1, at + 60, at + 128, at + 1000]
    });
    for cut in cuts.chain([bytes.len() - 1, bytes.len() - 24, bytes.len() - 30]) {
        let whole = chunks.iter().filter(|chunk| {
            let next = chunks.iter().map(|c| c.offset).find(|at| *at > chunk.offset);
            next.is_some_and(|next| next as usize <= cut)
        });
        let mut records: u64 = whole.map(|chunk| u64::from(chunk.records)).sum();
        if cut > bytes.len() - 100 {
            records = chunks.iter().map(|chunk| u64::from(chunk.records)).sum();
        }
        let cut_bytes = &bytes[..cut];
        assert!(matches!(open(cut_bytes).unwrap().end(), TraceEnd::Cut { .. }), "cut at {cut}");
        let (found, error) = read(cut_bytes);
        assert!(error.is_none(), "cut at {cut}: {error:?}");
        assert_eq!(found.iter().map(|b| b.records.len() as u64).sum::<u64>(), records);
        assert!(batches.starts_with(&found));
    }
}

#[test]
fn damage_is_reported_where_it_is() {
    let (_, mut bytes) = long();
    let chunk = open(&bytes).unwrap().chunks()[1];
    bytes[chunk.offset as usize + 5000] ^= 4;
    let (found, error) = read(&bytes);
    let Some(TraceError::Damaged { offset, .. }) = error else { panic!("{error:?}") };
    assert_eq!(offset, chunk.offset);
    assert_eq!(found.iter().map(|b| b.records.len()).sum::<usize>() as u64, chunk.first_seq.0);
    // A reader that goes on finds the next chunk, and the spans notice the gap.
    let mut reader = open(&bytes).unwrap();
    let mut batch = Batch::default();
    let mut errors = 0;
    let mut records = 0;
    loop {
        match reader.next_batch(&mut batch) {
            Ok(true) => records += batch.records.len(),
            Ok(false) => break,
            Err(_) => errors += 1,
        }
    }
    assert_eq!((errors, records), (1, LONG - chunk.records as usize));
}

#[test]
fn other_files_are_refused() {
    assert!(matches!(open(b"").err(), Some(TraceError::NotATrace { .. })));
    assert!(matches!(
        open(b"\x7fELF and so on, for a while").err(),
        Some(TraceError::NotATrace { .. })
    ));
    let mut bytes = write(&[]);
    assert!(read(&bytes).0.is_empty());
    bytes[8] = 9;
    assert!(matches!(open(&bytes).err(), Some(TraceError::Version { found: 9, .. })));
    bytes[8] = 1;
    let error = open(&bytes).err().unwrap().to_string();
    assert_eq!(error, "test: trace version 1 at offset 8, this build reads version 4");
}

#[test]
fn a_newer_trace_still_says_what_it_is_of() {
    let mut bytes = write(&synthetic::batches(&[0; 100], 4));
    let header = 16 + METADATA.len();
    bytes[8] = 7;
    let checksum = crc32fast::hash(&bytes[..header]);
    bytes[header..header + 4].copy_from_slice(&checksum.to_le_bytes());
    let reader = open(&bytes).unwrap();
    assert_eq!(reader.metadata(), METADATA);
    assert_eq!(reader.end(), TraceEnd::Newer { version: 7 });
    let (found, error) = read(&bytes);
    assert!(found.is_empty());
    assert!(matches!(error, Some(TraceError::Version { found: 7, .. })));
}

#[test]
fn cycles_that_overflow_are_refused_and_no_others() {
    let record = CommitRecord::from_packed(InstId(0), 5, 0, 0);
    // By its events; by its record; and as much as fits, though records as long as any would not.
    for (start_cycle, idle, fits) in [
        (0, vec![u64::MAX / 2 + 1; 2], false),
        (u64::MAX - 9, vec![5], false),
        (u64::MAX - 9, vec![4], true),
    ] {
        let event = |cycles| (0, Event::Idle { cycles });
        let batch = Batch {
            start_cycle,
            records: vec![record],
            events: idle.into_iter().map(event).collect(),
            ..Batch::default()
        };
        let mut bytes = Vec::new();
        let mut writer = TraceWriter::new(&mut bytes, "test".into(), METADATA).unwrap();
        match writer.batch(&batch) {
            Ok(()) => assert!(fits, "{batch:?}"),
            Err(error) => {
                assert!(!fits && error.to_string().contains("overflow"), "{error}");
                continue;
            }
        }
        let summary = writer.finish().unwrap();
        assert_eq!(summary.records, 1);
        assert_eq!(read(&bytes).0, [batch]);
    }
}

#[test]
fn stages_for_some_records_only_are_refused() {
    let mut batch = synthetic::batches(&[0; 100], 4).remove(0);
    batch.stages = vec![Stages::default(); 3];
    let mut writer = TraceWriter::new(Vec::new(), "test".into(), METADATA).unwrap();
    let error = writer.batch(&batch).unwrap_err();
    assert!(matches!(error, TraceError::Unwritable { .. }), "{error}");
}

#[test]
fn seeking_brings_the_context_along() {
    struct Nothing;
    impl SpanSink for Nothing {
        fn span(&mut self, _: &crate::Span<'_>) {}
    }
    let (batches, bytes) = long();
    let mut reader = open(&bytes).unwrap();
    let chunk = *reader.chunks().last().unwrap();
    reader.seek_cycle(HartId(0), chunk.end_cycle).unwrap();
    let mut batch = Batch::default();
    assert!(reader.next_batch(&mut batch).unwrap());
    assert_eq!((batch.first_seq, batch.start_cycle), (chunk.first_seq, chunk.start_cycle));
    SpanBuilder::new().batch(&batch, &mut Nothing).unwrap();
    let switches = |batches: &[Batch]| {
        let events = batches.iter().flat_map(|batch| &batch.events);
        events.filter(|(_, event)| matches!(event, Event::SideBand { .. })).count()
    };
    let until = batches.iter().position(|b| b.first_seq == chunk.first_seq).unwrap();
    assert_eq!(switches(&[batch]), switches(&batches[..=until]));

    reader.seek_seq(HartId(0), Seq(0)).unwrap();
    let mut first = Batch::default();
    assert!(reader.next_batch(&mut first).unwrap());
    assert!(first == batches[0]);
    assert!(matches!(reader.seek_cycle(HartId(1), 5), Err(TraceError::OutOfRange { hart: 1, .. })));
    assert!(reader.seek_seq(HartId(0), Seq(LONG as u64)).is_err());
}

/// Accepts a number of bytes, and then is full.
struct FullDisk {
    written: Vec<u8>,
    room: usize,
}

impl Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = self.room - self.written.len();
        if room == 0 {
            return Err(ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(room);
        self.written.extend(&bytes[..taken]);
        Ok(taken)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A trace's second chunk, and a disk with room for a part of it.
fn full_within_the_second_chunk(bytes: &[u8]) -> (ChunkInfo, FullDisk) {
    let second = open(bytes).unwrap().chunks()[1];
    let disk = FullDisk { written: Vec::new(), room: second.offset as usize + 77 };
    (second, disk)
}

#[test]
fn a_full_disk_is_an_error_and_leaves_what_fitted() {
    let (batches, bytes) = long();
    let (second, mut disk) = full_within_the_second_chunk(&bytes);
    let mut writer = TraceWriter::new(&mut disk, "full".into(), METADATA).unwrap();
    let error = batches.iter().find_map(|batch| writer.batch(batch).err()).unwrap();
    assert!(matches!(error, TraceError::Write { offset, .. } if offset == second.offset));
    assert!(error.to_string().starts_with("full: cannot write at offset"));
    assert!(writer.batch(&batches[0]).is_ok());
    writer.finish().unwrap();
    let (found, error) = read(&disk.written);
    assert!(error.is_none());
    assert_eq!(found.iter().map(|b| b.records.len() as u64).sum::<u64>(), second.first_seq.0);
}

#[test]
fn compression_on_another_thread_changes_no_byte() {
    let (batches, bytes) = long();
    let mut written = Vec::new();
    let mut writer = TraceWriter::new(&mut written, "test".into(), METADATA).unwrap();
    let compression = writer.compression();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let compress = scope.spawn(|| {
            let mut steps = 0;
            while !over.load(Relaxed) {
                steps += u32::from(compression.step());
            }
            steps
        });
        for batch in &batches {
            writer.batch(batch).unwrap();
            // Some of it is left to the writer.
            std::thread::yield_now();
        }
        over.store(true, Relaxed);
        let mut steps = compress.join().unwrap();
        // If it had no time for any, the last full chunk still waits.
        while compression.step() {
            steps += 1;
        }
        assert!(steps > 0);
    });
    writer.finish().unwrap();
    drop(compression);
    assert!(written == bytes);
}

#[test]
fn the_writer_tells_what_went_wrong_in_compression() {
    let (batches, bytes) = long();
    let (second, mut disk) = full_within_the_second_chunk(&bytes);
    let mut writer = TraceWriter::new(&mut disk, "full".into(), METADATA).unwrap();
    let compression = writer.compression();
    let error = batches
        .iter()
        .find_map(|batch| {
            let result = writer.batch(batch);
            while compression.step() {}
            result.err()
        })
        .unwrap();
    assert!(matches!(error, TraceError::Write { offset, .. } if offset == second.offset));
    assert!(!compression.step());
    writer.finish().unwrap();
    drop(compression);
    assert_eq!(disk.written, bytes[..second.offset as usize + 77]);
}

#[test]
fn a_writer_that_is_dropped_leaves_a_cut_trace() {
    let batches = synthetic::batches(&[0; 100], 4);
    let path = tempfile::tempdir().unwrap();
    let path = path.path().join("run.trace");
    let mut writer = TraceWriter::create(&path, METADATA).unwrap();
    writer.batch(&batches[0]).unwrap();
    drop(writer);
    let mut reader = TraceReader::open(&path).unwrap();
    assert!(matches!(reader.end(), TraceEnd::Cut { .. }));
    let mut batch = Batch::default();
    assert!(reader.next_batch(&mut batch).unwrap());
    assert_eq!(batch, batches[0]);
    assert!(!reader.next_batch(&mut batch).unwrap());
}

#[test]
fn harts_have_chunks_of_their_own() {
    let zero = synthetic::batches(&[0; 50], 4);
    let mut one = synthetic::batches(&[7; 50], 2);
    one.iter_mut().for_each(|batch| batch.hart = HartId(1));
    let both: Vec<Batch> = [zero, one].concat();
    let bytes = write(&both);
    assert_eq!(open(&bytes).unwrap().chunks().len(), 2);
    assert_eq!(read(&bytes).0, both);
}

#[test]
fn a_dispatch_delta_beyond_32_bits_is_not_taken_for_a_small_one() {
    const FIRST_OF_ROW: u32 = 1 << 3;
    let records = [(1, 9, 0), (u32::MAX, 0, FIRST_OF_ROW)]
        .map(|(delta, lead, flags)| CommitRecord::from_packed(InstId(0), delta, lead, flags));
    let batch = Batch { records: records.into(), ..Batch::default() };
    let (found, error) = read(&write(std::slice::from_ref(&batch)));
    assert!(error.is_none());
    assert_eq!(found, [batch]);
}

fn any_record() -> impl Strategy<Value = CommitRecord> {
    let small = prop_oneof![
        4 => 0..12u32,
        1 => any::<u32>(),
        1 => (0..10u32).prop_map(|less| u32::MAX - less),
        1 => ((0..4u32), (0..12u32)).prop_map(|(decode, residence)| decode << 20 | residence),
    ];
    (small.clone(), small.clone(), small, any::<u32>()).prop_map(|(inst, delta, lead, flags)| {
        CommitRecord::from_packed(InstId(inst), delta, lead, flags)
    })
}

proptest! {
    #[test]
    fn any_stream_reads_back_equal(words in prop::collection::vec(any::<u32>(), 0..500), width in 1..=8usize) {
        let batches = synthetic::batches(&words, width);
        let bytes = write(&batches);
        let (found, error) = read(&bytes);
        prop_assert!(error.is_none());
        prop_assert_eq!(found, batches);
    }

    #[test]
    fn parts_make_the_same_file(words in prop::collection::vec(any::<u32>(), 0..500), width in 1..=8usize, part in 1..200usize) {
        let batches = synthetic::batches(&words, width);
        let mut bytes = Vec::new();
        let mut writer = TraceWriter::new(&mut bytes, "test".into(), METADATA).unwrap();
        for batch in &batches {
            let mut written = writer.begin(batch).unwrap();
            while !writer.go_on(batch, &mut written, part).unwrap() {}
        }
        writer.finish().unwrap();
        prop_assert_eq!(bytes, write(&batches));
    }

    /// The codec keeps every bit, whether or not a commit stage could have produced it.
    #[test]
    fn any_record_reads_back_equal(records in prop::collection::vec(any_record(), 0..200), first in any::<u64>(), start in 0..u64::MAX / 2) {
        let batch = Batch { records, first_seq: Seq(first), start_cycle: start, ..Batch::default() };
        let (found, error) = read(&write(std::slice::from_ref(&batch)));
        prop_assert!(error.is_none());
        prop_assert_eq!(found, vec![batch]);
    }

    #[test]
    fn any_stages_read_back_equal(
        lines in prop::collection::vec((any_record(), any::<(u32, u32, u32)>()), 0..200),
        staged in any::<[bool; 3]>(),
    ) {
        // Some batches of a chunk have them, others not.
        let (records, stages): (Vec<_>, Vec<_>) = lines
            .into_iter()
            .map(|(record, (fetch, issue, complete))| (record, Stages { fetch, issue, complete }))
            .unzip();
        let batches = staged.map(|staged| Batch {
            records: records.clone(),
            stages: if staged { stages.clone() } else { Vec::new() },
            ..Batch::default()
        });
        let (found, error) = read(&write(&batches));
        prop_assert!(error.is_none());
        prop_assert_eq!(found, batches.to_vec());
    }

    #[test]
    fn hostile_bytes_never_panic(
        words in prop::collection::vec(any::<u32>(), 1..300),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = write(&synthetic::batches(&words, 4));
        for (index, value) in &flips {
            let at = index.index(bytes.len());
            bytes[at] = *value;
        }
        read(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        read(&bytes);
    }

    /// Checksums hide the parsers from random damage; this reaches them.
    #[test]
    fn hostile_columns_never_panic(columns in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 12), batches in 0..4u32) {
        let mut compressor = chunk::Compressor::new().unwrap();
        let mut header = chunk::ChunkHeader { batches, ..Default::default() };
        let mut payload = Vec::new();
        for (column, sizes) in columns.iter().zip(&mut header.columns) {
            let before = payload.len();
            assert!(compressor.piece(column, &mut 0, &mut payload).unwrap());
            *sizes = (column.len() as u32, (payload.len() - before) as u32);
        }
        let mut decoder = chunk::ChunkDecoder::new();
        decoder.start(&header, &payload, 12).unwrap();
        let mut batch = Batch::default();
        while !decoder.is_empty() && decoder.next(&mut batch, false).is_ok() {}
    }
}
