//! The iterations of a loop that excerpts show.

use std::collections::BTreeMap;
use std::ops::Range;

use commit_trace::InstId;

use crate::{Cause, Code, CriticalPath, Excerpts, Graph, Loop};

/// One time through a loop, from its first instruction to the next time that it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iteration {
    /// Number of the excerpt that has the iteration.
    pub excerpt: usize,
    /// Rows of the iteration, within its excerpt.
    pub rows: Range<usize>,
    /// Cycles from the commit before the first row to that of the last row.
    pub cycles: u64,
}

/// The iterations of a loop that excerpts have.
#[derive(Clone, Debug, Default)]
pub struct Iterations {
    /// Whole iterations.
    pub list: Vec<Iteration>,
    /// How often excerpts have the loop's first instruction.
    pub headers: u64,
    /// How often excerpts have the loop's first instruction after one outside of the loop.
    pub entries: u64,
    /// How often the loop was left within excerpts.
    pub exits: u64,
    /// Cycles from one commit to the next, summed over the commits of instructions in the loop's body.
    pub own_cycles: u64,
    /// Cycles of the whole iterations by instruction and cause: sums over the critical paths of iterations that follow each
    /// other.
    pub path: BTreeMap<(InstId, Cause), u64>,
}

/// State of a look through an excerpt.
#[derive(Default)]
struct Look {
    /// The row of the loop's first instruction, if the loop goes on.
    header: Option<usize>,
    /// First row of the whole iterations that follow each other without a break.
    streak: Option<usize>,
    /// True in a function that the loop calls.
    called: bool,
    /// True if the instruction before is known to be outside of the loop.
    outside: bool,
}

impl Iterations {
    /// Finds the iterations of a loop in `excerpts`; `function` gives the function of an instruction.
    pub fn of(
        found: &Loop,
        code: &Code<'_>,
        excerpts: &Excerpts,
        graphs: &[Graph<'_>],
        function: &dyn Fn(InstId) -> u32,
    ) -> Self {
        let mut iterations = Self::default();
        let privilege = |inst: InstId| code.info(inst).map(|info| info.privilege);
        let own = privilege(found.header);
        let mut body = found.body.clone();
        body.sort_unstable();
        let has = |inst: InstId| body.binary_search(&inst).is_ok();
        for (number, (excerpt, graph)) in excerpts.list.iter().zip(graphs).enumerate() {
            let mut look = Look::default();
            for (at, row) in excerpt.rows.iter().enumerate() {
                if has(row.inst) {
                    iterations.own_cycles += row.commit - excerpt.before(at);
                }
                let is_trap = row.redirect.is_trap() && !excerpt.is_executed_anew(at);
                if is_trap || privilege(row.inst) != own {
                    // An interrupt or a system call makes an iteration like no other.
                    iterations.streak(graph, &look);
                    look = Look::default();
                } else if look.header.is_some() && at != 0 && excerpt.is_executed_anew(at - 1) {
                    // The instruction is that of the row before: the iteration goes on, even if it has just begun.
                } else if row.inst == found.header {
                    iterations.headers += 1;
                    match look.header {
                        Some(header) => {
                            iterations.whole(number, graph, header..at);
                            look.streak = look.streak.or(Some(header));
                        }
                        None => iterations.entries += u64::from(look.outside),
                    }
                    look.header = Some(at);
                    (look.called, look.outside) = (false, false);
                } else if has(row.inst) {
                    look.called = code.get(row.inst).is_some_and(|inst| inst.calls());
                    // Only the header leads into the loop.
                    look.outside = false;
                } else if look.header.is_none()
                    || !look.called
                    || function(row.inst) == found.function
                {
                    iterations.exits += u64::from(look.header.is_some());
                    iterations.streak(graph, &look);
                    look = Look { outside: true, ..Look::default() };
                }
            }
            iterations.streak(graph, &look);
        }
        iterations
    }

    fn whole(&mut self, excerpt: usize, graph: &Graph<'_>, rows: Range<usize>) {
        let from = graph.excerpt.before(rows.start);
        self.list.push(Iteration { excerpt, cycles: graph.row(rows.end - 1).commit - from, rows });
    }

    /// Adds the critical path of iterations that followed each other without a break, which ends here.
    fn streak(&mut self, graph: &Graph<'_>, look: &Look) {
        if let (Some(start), Some(end)) = (look.streak, look.header) {
            for edge in CriticalPath::new(graph, start..end).edges() {
                let inst = graph.row(edge.row).inst;
                *self.path.entry((inst, edge.cause)).or_default() += edge.cycles();
            }
        }
    }

    /// Returns the cycles of the whole iterations.
    pub fn cycles(&self) -> u64 {
        self.list.iter().map(|iteration| iteration.cycles).sum()
    }

    /// Returns the number of instructions of the whole iterations.
    pub fn instructions(&self) -> usize {
        self.list.iter().map(|iteration| iteration.rows.len()).sum()
    }

    /// Returns the mean number of iterations each time that the loop is entered; `None` if no excerpt has the begin or end of
    /// one.
    pub fn trips(&self) -> Option<f64> {
        // Executions of the loop that an excerpt cuts off count one half: excerpts have the begin of one as often as the end.
        let times = (self.entries + self.exits) as f64 / 2.0;
        (times > 0.0).then(|| (self.headers as f64 / times).max(1.0))
    }

    /// Returns the best, the median and the worst iteration, by their place in the list.
    pub fn typical(&self) -> Option<[usize; 3]> {
        let mut order: Vec<usize> = (0..self.list.len()).collect();
        order.sort_by_key(|&at| self.list[at].cycles);
        Some([*order.first()?, *order.get(order.len() / 2)?, *order.last()?])
    }
}
