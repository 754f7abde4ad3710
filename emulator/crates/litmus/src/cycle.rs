//! Programs from critical cycles: a cycle of edges, each between two accesses, becomes the program in whose outcome the cycle shows.
//!
//! Edges are those of the literature. Between harts: *Rfe* (a load reads a store), *Fre* (a load reads what a store overwrites) and *Coe*
//! (a store overwrites a store). Within a hart: program order with what links the two accesses (a fence, a dependency, annotations), to
//! another word or to the same one.

use crate::program::{Access, AccessKind, Fence, Field, Instruction, Location, Program, Value};

/// What an access of a cycle does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// A load.
    R,
    /// A store.
    W,
}

/// How an access of a cycle is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Annotation {
    /// A plain load or store.
    #[default]
    Plain,
    /// An AMO without annotation: `amoor.w` with `x0` as operand to load, `amoswap.w` into `x0` to store.
    Amo,
    /// Such an AMO with `aq`.
    Acquire,
    /// Such an AMO with `rl`.
    Release,
    /// Such an AMO with both.
    AcquireRelease,
    /// `lr.w` and `sc.w`, which stores what was loaded if the access is to load.
    Exclusive,
}

impl Annotation {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "p",
            Self::Amo => "a",
            Self::Acquire => "aq",
            Self::Release => "rl",
            Self::AcquireRelease => "ar",
            Self::Exclusive => "x",
        }
    }
}

/// What links an access to the one before it in the same hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// Program order alone.
    Order,
    /// A fence between them.
    Fence(Fence),
    /// The address depends on what the first loads.
    Address,
    /// What is stored depends on what the first loads.
    Data,
    /// A branch between them depends on what the first loads.
    Control,
}

/// An edge within a hart: the link, whether both accesses are to one word, and how each of them is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// What links the accesses.
    pub(crate) link: Link,
    /// Both are to one word. The edge then has its own name: `pos`, or `rfi`, `fri` and `wsi` by its directions.
    pub(crate) same_word: bool,
    /// How the first access is made.
    pub(crate) from: Annotation,
    /// How the second access is made.
    pub(crate) to: Annotation,
}

impl Edge {
    /// Returns an edge between plain accesses to different words.
    pub(crate) const fn new(link: Link) -> Self {
        Self { link, same_word: false, from: Annotation::Plain, to: Annotation::Plain }
    }

    /// Returns program order between plain accesses to one word.
    pub(crate) const SAME_WORD: Self = Self { same_word: true, ..Self::new(Link::Order) };

    /// Returns program order between accesses that are made in certain ways.
    pub(crate) const fn annotated(from: Annotation, to: Annotation) -> Self {
        Self { from, to, ..Self::new(Link::Order) }
    }

    fn name(self, from: Direction, to: Direction) -> String {
        let link = match (self.link, self.same_word) {
            (Link::Order, false) => "po".to_owned(),
            (Link::Order, true) => match (from, to) {
                (Direction::W, Direction::R) => "rfi",
                (Direction::R, Direction::W) => "fri",
                (Direction::W, Direction::W) => "wsi",
                (Direction::R, Direction::R) => "pos",
            }
            .to_owned(),
            (Link::Fence(fence), _) => fence.to_string(),
            (Link::Address, _) => "addr".to_owned(),
            (Link::Data, _) => "data".to_owned(),
            (Link::Control, _) => "ctrl".to_owned(),
        };
        match (self.from, self.to) {
            (Annotation::Plain, Annotation::Plain) => link,
            (from, to) => link + from.name() + to.name(),
        }
    }
}

/// The accesses of one hart, and the edges between them.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// What the accesses do.
    pub(crate) directions: Vec<Direction>,
    /// The edge after each access but the last.
    pub(crate) edges: Vec<Edge>,
}

impl Part {
    fn annotation(&self, access: usize) -> Annotation {
        let before = access.checked_sub(1).map_or(Annotation::Plain, |edge| self.edges[edge].to);
        let after = self.edges.get(access).map_or(Annotation::Plain, |edge| edge.from);
        if before == Annotation::Plain { after } else { before }
    }

    /// Returns the name of the part's edges; empty for a single access.
    fn name(&self) -> String {
        let ends = self.directions.windows(2);
        let names = self.edges.iter().zip(ends).map(|(edge, ends)| edge.name(ends[0], ends[1]));
        names.collect::<Vec<_>>().join("-")
    }
}

/// A critical cycle. After each hart's last access comes an edge to the next hart's first access, which their directions name: a load
/// after a store is *Rfe*, a store after a load *Fre*, a store after a store *Coe*.
pub(crate) fn program(family: &str, parts: &[Part]) -> Program {
    let accesses = place(family, parts);
    let mut harts = Vec::new();
    let mut condition: Vec<(Field, u32)> = Vec::new();
    for (hart, part) in parts.iter().enumerate() {
        let mut made =
            Hart { number: hart, instructions: Vec::new(), registers: 0, condition: Vec::new() };
        let mut loaded = None;
        let of_hart = accesses.iter().filter(|access| access.hart == hart);
        for (n, access) in of_hart.enumerate() {
            let link = n.checked_sub(1).map(|edge| part.edges[edge].link);
            loaded = made.access(access, link, loaded, part.annotation(n));
        }
        condition.extend(made.condition);
        harts.push(made.instructions);
    }
    let locations = accesses.iter().map(|access| access.location + 1).max().unwrap_or(0);
    for location in 0..locations {
        let of_word = accesses.iter().filter(|access| access.location == location);
        let last = of_word.filter(|access| access.direction == Direction::W).map(|a| a.value).max();
        condition.push((Field::Memory(location), last.unwrap_or(0)));
    }
    Program::new(family, name(family, parts), harts, condition)
}

/// Returns the test's name: the family alone if all is plain program order, one edge with `s` if all harts have the same.
fn name(family: &str, parts: &[Part]) -> String {
    let names: Vec<String> = parts.iter().map(Part::name).filter(|name| !name.is_empty()).collect();
    if names.iter().all(|name| name == "po") {
        return family.to_owned();
    }
    if names.len() > 1 && names.iter().all(|name| *name == names[0]) {
        return format!("{family}+{}s", names[0]);
    }
    format!("{family}+{}", names.join("+"))
}

/// An access with its place in the cycle.
struct Placed {
    hart: usize,
    direction: Direction,
    location: Location,
    /// What it stores, or loads where the cycle shows.
    value: u32,
}

/// Gives each access its word and its value: the stores to a word store 1, 2, … in coherence order.
fn place(family: &str, parts: &[Part]) -> Vec<Placed> {
    let mut placed: Vec<Placed> = Vec::new();
    // Whether the edge after each access leads to another word.
    let mut leaves = Vec::new();
    let mut location = 0;
    for (hart, part) in parts.iter().enumerate() {
        for (n, direction) in part.directions.iter().enumerate() {
            placed.push(Placed { hart, direction: *direction, location, value: 0 });
            let leaves_word = part.edges.get(n).is_some_and(|edge| !edge.same_word);
            location += usize::from(leaves_word);
            leaves.push(leaves_word);
        }
    }
    let words = location;
    assert!(words > 1, "{family}: a cycle through one word");
    for access in &mut placed {
        access.location %= words;
    }
    // The accesses to a word follow each other in the cycle; those to the first word begin at its end.
    let count = placed.len();
    let start = 1 + leaves.iter().rposition(|leaves| *leaves).expect("there are several words");
    let mut last = 0;
    for n in (start..start + count).map(|n| n % count) {
        let before = (n + count - 1) % count;
        if leaves[before] {
            last = 0;
        }
        match placed[n].direction {
            Direction::W => last += 1,
            Direction::R => {}
        }
        placed[n].value = last;
    }
    placed
}

/// The instructions of one hart while they are made.
struct Hart {
    number: usize,
    instructions: Vec<Instruction>,
    registers: usize,
    condition: Vec<(Field, u32)>,
}

impl Hart {
    /// Returns a new register, which the outcome of the test has with this value.
    fn register(&mut self, value: u32) -> usize {
        self.condition.push((Field::Register(self.number, self.registers), value));
        self.registers += 1;
        self.registers - 1
    }

    /// Adds an access with the link to the access before it, which loaded into `loaded`. Returns the register that this one loads into.
    fn access(
        &mut self,
        placed: &Placed,
        link: Option<Link>,
        loaded: Option<usize>,
        annotation: Annotation,
    ) -> Option<usize> {
        let depends = || Some(loaded.expect("a dependency is on a load"));
        let (mut address_from, mut data_from) = (None, None);
        match link {
            None | Some(Link::Order) => {}
            Some(Link::Fence(fence)) => self.instructions.push(Instruction::Fence(fence)),
            Some(Link::Address) => address_from = depends(),
            Some(Link::Data) => data_from = depends(),
            Some(Link::Control) => {
                self.instructions.extend(depends().map(Instruction::Branch));
            }
        }
        let reads = placed.direction == Direction::R;
        let exclusive = annotation == Annotation::Exclusive;
        let kind = match (annotation, reads) {
            (Annotation::Plain, true) => AccessKind::Load,
            (Annotation::Plain, false) => AccessKind::Store,
            (Annotation::Exclusive, _) => AccessKind::LoadReserved,
            (_, true) => AccessKind::Or,
            (_, false) => AccessKind::Swap,
        };
        // What an exclusive store's `lr.w` loads has no part in the cycle, and comes before what the pair stores.
        let to = match (reads, exclusive) {
            (true, _) => Some(self.register(placed.value)),
            (false, true) => Some(self.register(placed.value - 1)),
            (false, false) => None,
        };
        let both = annotation == Annotation::AcquireRelease;
        let access = Access {
            to,
            acquire: both || annotation == Annotation::Acquire,
            release: both || annotation == Annotation::Release,
            address_from,
            data_from: data_from.filter(|_| !exclusive),
            ..Access::new(kind, placed.location, if reads || exclusive { 0 } else { placed.value })
        };
        self.instructions.push(Instruction::Access(access));
        if let (true, Some(read)) = (exclusive, to) {
            let conditional = Access {
                to: Some(self.register(0)),
                value: if reads { Value::Register(read) } else { Value::Constant(placed.value) },
                address_from,
                data_from,
                ..Access::new(AccessKind::StoreConditional, placed.location, 0)
            };
            self.instructions.push(Instruction::Access(conditional));
        }
        to.filter(|_| reads)
    }
}
