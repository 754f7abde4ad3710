use std::io::Write;
use std::sync::{Arc, Mutex};

use commit_trace::Event;
use isa::{
    DecodedInst, DmaLines, Exception, Executed, InstClass, MemAccess, MemKind, Operand, PageWalk,
    PathSegment, Privilege, Run, StaticId, StaticInst, Step, TransferKind, Trap,
};
use timing::{CoreCall, CoreTap};

use crate::codec::{Codec, RunBuffers};
use crate::columns::{Column, ReadColumns};
use crate::{UnitReader, UnitWriter, UnitsError};

/// A file in memory, to be read when it was written.
#[derive(Clone, Default)]
struct File(Arc<Mutex<Vec<u8>>>);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// `addi`, `ld`, `sd`, `div`, `beq`, `c.nop`, `csrr`, `amoadd.d`, and an illegal one, at one place after the other.
const CODE: [u32; 9] = [
    0x0010_0093,
    0x0000_b083,
    0x0010_b023,
    0x0220_c0b3,
    0x0020_8463,
    0x0001,
    0xc000_20f3,
    0x0020_b0af,
    0,
];

fn static_inst(id: u32) -> StaticInst {
    let raw = CODE[id as usize % CODE.len()];
    let inst = match raw {
        0 => DecodedInst::illegal(0),
        raw => isa::decode(raw),
    };
    let pc = 0x1_0000 + u64::from(id) * 4;
    StaticInst { id: StaticId(id), space: id % 3, pc, inst, privilege: Privilege::User }
}

/// Calls in words. The path is in one piece, instruction by instruction, before the call that ends the rest.
#[derive(Default)]
struct Words {
    calls: Vec<String>,
    path: Vec<PathInstruction>,
}

/// An instruction of a path, as words show it.
#[derive(Debug)]
#[allow(dead_code, reason = "shown as text alone")]
struct PathInstruction {
    pc: u64,
    len: u8,
    transfer: Option<(TransferKind, u64)>,
    taken: bool,
}

impl Words {
    fn add(&mut self, call: &CoreCall<'_>) {
        match call {
            CoreCall::Path(segments) => {
                segments.iter().for_each(|segment| self.follow(segment));
                return;
            }
            CoreCall::Wake { .. } | CoreCall::Rest { .. } => self.end_path(),
            _ => {}
        }
        self.calls.push(without_rest(call));
    }

    fn follow(&mut self, segment: &PathSegment) {
        let count = segment.lengths.count();
        for number in 0..count {
            let pc = segment.start() + segment.lengths.bytes(number);
            let kind = segment.kind().filter(|_| number + 1 == count);
            let transfer = kind.map(|kind| (kind, segment.target()));
            let taken = transfer.is_some() && segment.taken();
            let len = segment.lengths.len_at(number);
            self.path.push(PathInstruction { pc, len, transfer, taken });
        }
    }

    fn end_path(&mut self) {
        if !self.path.is_empty() {
            self.calls.push(format!("{:x?}", std::mem::take(&mut self.path)));
        }
    }
}

/// Writes what some random calls say, and returns the file and the calls in words. A path is told in pieces, which are drawn apart from the rest.
fn written(calls: usize, seed: u64, pieces: u64) -> (Vec<u8>, Vec<String>) {
    let file = File::default();
    let metadata = "{\"of\": \"a test\"}";
    let (mut writer, handle) = UnitWriter::new(Box::new(file.clone()), metadata, 1, || ()).unwrap();
    let (mut random, mut pieces) = (Random(seed), Random(pieces));
    let mut words = Words::default();
    let (mut learns, mut path, mut told) = (false, Vec::new(), 0);
    let mut tell = |call: CoreCall<'_>| {
        words.add(&call);
        writer.call(call);
    };
    const STATIC: u32 = 900;
    for id in 0..STATIC {
        tell(CoreCall::Define(static_inst(id)));
    }
    for _ in 0..calls {
        let va = 0x4000_0000 + random.below(1 << 20) * 8;
        let pa = va + 0x4000_0000 * random.below(2);
        let privilege = [Privilege::User, Privilege::Supervisor][random.below(2) as usize];
        let translated = random.below(8) != 0;
        match random.below(16) {
            0..4 => {
                let first = random.below(u64::from(STATIC - 8)) as u32;
                let insts: Vec<StaticInst> = (first..first + 8)
                    .map(static_inst)
                    .filter(|inst| !inst.inst.class.serialises())
                    .filter(|inst| inst.pc >> 12 == static_inst(first).pc >> 12)
                    .collect();
                let step = |inst: &StaticInst| {
                    Step::new(inst.id, (inst.pc & 0xfff) as u16, inst.inst.class, inst.inst.len)
                };
                let steps: Vec<Step> = insts.iter().map(step).collect();
                let accesses: Vec<MemAccess> = { insts.iter() }
                    .filter(|inst| inst.inst.class.accesses_memory())
                    .map(|_| MemAccess::new(MemKind::Load, va, pa, 8, false))
                    .collect();
                let divides = |inst: &&StaticInst| inst.inst.class == InstClass::IntDiv;
                let operand = Operand { dividend_bits: random.below(65) as u8, divisor_bits: 3 };
                let operands = vec![operand; insts.iter().filter(divides).count()];
                let Some(inst) = insts.first() else { continue };
                tell(CoreCall::Run(Run {
                    steps: &steps,
                    accesses: &accesses,
                    operands: &operands,
                    next_pc: 0x1_0000 + random.below(64) * 4,
                    vpage: inst.pc & !0xfff,
                    page: 0x8000_0000 + (random.below(4) << 12),
                    privilege,
                    translated,
                }));
            }
            4..6 => {
                let kind = [MemKind::Load, MemKind::Store][random.below(2) as usize];
                // Warming knows lines.
                let access = MemAccess::new(kind, va & !63, pa & !63, 1, false);
                tell(CoreCall::WarmAccess { access, translated });
            }
            6 => tell(CoreCall::WarmFetch { pc: va & !63, pa: pa & !63, translated }),
            7 | 8 if learns => {
                let mut pc = 0x1_0000;
                for _ in 0..random.below(6000) {
                    let kind = match random.below(8) {
                        0 => Some(TransferKind::DirectCall),
                        1 => Some(TransferKind::Return),
                        2 => Some(TransferKind::Branch),
                        _ => None,
                    };
                    let len = [2, 4][random.below(2) as usize];
                    let taken = kind == Some(TransferKind::Branch) && random.below(2) != 0;
                    let target = 0x1_0000 + random.below(40) * 16;
                    path.push(PathSegment::one(kind, pc, len, taken, target));
                    let falls = kind.is_none() || kind == Some(TransferKind::Branch) && !taken;
                    pc = if falls { pc + u64::from(len) } else { target };
                }
                // The hart's translated code has longer segments, and tells of them at any time.
                if pieces.below(2) == 0 {
                    let all = joined(&path[told..], || pieces.below(3) == 0);
                    told = path.len();
                    tell(CoreCall::Path(&all));
                }
            }
            7 | 8 => {}
            9 | 10 => {
                let StaticInst { id, inst, pc, .. } = static_inst(random.below(900) as u32);
                let fetch_pa = 0x8000_0000 | pc & 0xfff;
                tell(CoreCall::Fetch { id, inst, pc, pa: fetch_pa, translated });
                if random.below(4) == 0 {
                    tell(CoreCall::Interrupt);
                    continue;
                }
                let mem = match random.below(3) {
                    0 => MemAccess::default(),
                    _ => MemAccess::new(MemKind::Amo, va, pa, 4, random.below(2) != 0),
                };
                let trap = (random.below(3) == 0)
                    .then_some(Trap { cause: Exception::LoadPageFault, tval: va });
                tell(CoreCall::Retire(Executed {
                    id,
                    inst,
                    pc,
                    fetch_pa,
                    next_pc: pc + 4 * random.below(3),
                    mem,
                    operand: Operand { dividend_bits: 0, divisor_bits: random.below(3) as u8 },
                    privilege,
                    trap,
                    translated,
                }));
            }
            11 => {
                let levels = random.below(6) as u8;
                let mut walk = PageWalk { levels, page_bits: 12, ..PageWalk::default() };
                walk.pte.iter_mut().for_each(|pte| *pte = random.below(1 << 30));
                // Entries beyond the levels are not read.
                walk.pte[levels as usize..].fill(0);
                tell(CoreCall::Translated { va: va & !0xfff, walk });
            }
            12 => tell(CoreCall::IdleUntil(random.below(1 << 40))),
            13 => tell(CoreCall::Note { kind: random.below(256) as u8, bytes: b"some bytes" }),
            14 => tell(CoreCall::Privilege(privilege)),
            _ => match random.below(8) {
                switch @ 0..2 => {
                    tell(CoreCall::Path(&joined(&path[told..], || pieces.below(3) == 0)));
                    (path, told, learns) = (Vec::new(), 0, switch == 1 && translated);
                    match switch {
                        0 => tell(CoreCall::Wake { cycle: random.below(1 << 40) }),
                        _ => tell(CoreCall::Rest { learns }),
                    }
                }
                2 => tell(CoreCall::Region(Event::Region(translated))),
                3 => tell(CoreCall::Region(Event::RegionAnew)),
                4 => tell(CoreCall::FenceI),
                5 => tell(CoreCall::DmaWrite(DmaLines {
                    first: random.below(1 << 40),
                    count: 1 + random.below(u64::from(DmaLines::MAX_COUNT)) as u32,
                })),
                _ => tell(CoreCall::FlushTlb),
            },
        }
    }
    tell(CoreCall::Path(&joined(&path[told..], || pieces.below(3) == 0)));
    words.end_path();
    drop(writer);
    let bytes = handle.finish().unwrap();
    let content = file.0.lock().unwrap().clone();
    assert_eq!(bytes, content.len() as u64);
    (content, words.calls)
}

/// Returns segments of which some are joined to the one before.
fn joined(segments: &[PathSegment], mut splits: impl FnMut() -> bool) -> Vec<PathSegment> {
    let mut all: Vec<PathSegment> = Vec::new();
    for segment in segments {
        let rest = match all.last_mut().filter(|_| !splits()) {
            Some(last) => last.join(*segment),
            None => Some(*segment),
        };
        all.extend(rest);
    }
    all
}

/// Reads a file to its end; returns how many calls it has.
fn read(file: &[u8]) -> Result<usize, UnitsError> {
    let mut reader = UnitReader::new(file)?;
    let mut calls = 0;
    while reader.next_call()?.is_some() {
        calls += 1;
    }
    Ok(calls)
}

/// Entries of a walk that are not read stay what they were before, and no two walks are equal then.
fn without_rest(call: &CoreCall<'_>) -> String {
    match call {
        CoreCall::Translated { va, walk } => {
            let mut walk = *walk;
            walk.pte[walk.levels as usize..].fill(0);
            format!("{:?}", CoreCall::Translated { va: *va, walk })
        }
        call => format!("{call:?}"),
    }
}

#[test]
fn what_is_written_is_read() {
    // The last ones have several chunks.
    for (calls, seed) in [(0, 1), (10, 2), (1000, 3), (20_000, 4)] {
        let (file, expected) = written(calls, seed, 1);
        let mut reader = UnitReader::new(&file[..]).unwrap();
        assert_eq!(reader.metadata(), "{\"of\": \"a test\"}");
        let mut found = Words::default();
        while let Some(call) = reader.next_call().unwrap() {
            found.add(&call);
        }
        found.end_path();
        assert!(reader.next_call().unwrap().is_none());
        for (n, (found, expected)) in found.calls.iter().zip(&expected).enumerate() {
            assert!(found == expected, "call {n} of seed {seed}:\n{found}\n{expected}");
        }
        assert_eq!(found.calls.len(), expected.len());
        assert!(calls < 1000 || expected.iter().any(|words| words.starts_with("[PathInstruction")));
    }
}

#[test]
fn it_does_not_matter_how_a_path_is_told() {
    let (file, expected) = written(20_000, 4, 1);
    for pieces in 2..5 {
        let (other, words) = written(20_000, 4, pieces);
        assert!(words == expected);
        assert!(other == file, "{} and {} bytes", file.len(), other.len());
    }
}

#[test]
fn a_file_that_is_cut_or_something_else_is_told() {
    let (file, _) = written(50, 5, 1);
    for len in (0..file.len()).filter(|len| *len < 80 || len % 61 == 0) {
        match read(&file[..len]) {
            Err(UnitsError::Cut) => assert!(len >= 8),
            Err(UnitsError::NoUnits) => assert!(len < 8),
            other => panic!("{len} of {} bytes: {other:?}", file.len()),
        }
    }
    assert!(read(&file).is_ok());
    assert!(read(&[&file[..], &[0]].concat()).is_err(), "something follows");
    let mut newer = file.clone();
    newer[8] = 99;
    assert!(read(&newer).unwrap_err().to_string().contains("found format 99"));
    assert!(matches!(read(b"TIPTRACE and more"), Err(UnitsError::NoUnits)));
    for at in (16..file.len()).filter(|at| *at < 80 || at % 61 == 0) {
        let mut damaged = file.clone();
        damaged[at] ^= 0x10;
        assert!(read(&damaged).is_err(), "byte {at}");
    }
}

#[test]
fn no_columns_do_any_harm() {
    let mut random = Random(6);
    for seed in 0..2000 {
        // Small numbers are calls of all kinds.
        let most = if seed % 2 == 0 { 40 } else { 256 };
        let lengths = [(); Column::COUNT].map(|()| random.below(200) as usize);
        let bytes = (0..lengths.iter().sum()).map(|_| random.below(most) as u8).collect();
        let mut columns = ReadColumns::new(bytes, lengths).unwrap();
        let (mut codec, mut buffers) = (Codec::new(), RunBuffers::default());
        _ = codec.begin_part(&mut columns);
        while !codec.is_done(&columns) && codec.read(&mut columns, &mut buffers).is_ok() {}
    }
}

#[test]
fn a_full_disk_is_told() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (mut writer, handle) = UnitWriter::new(Box::new(Full(100)), "", 1, || ()).unwrap();
    let mut random = Random(7);
    while !handle.failed() {
        let access = MemAccess::new(MemKind::Load, random.below(1 << 40), 0, 1, false);
        writer.call(CoreCall::WarmAccess { access, translated: true });
    }
    drop(writer);
    assert!(matches!(handle.finish(), Err(UnitsError::Io(_))));
}
