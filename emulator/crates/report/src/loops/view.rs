//! The picture of an iteration: its rows and some before and after it, stage by stage.

use commit_trace::InstId;
use critical_path::{Cause, CriticalPath, Edge, Graph, Iteration, Segment};
use serde_json::{Value, json};

/// Rows that a picture has at most.
const MAX_ROWS: usize = 64;
/// Rows that a picture has at least, if the excerpt has as many.
const MIN_ROWS: usize = 28;

/// The picture of an iteration: its rows, and some before and after it.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// Cycles of the iteration.
    pub cycles: u64,
    /// Cycle that the picture counts from.
    base: u64,
    /// First row of the iteration in the picture, and the first row after the iteration.
    iteration: [usize; 2],
    /// Rows of the iteration that do not fit into the picture.
    left_out: usize,
    rows: Vec<ViewRow>,
    edges: Vec<Edge>,
}

/// A row of a picture.
#[derive(Clone, Debug)]
struct ViewRow {
    label: String,
    text: String,
    segments: Vec<Segment>,
    /// Rows that this row depends on, and whether it does through memory.
    operands: Vec<(usize, bool)>,
}

impl View {
    /// Makes the picture of an iteration; `name` gives label and text of an instruction.
    pub(crate) fn new(
        graph: &Graph<'_>,
        iteration: &Iteration,
        name: &dyn Fn(InstId) -> (String, String),
    ) -> Self {
        let rows = &graph.excerpt().rows;
        let own = iteration.rows.len();
        let around = MIN_ROWS.saturating_sub(own).div_ceil(2).max(4);
        let first = iteration.rows.start.saturating_sub(around);
        let end = (iteration.rows.end + around).min(first + MAX_ROWS).min(rows.len());
        let in_view = |row: usize| (first..end).contains(&row);
        let row = |at: usize| {
            let (label, text) = name(rows[at].inst);
            let operands = graph
                .dependences(at)
                .filter(|operand| in_view(operand.producer))
                .map(|operand| (operand.producer - first, operand.in_memory));
            ViewRow { label, text, segments: graph.segments(at), operands: operands.collect() }
        };
        let shown: Vec<ViewRow> = (first..end).map(row).collect();
        let path = CriticalPath::within(graph, first..end);
        let starts = shown.iter().filter_map(|row| row.segments.first());
        // A branch before the first row can have redirected fetch.
        let edges = path.edges().iter().filter_map(|edge| {
            let row = edge.row.checked_sub(first)?;
            Some(Edge { row, ..*edge })
        });
        Self {
            cycles: iteration.cycles,
            base: starts.map(|segment| segment.from).min().unwrap_or(0),
            iteration: [iteration.rows.start - first, iteration.rows.end.min(end) - first],
            left_out: iteration.rows.end.saturating_sub(end),
            edges: edges.collect(),
            rows: shown,
        }
    }

    /// Returns the picture for the page's script: rows as arrays, cycles from the picture's first one, causes by number.
    pub(crate) fn json(&self) -> Value {
        let cause = |cause: Cause| Cause::ALL.iter().position(|&other| other == cause);
        let cycle = |cycle: u64| cycle.saturating_sub(self.base);
        let segment = |segment: &Segment| {
            json!([
                segment.stage as u8,
                cycle(segment.from),
                cycle(segment.to),
                segment.cause.and_then(cause),
            ])
        };
        let row = |row: &ViewRow| {
            json!([
                row.label,
                row.text,
                row.segments.iter().map(segment).collect::<Vec<_>>(),
                row.operands,
            ])
        };
        let edge =
            |edge: &Edge| json!([edge.row, cycle(edge.from), cycle(edge.to), cause(edge.cause)]);
        json!({
            "cycles": self.cycles,
            "base": self.base,
            "iteration": self.iteration,
            "leftOut": self.left_out,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "path": self.edges.iter().map(edge).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use critical_path::{Code, Delays, Excerpt, InstTimes};

    use super::*;

    #[test]
    fn a_picture_says_how_many_rows_it_leaves_out() {
        let code = Code::new(&[]);
        let excerpt = Excerpt { rows: vec![InstTimes::default(); 200], ..Excerpt::default() };
        let graph = Graph::new(&code, Delays::default(), &excerpt);
        let view = |rows| {
            let iteration = Iteration { excerpt: 0, rows, cycles: 1 };
            View::new(&graph, &iteration, &|_| Default::default()).json()
        };
        // Four rows before it are in the picture.
        let long = view(50..150);
        assert_eq!(long["iteration"], json!([4, MAX_ROWS]));
        assert_eq!(long["leftOut"], 100 - (MAX_ROWS - 4));
        let short = view(50..60);
        assert_eq!(short["iteration"], json!([9, 19]));
        assert_eq!(short["leftOut"], 0);
    }
}
