//! Text to instructions: labels, `.rept`, `.skip`, and the mnemonics that the kernels use.

use std::collections::HashMap;

use isa::{InstClass as C, Op};

use super::{Action, Inst, TEXT, decoded};

/// A statement with its operands, before labels are known.
struct Line {
    mnemonic: String,
    operands: Vec<String>,
}

/// Assembles; panics on what it does not know, which a test then shows.
pub(super) fn assemble(source: &str) -> (Vec<Inst>, HashMap<String, u64>) {
    let mut pieces = Vec::new();
    for line in source.lines() {
        let line = line.split("//").next().unwrap_or_default();
        if line.starts_with('#') {
            continue;
        }
        pieces.extend(line.split(';').map(str::trim).filter(|p| !p.is_empty()).map(String::from));
    }
    let pieces = repeat(&pieces);
    let (mut lines, mut labels, mut local) = (Vec::new(), HashMap::new(), Vec::new());
    let mut pc = TEXT;
    for piece in &pieces {
        let mut rest = piece.as_str();
        if let Some((name, after)) = rest.strip_prefix("FN(").and_then(|r| r.split_once(')')) {
            pc = pc.next_multiple_of(64);
            labels.insert(name.to_owned(), pc);
            rest = after.trim();
        }
        while let Some((label, after)) = rest.split_once(':').filter(|(l, _)| !l.contains(' ')) {
            if label.parse::<u32>().is_ok() {
                local.push((label.to_owned(), pc));
            } else {
                labels.insert(label.to_owned(), pc);
            }
            rest = after.trim();
        }
        if rest.starts_with(".align") {
            pc = pc.next_multiple_of(64);
        }
        if let Some(bytes) = rest.strip_prefix(".skip ") {
            pc += bytes.trim().parse::<u64>().expect(".skip bytes");
        }
        if rest.is_empty() || rest.starts_with('.') {
            continue;
        }
        let (mnemonic, operands) = rest.split_once(' ').unwrap_or((rest, ""));
        let operands = operands.split(',').map(|o| o.trim().to_owned()).filter(|o| !o.is_empty());
        for line in expand(mnemonic, operands.collect()) {
            lines.push((pc, line));
            pc += 4;
        }
    }
    let find = |name: &str, pc: u64| -> u64 {
        if let Some(n) = name.strip_suffix('f').filter(|n| n.parse::<u32>().is_ok()) {
            return local.iter().find(|(l, at)| l == n && *at > pc).expect(name).1;
        }
        if let Some(n) = name.strip_suffix('b').filter(|n| n.parse::<u32>().is_ok()) {
            return local.iter().rev().find(|(l, at)| l == n && *at <= pc).expect(name).1;
        }
        *labels.get(name).unwrap_or_else(|| panic!("no label {name}"))
    };
    let insts = lines.iter().map(|(pc, line)| inst(*pc, line, &find)).collect();
    (insts, labels)
}

fn repeat(pieces: &[String]) -> Vec<String> {
    let (mut out, mut i) = (Vec::new(), 0);
    while i < pieces.len() {
        // A label may stand before `.rept`.
        let (before, rest) = match pieces[i].find(".rept") {
            Some(at) => pieces[i].split_at(at),
            None => {
                out.push(pieces[i].clone());
                i += 1;
                continue;
            }
        };
        if !before.trim().is_empty() {
            out.push(before.trim().to_owned());
        }
        let count: usize = rest[5..].trim().parse().expect(".rept count");
        let (mut depth, mut end) = (1, i);
        while depth > 0 {
            end += 1;
            depth += usize::from(pieces[end].contains(".rept"));
            depth -= usize::from(pieces[end].starts_with(".endr"));
        }
        let body = repeat(&pieces[i + 1..end]);
        for _ in 0..count {
            out.extend(body.iter().cloned());
        }
        i = end + 1;
    }
    out
}

/// Pseudo-instructions.
fn expand(mnemonic: &str, operands: Vec<String>) -> Vec<Line> {
    let line = |mnemonic: &str, operands: &[&str]| Line {
        mnemonic: mnemonic.to_owned(),
        operands: operands.iter().map(|&o| o.to_owned()).collect(),
    };
    match mnemonic {
        "nop" => vec![line("addi", &["zero", "zero", "0"])],
        "mv" => vec![line("addi", &[&operands[0], &operands[1], "0"])],
        "li" => {
            let value = number(&operands[1]);
            let low = value << 52 >> 52;
            if low == value {
                return vec![line("addi", &[&operands[0], "zero", &operands[1]])];
            }
            let high = (value - low).to_string();
            let low = low.to_string();
            vec![
                line("lui", &[&operands[0], &high]),
                line("addi", &[&operands[0], &operands[0], &low]),
            ]
        }
        _ => vec![Line { mnemonic: mnemonic.to_owned(), operands }],
    }
}

fn number(text: &str) -> i64 {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |d| (-1, d));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    sign * value.unwrap_or_else(|_| panic!("number {text}"))
}

/// A register in the unified numbering.
fn register(name: &str) -> u8 {
    const X: [&str; 32] = [
        "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4",
        "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
        "t5", "t6",
    ];
    const F: [&str; 32] = [
        "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1", "fa2",
        "fa3", "fa4", "fa5", "fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9",
        "fs10", "fs11", "ft8", "ft9", "ft10", "ft11",
    ];
    let at = |names: &[&str]| names.iter().position(|&n| n == name);
    let found = at(&X).or_else(|| at(&F).map(|i| i + 32));
    found.unwrap_or_else(|| panic!("register {name}")) as u8
}

/// `offset(base)` or `(base)`.
fn address(text: &str) -> (i64, u8) {
    let (offset, base) = text.trim_end_matches(')').split_once('(').expect(text);
    (if offset.is_empty() { 0 } else { number(offset) }, register(base))
}

fn inst(pc: u64, line: &Line, find: &dyn Fn(&str, u64) -> u64) -> Inst {
    let o = &line.operands;
    let r = |i: usize| register(&o[i]);
    let three = |action, class| (action, decoded(class, r(0), [r(1), r(2), 0], 0), 0, 0);
    let imm = |action, class| (action, decoded(class, r(0), [r(1), 0, 0], 0), number(&o[2]), 0);
    let two = |action, class, raw| (action, decoded(class, r(0), [r(1), 0, 0], raw), 0, 0);
    let branch = |if_zero| {
        let action = Action::Branch { if_zero };
        (action, decoded(C::Branch, 0, [r(0), 0, 0], 0), 0, find(&o[1], pc))
    };
    let csr = |name: &'static str, rd: u8, rs: u8| {
        (Action::Csr(name), decoded(C::Csr, rd, [rs, 0, 0], 0), 0, 0)
    };
    let lone = |action, class| (action, decoded(class, 0, [0; 3], 0), 0, 0);
    let load = |action, class| {
        let (offset, base) = address(&o[1]);
        (action, decoded(class, r(0), [base, 0, 0], 0), offset, 0)
    };
    let store = |action, class| {
        let (offset, base) = address(&o[1]);
        (action, decoded(class, 0, [base, r(0), 0], 0), offset, 0)
    };
    let (action, mut decoded, imm, target) = match line.mnemonic.as_str() {
        "addi" => imm(Action::AddI, C::IntAlu),
        "andi" => imm(Action::And, C::IntAlu),
        "slli" => imm(Action::Sll, C::IntAlu),
        "srli" => imm(Action::Srl, C::IntAlu),
        "add" => three(Action::Add, C::IntAlu),
        "sub" => three(Action::Sub, C::IntAlu),
        "xor" => three(Action::Xor, C::IntAlu),
        "lui" => (Action::Lui, decoded(C::IntAlu, r(0), [0; 3], 0), number(&o[1]), 0),
        "mul" => three(Action::Mul, C::IntMul),
        "div" => three(Action::Div, C::IntDiv),
        "fadd.d" | "fmul.d" => three(Action::Fp, C::FpArith),
        "fdiv.d" => three(Action::FpDiv, C::FpDivSqrt),
        "fsqrt.d" => two(Action::FpSqrt, C::FpDivSqrt, 0b0101101 << 25),
        "fmv.d.x" | "fcvt.d.l" => two(Action::FpFromInt, C::IntToFp, 0),
        "fmv.x.d" => two(Action::IntFromFp, C::FpToInt, 0),
        "ld" => load(Action::Load, C::Load),
        "fld" => load(Action::FpLoad, C::FpLoad),
        "sd" => store(Action::Store, C::Store),
        "fsd" => store(Action::FpStore, C::FpStore),
        "beqz" => branch(true),
        "bnez" => branch(false),
        "j" => (Action::Jump, decoded(C::Jal, 0, [0; 3], 0), 0, find(&o[0], pc)),
        "jal" => (Action::Jump, decoded(C::Jal, r(0), [0; 3], 0), 0, find(&o[1], pc)),
        "ret" => (Action::JumpReg, decoded(C::Jalr, 0, [1, 0, 0], 0), 0, 0),
        "jalr" => (Action::JumpReg, decoded(C::Jalr, r(0), [r(1), 0, 0], 0), 0, 0),
        "csrr" if o[1] == "mcycle" => csr("mcycle", r(0), 0),
        "csrr" if o[1] == "mepc" => csr("mepc", r(0), 0),
        "csrr" => csr("other", r(0), 0),
        "csrw" if o[0] == "mepc" => csr("mepc=", 0, r(1)),
        "frflags" => csr("other", r(0), 0),
        "fsflags" => csr("other", 0, r(0)),
        "fence" => lone(Action::Fence, C::Fence),
        "fence.i" => lone(Action::FenceI, C::FenceI),
        "ecall" => lone(Action::Ecall, C::Ecall),
        "mret" => lone(Action::Mret, C::Xret),
        "amoadd.d" => {
            let (_, base) = address(&o[2]);
            (Action::Amo, decoded(C::Amo, r(0), [base, r(1), 0], 0), 0, 0)
        }
        other => panic!("mnemonic {other}"),
    };
    decoded.imm = if target == 0 { imm } else { target.wrapping_sub(pc) as i64 } as i32;
    let op = Op::ALL.iter().find(|op| op.mnemonic() == line.mnemonic);
    decoded.op = op.copied().unwrap_or(Op::Illegal);
    Inst { pc, action, decoded, target }
}
