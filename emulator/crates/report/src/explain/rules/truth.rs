//! Numbers of the sections that the truth makes: precise sampling, contended lines.

use super::{ReportPath, Rule, TIP, rule};

const JUDGE: &str = "report/src/precise/judge.rs, from the guest's perf.data files and truth.json (truth/src/counts.rs)";
const LINES: &str =
    "truth/src/lines.rs, from every data access of the timing cores; report/src/contended.rs";
const DUBOIS: &str =
    "Dubois et al.: The Detection and Elimination of Useless Misses in Multiprocessors (ISCA 1993)";

impl ReportPath<'_> {
    /// A number of the section "Precise sampling".
    pub(crate) fn precise(&self, below: &[&str]) -> Rule {
        let (meaning, formula) = match below {
            ["trust", ..] | ["units", _, "hart"] | [.., "slot"] => return self.index(),
            ["units", _, count] => (
                "Overflows of the hart's unit that samples instructions, since reset, by what became of them.",
                match *count {
                    "overflows" => {
                        "recorded + collisions + filtered + dropped, and a few under way"
                    }
                    _ => "counted by the unit",
                },
            ),
            [_, _, "metric", ..] => ("What the event selects and lets pass.", "read from the file"),
            [.., "error"] => (
                "Share of the event that the samples give to the wrong symbol.",
                "half the sum over symbols of |share by true counts - share by samples|",
            ),
            [.., "sampling"] => (
                "The error that as many random samples of the true counts are expected to have.",
                "see processes.errors.sampling",
            ),
            [_, _, "skid", "mean"] => (
                "Executed instructions of the function between a sample and the nearest instruction before it that had the event, on average.",
                "sum of distance by period / sum of periods",
            ),
            [_, _, "skid", "known"] => (
                "Share of the samples of which the skid is known: there is such an instruction in the function.",
                "sum of their periods / sum of all periods",
            ),
            [.., "latency", "sampled"] => ("Mean of perf's weight.", "sum of weights / samples"),
            [.., "latency", "truth"] => (
                "Mean latency, as perf weighs it, of all executions of the sampled instructions that the event counts.",
                "mean over samples of (cycles / executions) of its instruction",
            ),
            [_, _, "wrong"] => (
                "Share of the samples at instructions that never had the event.",
                "samples there / samples",
            ),
            [_, _, "truth"] => (
                "How often the event truly occurred in the judged programs.",
                "counted by the core",
            ),
            [_, _, "estimate"] => ("How often it occurred by the samples.", "sum of their periods"),
            [_, _, "classes" | "slots" | "sources" | "instructions", _, "truth"] => {
                ("Share by true counts.", "count / all counts")
            }
            [_, _, "classes" | "slots" | "sources" | "instructions", _, "sampled"] => {
                ("Share by samples.", "periods / all periods")
            }
            [_, _, "samples" | "exact" | "lost" | "throttled" | "period" | "precise"] => {
                ("What the guest's file says of the event.", "read from the file")
            }
            _ => return self.no_rule(),
        };
        rule(meaning, formula, JUDGE, TIP)
    }

    /// A number of the section "Contended lines".
    pub(crate) fn contended(&self, below: &[&str]) -> Rule {
        let (meaning, formula) = match below {
            ["samples" | "hitm_samples"] | [.., "hitm_samples"] => (
                "Samples of the guest's perf with a data source, or of these the ones that say HITM.",
                "counted in its files, by the line of the physical or virtual address",
            ),
            [.., "true_sharing"] => (
                "Misses on a line that others wrote, after which the hart accessed a byte that another had written.",
                "counted",
            ),
            [.., "false_sharing"] => (
                "Misses on a line that others wrote, after which the hart accessed no such byte before it lost the line.",
                "counted",
            ),
            [.., "cycles"] => (
                "Cycles of accesses that other harts' caches answered or had to permit.",
                "sum of cycles from issue until they were done",
            ),
            [.., "peer_modified" | "peer_clean" | "upgrades" | "loads" | "stores"] => {
                ("Accesses to the line.", "counted")
            }
            [.., "hart"] => return self.index(),
            _ => return self.no_rule(),
        };
        rule(meaning, formula, LINES, DUBOIS)
    }
}
