//! Host time of the core per simulated instruction, on synthetic instruction streams.
//!
//! `cargo run --release -p timing --example speed [-- PRESET [STREAM [INSTRUCTIONS]]]`; the time is this process's on
//! the CPU (Linux), and includes making the stream. Profile it with `perf record` or callgrind.

use commit_trace::{Commit, CommitSink};
use isa::{
    DecodedInst, Executed, InstClass as C, MemAccess, MemKind, Op, Operand, PageWalk, Privilege,
    StaticId, StaticInst, TimingModel,
};
use timing::{Core, Preset};

const TEXT: u64 = 0xffff_ffff_8020_0000;

/// Keeps what a profiler would compare.
#[derive(Default)]
struct Count {
    records: u64,
    last: u64,
}

impl CommitSink for Count {
    fn commit(&mut self, commit: &Commit) {
        self.records += 1;
        self.last = commit.commit;
    }
}

/// A walk in three levels of tables with pages of 4 KiB.
fn walk(va: u64) -> PageWalk {
    let table = |level: u64| {
        0x9000_0000 + level * 0x10_0000 + (va >> (12 + 9 * (2 - level)) << 3) % 0x10_0000
    };
    PageWalk { pte: [table(0), table(1), table(2), 0, 0], levels: 3, page_bits: 12 }
}

/// Where data lies.
const DATA: u64 = 0xffff_ffd8_0000_0000;

/// How a stream is made: bytes of code and data, and per mille of branches that go either way at random.
struct Stream {
    name: &'static str,
    code: u64,
    data: u64,
    random: u64,
}

const STREAMS: [Stream; 5] = [
    Stream { name: "loop", code: 2 << 10, data: 16 << 10, random: 0 },
    Stream { name: "typical", code: 24 << 10, data: 24 << 10, random: 30 },
    Stream { name: "branchy", code: 24 << 10, data: 24 << 10, random: 300 },
    Stream { name: "big-code", code: 256 << 10, data: 64 << 10, random: 30 },
    Stream { name: "memory", code: 8 << 10, data: 32 << 20, random: 30 },
];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 20) % n
    }
}

/// A static instruction of the stream.
struct Inst {
    decoded: DecodedInst,
    /// Taken target of a branch, index.
    target: usize,
    /// Per mille of executions in which a branch is taken; 1000 or 0: always the same.
    taken: u64,
}

/// Code with a mix of classes as compiled integer code has it: basic blocks of six or so instructions, 22 %
/// loads, 10 % stores, a third compressed.
fn generate(stream: &Stream, random: &mut Random) -> Vec<Inst> {
    let count = (stream.code / 3) as usize;
    let register = |r: &mut Random| (5 + r.below(20)) as u8;
    let mut code = Vec::with_capacity(count);
    for i in 0..count {
        let class = match random.below(100) {
            0..22 => C::Load,
            22..32 => C::Store,
            32..48 => C::Branch,
            48..50 => C::IntMul,
            50..52 => C::FpArith,
            _ => C::IntAlu,
        };
        let fp = if class == C::FpArith { 32 } else { 0 };
        let writes = !matches!(class, C::Store | C::Branch);
        let reads2 = matches!(class, C::Store | C::Branch | C::FpArith) || random.below(2) == 0;
        let decoded = DecodedInst {
            op: Op::Illegal,
            class,
            len: if random.below(3) == 0 { 2 } else { 4 },
            rd: if writes { register(random) + fp } else { 0 },
            rs1: register(random) + fp,
            rs2: if reads2 { register(random) + fp } else { 0 },
            rs3: 0,
            imm: 0,
            raw: 0x33,
        };
        let ahead = 2 + random.below(6) as usize;
        let taken = match random.below(1000) {
            n if n < stream.random => 500,
            _ if random.below(2) == 0 => 1000,
            _ => 0,
        };
        code.push(Inst { decoded, target: (i + ahead).min(count - 1), taken });
    }
    code[count - 1] = Inst {
        decoded: DecodedInst { class: C::Jal, len: 4, rd: 0, rs1: 0, rs2: 0, ..code[0].decoded },
        target: 0,
        taken: 1000,
    };
    code
}

/// Seconds on the CPU so far.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or_default() / 1e9
}

fn run(preset: &Preset, stream: &Stream, instructions: u64) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut code = generate(stream, &mut random);
    let mut pcs = vec![TEXT];
    for inst in &code {
        pcs.push(pcs[pcs.len() - 1] + u64::from(inst.decoded.len));
    }
    for i in 0..code.len() {
        code[i].decoded.imm = pcs[code[i].target].wrapping_sub(pcs[i]) as i32;
    }
    let mut core = Core::new(preset, Count::default());
    for (i, inst) in code.iter().enumerate() {
        core.define(&StaticInst {
            id: StaticId(i as u32),
            space: 1,
            pc: pcs[i],
            inst: inst.decoded,
            privilege: Privilege::Supervisor,
        });
    }
    let data = (0..=stream.data).step_by(4096).map(|offset| DATA + offset);
    for va in pcs.iter().copied().chain(data) {
        core.translated(va, &walk(va));
    }
    let mut at = 0;
    // Addresses: mostly near one of a few moving pointers.
    let mut pointers = [0u64; 8];
    // The fastest of ten parts: the host may be busy with other things.
    let part = (instructions / 10).max(1);
    let (mut fastest, mut start) = (f64::MAX, cpu_seconds());
    for n in 0..instructions {
        if n % part == part - 1 {
            let now = cpu_seconds();
            fastest = fastest.min(now - start);
            start = now;
        }
        let (inst, pc) = (&code[at], pcs[at]);
        let id = StaticId(at as u32);
        let pa = pc & 0x3fff_ffff | 0x8000_0000;
        core.fetch(id, &inst.decoded, pc, pa, true, 0);
        let mut next = at + 1;
        let mut mem = MemAccess::default();
        match inst.decoded.class {
            C::Load | C::Store => {
                let p = &mut pointers[at % 8];
                *p = if n % 16 == 0 { random.below(stream.data) } else { (*p + 8) % stream.data };
                let va = (DATA + *p) & !7;
                let kind =
                    if inst.decoded.class == C::Load { MemKind::Load } else { MemKind::Store };
                let pa = va & 0x7fff_ffff | 0x8000_0000;
                mem = MemAccess::new(kind, va, pa, 8, false);
            }
            C::Branch | C::Jal => {
                let taken = match inst.taken {
                    0 => false,
                    1000 => true,
                    p => random.below(1000) < p,
                };
                if taken {
                    next = inst.target;
                }
            }
            _ => {}
        }
        core.retire(&Executed {
            id,
            inst: inst.decoded,
            pc,
            fetch_pa: pa,
            next_pc: pcs[next],
            mem,
            operand: Operand::default(),
            privilege: Privilege::Supervisor,
            trap: None,
            translated: true,
        });
        at = next;
    }
    let stats = core.stats();
    let ns = fastest * 1e9 / part as f64;
    println!(
        "{:9} {:5.1} ns/inst  {:5.1} MIPS   IPC {:.2}  mispredicts/k {:.1}  l1d misses/k {:.1}  l1i misses/k {:.1}  ({} records)",
        stream.name,
        ns,
        1e3 / ns,
        stats.instructions as f64 / stats.cycles as f64,
        stats.branch_misses as f64 * 1e3 / stats.instructions as f64,
        stats.l1d_misses as f64 * 1e3 / stats.instructions as f64,
        stats.l1i_misses as f64 * 1e3 / stats.instructions as f64,
        core.sink().records,
    );
}

fn main() {
    let mut args = std::env::args().skip(1);
    let preset = args.next().unwrap_or_else(|| "boom-4w".to_owned());
    let only = args.next();
    let instructions = args.next().and_then(|n| n.parse().ok()).unwrap_or(20_000_000);
    let preset = match Preset::load(&preset) {
        Ok(preset) => preset,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    };
    for stream in STREAMS.iter().filter(|s| only.as_deref().is_none_or(|o| o == s.name)) {
        run(&preset, stream, instructions);
    }
}
