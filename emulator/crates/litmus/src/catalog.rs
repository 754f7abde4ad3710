//! The list of all tests: families of cycles with what may link the accesses of each hart, and tests that are no such cycles.

use crate::cycle::Annotation::{self, Acquire, AcquireRelease, Amo, Exclusive, Plain, Release};
use crate::cycle::Direction::{self, R, W};
use crate::cycle::{Edge, Link, Part, program};
use crate::program::{Access, AccessKind, Fence, Field, Instruction, Program};

const PO: Edge = Edge::new(Link::Order);
const ADDR: Edge = Edge::new(Link::Address);
const DATA: Edge = Edge::new(Link::Data);
const CTRL: Edge = Edge::new(Link::Control);
const RW_RW: Edge = fence(Fence::RW_RW);
const TSO: Edge = fence(Fence::TSO);
/// What is before the second access, an AMO with `rl`, is before it for all.
const PO_P_RL: Edge = Edge::annotated(Plain, Release);
/// What is after the first access, an AMO with `aq`, is after it for all.
const PO_AQ_P: Edge = Edge::annotated(Acquire, Plain);

const fn fence(fence: Fence) -> Edge {
    Edge::new(Link::Fence(fence))
}

/// Returns an edge to the same word.
const fn same_word(from: Annotation, to: Annotation) -> Edge {
    Edge { from, to, ..Edge::SAME_WORD }
}

/// What may link two accesses, by what they do; the first is plain program order.
fn links(from: Direction, to: Direction) -> Vec<Edge> {
    match (from, to) {
        (W, W) => vec![PO, RW_RW, fence(Fence::W_W), fence(Fence::RW_W), TSO, PO_P_RL],
        (R, R) => vec![PO, RW_RW, fence(Fence::R_RW), fence(Fence::R_R), TSO, ADDR, CTRL, PO_AQ_P],
        (R, W) => {
            vec![
                PO,
                RW_RW,
                fence(Fence::R_RW),
                fence(Fence::RW_W),
                TSO,
                ADDR,
                DATA,
                CTRL,
                PO_AQ_P,
                PO_P_RL,
            ]
        }
        (W, R) => {
            vec![
                PO,
                RW_RW,
                fence(Fence::W_R),
                TSO,
                Edge::annotated(Release, Acquire),
                Edge::annotated(Exclusive, Exclusive),
            ]
        }
    }
}

/// Links for the cycles of three and four harts, of which there would be too many with all.
fn few_links(from: Direction, to: Direction) -> Vec<Edge> {
    match (from, to) {
        (W, W) => vec![PO, RW_RW, PO_P_RL],
        (R, R) => vec![PO, RW_RW, ADDR, PO_AQ_P],
        (R, W) => vec![PO, RW_RW, DATA, PO_AQ_P],
        (W, R) => vec![PO, RW_RW, Edge::annotated(Release, Acquire)],
    }
}

/// Families of cycles of two harts.
const OF_TWO: [(&str, [&[Direction]; 2]); 6] = [
    ("MP", [&[W, W], &[R, R]]),
    ("SB", [&[W, R], &[W, R]]),
    ("LB", [&[R, W], &[R, W]]),
    ("S", [&[W, W], &[R, W]]),
    ("R", [&[W, W], &[W, R]]),
    ("2+2W", [&[W, W], &[W, W]]),
];

/// Families of cycles of three and four harts.
const OF_MORE: [(&str, &[&[Direction]]); 23] = [
    ("WRC", &[&[W], &[R, W], &[R, R]]),
    ("RWC", &[&[W], &[R, R], &[W, R]]),
    ("WWC", &[&[W], &[R, W], &[R, W]]),
    ("WRW+WR", &[&[W], &[R, W], &[W, R]]),
    ("WRR+2W", &[&[W], &[R, R], &[W, W]]),
    ("WRW+2W", &[&[W], &[R, W], &[W, W]]),
    ("ISA2", &[&[W, W], &[R, W], &[R, R]]),
    ("W+RWC", &[&[W, W], &[R, R], &[W, R]]),
    ("3.SB", &[&[W, R], &[W, R], &[W, R]]),
    ("3.LB", &[&[R, W], &[R, W], &[R, W]]),
    ("3.2W", &[&[W, W], &[W, W], &[W, W]]),
    ("Z6.0", &[&[W, W], &[R, W], &[W, R]]),
    ("Z6.1", &[&[W, W], &[W, W], &[R, W]]),
    ("Z6.2", &[&[W, W], &[R, W], &[R, W]]),
    ("Z6.3", &[&[W, W], &[W, W], &[R, R]]),
    ("Z6.4", &[&[W, W], &[W, R], &[W, R]]),
    ("Z6.5", &[&[W, W], &[W, W], &[W, R]]),
    ("IRIW", &[&[W], &[R, R], &[W], &[R, R]]),
    ("IRRWIW", &[&[W], &[R, R], &[W], &[R, W]]),
    ("IRWIW", &[&[W], &[R, W], &[W], &[R, W]]),
    ("4.SB", &[&[W, R], &[W, R], &[W, R], &[W, R]]),
    ("4.LB", &[&[R, W], &[R, W], &[R, W], &[R, W]]),
    ("4.2W", &[&[W, W], &[W, W], &[W, W], &[W, W]]),
];

/// Returns all tests, always in the same order and with different names.
pub fn catalog() -> Vec<Program> {
    let mut programs = Vec::new();
    for (family, harts) in OF_TWO {
        let mut links = harts.map(|d| links(d[0], d[1]));
        let is_symmetric = harts[0] == harts[1];
        if is_symmetric {
            // Names have plain program order last.
            links.iter_mut().for_each(|links| links.rotate_left(1));
        }
        for (n, first) in links[0].iter().enumerate() {
            // Harts that do the same are interchangeable.
            let skipped = if is_symmetric { n } else { 0 };
            for second in &links[1][skipped..] {
                programs.push(cycle(family, &harts, &[Some(*first), Some(*second)]));
            }
        }
    }
    for (family, harts) in OF_MORE {
        programs.extend(of_more_harts(family, harts));
    }
    programs.extend(with_longer_parts());
    programs.extend(coherence());
    programs.extend(atomics());
    programs
}

/// Returns the program of a cycle whose harts each have one access, or two with an edge between them.
fn cycle(family: &str, harts: &[&[Direction]], edges: &[Option<Edge>]) -> Program {
    let part = |(directions, edge): (&&[Direction], &Option<Edge>)| Part {
        directions: directions.to_vec(),
        edges: edge.iter().copied().collect(),
    };
    program(family, &harts.iter().zip(edges).map(part).collect::<Vec<_>>())
}

/// Returns a family's programs in which all harts have the link of one number, and those in which one hart has only program order
/// while the others have full fences.
fn of_more_harts(family: &str, harts: &[&[Direction]]) -> Vec<Program> {
    let links_of = |directions: &&[Direction]| -> Vec<Edge> {
        match directions {
            [from, to] => few_links(*from, *to),
            _ => Vec::new(),
        }
    };
    let choices: Vec<Vec<Edge>> = harts.iter().map(links_of).collect();
    let most = choices.iter().map(Vec::len).max().unwrap_or(0);
    let chosen = |number: usize| -> Vec<Option<Edge>> {
        let choose = |links: &Vec<Edge>| Some(*links.get(number).or(links.last())?);
        choices.iter().map(choose).collect()
    };
    let mut programs: Vec<Program> =
        (0..most).map(|number| cycle(family, harts, &chosen(number))).collect();
    let mut is_done: Vec<&[Direction]> = Vec::new();
    for (hart, directions) in harts.iter().enumerate() {
        if directions.len() < 2 || is_done.contains(directions) {
            continue;
        }
        is_done.push(directions);
        let mut edges = chosen(1);
        edges[hart] = Some(PO);
        programs.push(cycle(family, harts, &edges));
    }
    programs
}

/// Returns cycles with harts of more than two accesses: dependencies through a word that only one hart uses, forwarding.
fn with_longer_parts() -> Vec<Program> {
    let part = |directions: &[Direction], edges: &[Edge]| Part {
        directions: directions.to_vec(),
        edges: edges.to_vec(),
    };
    let rfi = Edge::SAME_WORD;
    let pos = Edge::SAME_WORD;
    let writer = |edge| part(&[W, W], &[edge]);
    let mut programs = Vec::new();
    // A dependent store that is read by a load of the same hart, whose value another address depends on: rule 12.
    for dependency in [ADDR, DATA, CTRL] {
        for fence in [RW_RW, fence(Fence::W_W)] {
            let reader = part(&[R, W, R, R], &[dependency, rfi, ADDR]);
            programs.push(program("MP", &[writer(fence), reader]));
        }
    }
    // Another store between those two, whose value is known: rule 12 says nothing of it.
    let overwritten = part(&[R, W, W, R, R], &[DATA, Edge::SAME_WORD, rfi, ADDR]);
    programs.push(program("MP", &[writer(fence(Fence::W_W)), overwritten]));
    // Two loads of one word, of one store, are not ordered: rule 2.
    for fence in [RW_RW, fence(Fence::W_W)] {
        programs.push(program("MP", &[writer(fence), part(&[R, R, R, R], &[ADDR, pos, ADDR])]));
    }
    // Stores are forwarded to loads of the same hart, those of AMOs and `sc.w` only once all see them: rule 3.
    for from in [Plain, Amo, Exclusive, AcquireRelease] {
        let forwarding = part(&[W, R, R], &[same_word(from, Plain), ADDR]);
        programs.push(program("SB", &[forwarding.clone(), forwarding]));
    }
    for fence in [RW_RW, fence(Fence::R_R)] {
        let forwarding = part(&[W, R, R], &[rfi, fence]);
        programs.push(program("SB", &[forwarding.clone(), forwarding]));
    }
    let overwriting = part(&[R, W, R, R], &[Edge::SAME_WORD, rfi, ADDR]);
    programs.push(program("MP", &[writer(fence(Fence::W_W)), overwriting]));
    // A store after an access whose address depends on a load: rule 13.
    for first in [ADDR, DATA, CTRL] {
        let middle = if first == ADDR { R } else { W };
        let chain = part(&[R, middle, W], &[first, PO]);
        programs.push(program("LB", &[part(&[R, W], &[RW_RW]), chain]));
    }
    for middle in [R, W] {
        let chain = part(&[R, middle, W], &[ADDR, PO]);
        let name = if middle == R { "LB" } else { "LB+W" };
        programs.push(program(name, &[chain.clone(), chain]));
    }
    // Annotations and exclusive pairs in places where the families above have none.
    let pairs = [
        (
            "MP",
            [W, W],
            Edge::annotated(Plain, Exclusive),
            [R, R],
            Edge::annotated(Exclusive, Plain),
        ),
        ("MP", [W, W], Edge::annotated(Exclusive, Exclusive), [R, R], ADDR),
        ("MP", [W, W], Edge::annotated(Amo, Amo), [R, R], Edge::annotated(Amo, Amo)),
        ("MP", [W, W], Edge::annotated(Release, Plain), [R, R], Edge::annotated(Plain, Acquire)),
        (
            "MP",
            [W, W],
            Edge::annotated(Release, Release),
            [R, R],
            Edge::annotated(Acquire, Acquire),
        ),
        ("SB", [W, R], Edge::annotated(Amo, Amo), [W, R], Edge::annotated(Amo, Amo)),
        ("SB", [W, R], Edge::annotated(Plain, Acquire), [W, R], Edge::annotated(Plain, Acquire)),
        ("SB", [W, R], Edge::annotated(Release, Plain), [W, R], Edge::annotated(Release, Plain)),
        (
            "SB",
            [W, R],
            Edge::annotated(AcquireRelease, Plain),
            [W, R],
            Edge::annotated(AcquireRelease, Plain),
        ),
        ("LB", [R, W], Edge::annotated(Plain, Exclusive), [R, W], DATA),
        (
            "LB",
            [R, W],
            Edge::annotated(Exclusive, Plain),
            [R, W],
            Edge::annotated(Exclusive, Plain),
        ),
        ("LB", [R, W], Edge::annotated(Amo, Amo), [R, W], Edge::annotated(Amo, Amo)),
        ("2+2W", [W, W], Edge::annotated(Release, Plain), [W, W], Edge::annotated(Release, Plain)),
        (
            "2+2W",
            [W, W],
            Edge::annotated(Release, Release),
            [W, W],
            Edge::annotated(Release, Release),
        ),
        ("S", [W, W], Edge::annotated(Plain, Exclusive), [R, W], DATA),
        ("R", [W, W], PO_P_RL, [W, R], Edge::annotated(Plain, Acquire)),
    ];
    for (family, first, first_edge, second, second_edge) in pairs {
        programs
            .push(program(family, &[part(&first, &[first_edge]), part(&second, &[second_edge])]));
    }
    programs
}

fn load(location: usize, to: usize) -> Instruction {
    Instruction::Access(Access::load(location, to))
}

fn store(location: usize, value: u32) -> Instruction {
    Instruction::Access(Access::store(location, value))
}

fn amo(kind: AccessKind, location: usize, value: u32, to: usize) -> Instruction {
    Instruction::Access(Access { to: Some(to), ..Access::new(kind, location, value) })
}

/// Returns `lr.w` into register `to` and `sc.w` with its success in the next register.
fn exclusive(location: usize, value: u32, to: usize) -> [Instruction; 2] {
    [
        amo(AccessKind::LoadReserved, location, 0, to),
        amo(AccessKind::StoreConditional, location, value, to + 1),
    ]
}

fn register(hart: usize, number: usize, value: u32) -> (Field, u32) {
    (Field::Register(hart, number), value)
}

fn memory(location: usize, value: u32) -> (Field, u32) {
    (Field::Memory(location), value)
}

/// Returns tests of coherence, in one word but for one; none of their outcomes is allowed.
fn coherence() -> Vec<Program> {
    let depending = |location, to, on| {
        Instruction::Access(Access { address_from: Some(on), ..Access::load(location, to) })
    };
    vec![
        Program::new(
            "coherence",
            "CoRR",
            vec![vec![store(0, 1)], vec![load(0, 0), load(0, 1)]],
            vec![register(1, 0, 1), register(1, 1, 0)],
        ),
        Program::new(
            "coherence",
            "CoRW2",
            vec![vec![store(0, 1)], vec![load(0, 0), store(0, 2)]],
            vec![register(1, 0, 1), memory(0, 1)],
        ),
        Program::new(
            "coherence",
            "CoWR",
            vec![vec![store(0, 1), load(0, 0)], vec![store(0, 2)]],
            vec![register(0, 0, 2), memory(0, 1)],
        ),
        Program::new(
            "coherence",
            "CoWW+RR",
            vec![vec![store(0, 1), store(0, 2)], vec![load(0, 0), load(0, 1)]],
            vec![register(1, 0, 2), register(1, 1, 1)],
        ),
        Program::new(
            "coherence",
            "SB+poss",
            vec![vec![store(0, 1), load(0, 0)], vec![store(0, 2), load(0, 0)]],
            vec![register(0, 0, 2), register(1, 0, 1)],
        ),
        Program::new(
            "coherence",
            "LB+poss",
            vec![vec![load(0, 0), store(0, 1)], vec![load(0, 0), store(0, 2)]],
            vec![register(0, 0, 2), register(1, 0, 1)],
        ),
        Program::new(
            "coherence",
            "WRC+poss",
            vec![vec![store(0, 1)], vec![load(0, 0), store(0, 2)], vec![load(0, 0), load(0, 1)]],
            vec![register(1, 0, 1), register(2, 0, 2), register(2, 1, 1)],
        ),
        Program::new(
            "coherence",
            "IRIW+poss",
            vec![
                vec![store(0, 1)],
                vec![load(0, 0), load(0, 1)],
                vec![store(0, 2)],
                vec![load(0, 0), load(0, 1)],
            ],
            vec![register(1, 0, 1), register(1, 1, 2), register(3, 0, 2), register(3, 1, 1)],
        ),
        // Loads of one word that read different stores are ordered: rule 2.
        Program::new(
            "coherence",
            "RDW",
            vec![
                vec![store(0, 1), Instruction::Fence(Fence::RW_RW), store(1, 1)],
                vec![load(1, 0), depending(2, 1, 0), load(2, 2), depending(0, 3, 2)],
                vec![store(2, 1)],
            ],
            vec![register(1, 0, 1), register(1, 1, 0), register(1, 2, 1), register(1, 3, 0)],
        ),
    ]
}

/// Returns tests of atomicity: no operation comes between the load and the store of an AMO, nor between those of a successful pair.
fn atomics() -> Vec<Program> {
    use AccessKind::{Add, Swap};
    let adds =
        |locations: [usize; 2]| vec![amo(Add, locations[0], 1, 0), amo(Add, locations[1], 1, 1)];
    let reserved_then = |fence: Fence, value| {
        let [reserved, conditional] = exclusive(0, value, 0);
        vec![reserved, Instruction::Fence(fence), conditional]
    };
    let both = |value: u32| exclusive(0, value, 0).to_vec();
    vec![
        Program::new(
            "atomicity",
            "amoadd+amoadd",
            vec![vec![amo(Add, 0, 1, 0)], vec![amo(Add, 0, 1, 0)]],
            vec![memory(0, 1)],
        ),
        Program::new(
            "atomicity",
            "amoadd+amoadd+amoadd",
            vec![vec![amo(Add, 0, 1, 0)]; 3],
            vec![memory(0, 2)],
        ),
        Program::new(
            "atomicity",
            "amoadd+W",
            vec![vec![amo(Add, 0, 1, 0)], vec![store(0, 2)]],
            vec![register(0, 0, 0), memory(0, 1)],
        ),
        Program::new(
            "atomicity",
            "LB+amoadds",
            vec![adds([0, 1]), adds([1, 0])],
            vec![register(0, 0, 1), register(1, 0, 1)],
        ),
        Program::new(
            "atomicity",
            "2+2Swap",
            vec![
                vec![amo(Swap, 0, 2, 0), amo(Swap, 1, 1, 1)],
                vec![amo(Swap, 1, 2, 0), amo(Swap, 0, 1, 1)],
            ],
            vec![memory(0, 2), memory(1, 2)],
        ),
        Program::new(
            "atomicity",
            "lrsc+W",
            vec![both(1), vec![store(0, 2)]],
            vec![register(0, 0, 0), register(0, 1, 0), memory(0, 1)],
        ),
        Program::new(
            "atomicity",
            "lrsc+lrsc",
            vec![both(1), both(2)],
            vec![register(0, 0, 0), register(0, 1, 0), register(1, 0, 0), register(1, 1, 0)],
        ),
        Program::new(
            "atomicity",
            "lrsc+lrsc+lrsc",
            vec![both(1), both(2), both(3)],
            vec![register(0, 0, 0), register(0, 1, 0), register(2, 0, 0), register(2, 1, 0)],
        ),
        Program::new(
            "atomicity",
            "lrsc+amoadd",
            vec![both(2), vec![amo(Add, 0, 1, 0)]],
            vec![register(0, 0, 0), register(0, 1, 0), register(1, 0, 0)],
        ),
        Program::new(
            "atomicity",
            "lrsc+fence.rw.rw+W",
            vec![reserved_then(Fence::RW_RW, 1), vec![store(0, 2)]],
            vec![register(0, 0, 0), register(0, 1, 0), memory(0, 1)],
        ),
    ]
}
