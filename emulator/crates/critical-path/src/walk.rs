//! The critical path: back from the last commit along what came last.

use std::ops::Range;

use commit_trace::DataSource;
use isa::InstClass;

use crate::{Cause, Graph};

/// Cycles from F0 of a packet to its delivery, if nothing is in the way.
const FETCH: u64 = 4;

/// An edge of the critical path: consecutive cycles with one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Row that the cycles are given to.
    pub row: usize,
    /// Why the cycles passed.
    pub cause: Cause,
    /// Cycle after which the edge begins.
    pub from: u64,
    /// Cycle with which the edge ends.
    pub to: u64,
}

impl Edge {
    /// Returns the number of cycles.
    pub fn cycles(&self) -> u64 {
        self.to - self.from
    }
}

/// An event in the life of a row.
#[derive(Clone, Copy, Debug)]
enum Node {
    /// The packet that the row starts was asked for.
    Asked,
    /// The packet that the row starts was delivered.
    Delivered,
    Decoded,
    Dispatched,
    Issued,
    /// The row's dependents can issue.
    Woken,
    /// The row can leave the ROB.
    Done,
    Left,
}

/// The critical path of consecutive rows: edges without a gap, from the commit before the first row to the commit of the last row. Rows before the
/// first have no part in it: what they did was over by then.
#[derive(Clone, Debug, Default)]
pub struct CriticalPath {
    edges: Vec<Edge>,
}

/// A walk back along the critical path.
struct Walk<'a> {
    graph: &'a Graph<'a>,
    start: u64,
    /// Cycle after which all cycles have their edge.
    cycle: u64,
    edges: Vec<Edge>,
}

impl CriticalPath {
    /// Returns the critical path of `rows`, back to the commit before the first of them.
    pub fn new(graph: &Graph<'_>, rows: Range<usize>) -> Self {
        let start = graph.excerpt.before(rows.start);
        Self::since(graph, rows, start)
    }

    /// Returns the critical path of `rows`, back to where it leaves them, which may be before the commit that precedes the
    /// first row.
    pub fn within(graph: &Graph<'_>, rows: Range<usize>) -> Self {
        Self::since(graph, rows, 0)
    }

    fn since(graph: &Graph<'_>, rows: Range<usize>, start: u64) -> Self {
        let Some(last) = rows.clone().next_back() else {
            return Self::default();
        };
        let mut walk = Walk { graph, start, cycle: graph.row(last).commit, edges: Vec::new() };
        let (mut node, mut row) = (Node::Left, last);
        while walk.cycle > start && row >= rows.start {
            match walk.back(node, row) {
                Some(next) => (node, row) = next,
                None if start == 0 => break,
                None => walk.to(start, row, Cause::Before),
            }
        }
        walk.edges.reverse();
        Self { edges: walk.edges }
    }

    /// Returns the edges, in order of time.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Returns the cycles of all edges.
    pub fn cycles(&self) -> u64 {
        self.edges.iter().map(Edge::cycles).sum()
    }
}

impl Walk<'_> {
    /// Gives the cycles back to `cycle` to row `row` and `cause`.
    fn to(&mut self, cycle: u64, row: usize, cause: Cause) {
        let from = cycle.clamp(self.start, self.cycle);
        if from != self.cycle {
            self.edges.push(Edge { row, cause, from, to: self.cycle });
            self.cycle = from;
        }
    }

    /// Returns the event that an event of row `at` waited for last, and gives the cycles between the two to their cause.
    fn back(&mut self, node: Node, at: usize) -> Option<(Node, usize)> {
        match node {
            Node::Left => Some(self.left(at)),
            Node::Done => Some(self.done(at)),
            Node::Woken => Some(self.woken(at)),
            Node::Issued => Some(self.issued(at)),
            Node::Dispatched => Some(self.dispatched(at)),
            Node::Decoded => self.decoded(at),
            Node::Delivered => Some(self.delivered(at)),
            Node::Asked => self.asked(at),
        }
    }

    fn left(&mut self, at: usize) -> (Node, usize) {
        let row = self.graph.row(at);
        match at.checked_sub(1) {
            Some(before) if row.commit > row.complete => {
                self.to(self.graph.row(before).commit, at, Cause::Commit);
                (Node::Left, before)
            }
            _ => (Node::Done, at),
        }
    }

    fn serialises(&self, at: usize) -> bool {
        self.graph.inst(at).is_none_or(|inst| inst.class.serialises())
    }

    fn done(&mut self, at: usize) -> (Node, usize) {
        let (graph, row) = (self.graph, self.graph.row(at));
        if row.issue == 0 || self.serialises(at) {
            self.to(row.dispatch, at, Cause::Serialize);
            return (Node::Dispatched, at);
        }
        let data = graph.store_data(at).map(|data| (data, graph.row(data).wake));
        if let Some((data, wake)) = data
            && wake > row.issue
        {
            self.to(wake, at, Cause::Store);
            return (Node::Woken, data);
        }
        self.executed(at)
    }

    fn woken(&mut self, at: usize) -> (Node, usize) {
        if self.serialises(at) {
            return (Node::Left, at);
        }
        self.executed(at)
    }

    /// Goes from a row's result back to its issue, or to the store that it waited for.
    fn executed(&mut self, at: usize) -> (Node, usize) {
        let row = self.graph.row(at);
        if let Some(store) = self.graph.late_store(at) {
            self.to(self.graph.row(store).complete, at, Cause::LoadForward);
            return (Node::Done, store);
        }
        let class = self.graph.inst(at).map_or(InstClass::IntAlu, |inst| inst.class);
        self.to(row.issue + row.translating, at, Cause::latency(class, row));
        self.to(row.issue, at, Cause::DataTlb);
        (Node::Issued, at)
    }

    fn issued(&mut self, at: usize) -> (Node, usize) {
        let (graph, row) = (self.graph, self.graph.row(at));
        let ready = graph.ready(at);
        if row.issue > ready {
            match graph.port_holder(at) {
                Some((holder, cause)) => {
                    self.to(graph.row(holder).issue, at, cause);
                    return (Node::Issued, holder);
                }
                None => self.to(ready, at, Cause::Port),
            }
        }
        match graph.last_operand(at) {
            Some((producer, wake)) if wake > row.dispatch => {
                self.to(wake, at, Cause::Port);
                (Node::Woken, producer)
            }
            _ => {
                self.to(row.dispatch, at, Cause::Width);
                (Node::Dispatched, at)
            }
        }
    }

    fn dispatched(&mut self, at: usize) -> (Node, usize) {
        let (graph, row) = (self.graph, self.graph.row(at));
        let cause = Cause::dispatch(row.wait);
        match graph.place_giver(at) {
            Some((giver, true)) => {
                self.to(graph.row(giver).issue, at, cause);
                return (Node::Issued, giver);
            }
            Some((giver, false)) => {
                self.to(graph.row(giver).commit, at, cause);
                return (Node::Left, giver);
            }
            None => {}
        }
        match at.checked_sub(1) {
            Some(before) if graph.row(before).dispatch > row.decode + 1 => {
                self.to(graph.row(before).dispatch, at, cause);
                (Node::Dispatched, before)
            }
            _ => {
                self.to(row.decode, at, cause);
                (Node::Decoded, at)
            }
        }
    }

    fn decoded(&mut self, at: usize) -> Option<(Node, usize)> {
        let (graph, row) = (self.graph, self.graph.row(at));
        // All rows of the decode group were decoded in the same cycle.
        let mut first = at;
        while let Some(before) = first.checked_sub(1)
            && graph.row(before).decode == row.decode
        {
            first = before;
        }
        let there = graph.packet(first).map(|start| (start, graph.row(start).delivered + 1));
        let before = first.checked_sub(1);
        let decoded = before.map_or(0, |before| graph.row(before).decode + 1);
        let dispatched = before.map_or(0, |before| graph.row(before).dispatch);
        match (there, before) {
            (Some((start, there)), _) if there > decoded.max(dispatched) => {
                self.to(there - 1, at, Cause::Fetch);
                Some((Node::Delivered, start))
            }
            (_, Some(before)) if dispatched > decoded => {
                self.to(dispatched, at, Cause::Width);
                Some((Node::Dispatched, before))
            }
            (_, Some(before)) => {
                self.to(decoded - 1, at, Cause::Width);
                Some((Node::Decoded, before))
            }
            (_, None) => None,
        }
    }

    fn delivered(&mut self, start: usize) -> (Node, usize) {
        let row = self.graph.row(start);
        // The fixed part of a fetch comes last: misses come before it.
        self.to(self.cycle.saturating_sub(FETCH).max(row.asked), start, Cause::Fetch);
        let missed = !matches!(row.packet_source, DataSource::L1 | DataSource::Unknown);
        let late = if missed { Cause::FetchCache } else { Cause::Fetch };
        self.to(row.asked + row.packet_translating, start, late);
        self.to(row.asked, start, Cause::FetchTlb);
        (Node::Asked, start)
    }

    fn asked(&mut self, start: usize) -> Option<(Node, usize)> {
        let graph = self.graph;
        if let Some((by, cause)) = graph.redirected_by(start) {
            // All that the front end took from there on belongs to the redirect.
            let front = |edge: &&mut Edge| matches!(edge.cause, Cause::Width | Cause::Fetch);
            let refill = self.edges.iter_mut().rev().take_while(front);
            refill.for_each(|edge| edge.cause = cause);
            return Some(match cause {
                Cause::Mispredict => {
                    self.to(graph.row(by).issue, by, cause);
                    (Node::Issued, by)
                }
                _ => {
                    self.to(graph.row(by).commit, by, cause);
                    (Node::Left, by)
                }
            });
        }
        let before = graph.packet_before(start)?;
        self.to(graph.row(before).asked, start, Cause::Fetch);
        Some((Node::Asked, before))
    }
}
