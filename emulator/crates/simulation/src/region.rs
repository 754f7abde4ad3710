//! The region of interest: what the marks of the command and of its programs mean together.

use commit_trace::Event;
use machine::Mark;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::options::Region;

/// Stretches that run.json lists one by one; their sums have all.
const MAX_LISTED_STRETCHES: usize = 1000;

/// Follows the marks of the machine, whichever hart or process executes them.
///
/// The command's region is open while the command runs. The first start mark of a program narrows the region: all that was open until then is
/// dropped, and from then on, in this command and in later ones, only stretches between a start and a stop of a program belong to the region. Starts
/// nest: each needs its stop. A stop before any start does not narrow the region, but pauses it until a start. A region that is still open ends with
/// the command, and marks after the command do not count.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    /// Commands that run: more than one if a script calls `tipsim-run` itself, which is then a program's mark.
    commands: u32,
    /// Whether there has been a command.
    had_command: bool,
    /// Number of programs' starts that have not met their stop.
    depth: u32,
    /// Whether a program has said where its region starts or stops.
    programs_marked: bool,
    /// Whether the first mark of a program was a stop: starts and stops then resume and pause the command's own region.
    pauses: bool,
    open: Option<RunPosition>,
    summary: RegionSummary,
}

/// A point of the run: cycles, instructions of all harts.
pub type RunPosition = (u64, u64);

/// What became of the region, for run.json.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RegionSummary {
    /// Number of stretches that are in the region.
    pub count: u64,
    /// Cycles of all stretches.
    pub cycles: u64,
    /// Instructions of all stretches, of all harts.
    pub instructions: u64,
    /// Whether a program's own marks narrowed the region.
    pub narrowed: bool,
    /// Number of starts without a stop.
    pub left_open: u32,
    /// Number of stops that met no start.
    pub stray_stops: u64,
    /// The first thousand of the stretches.
    pub each: Vec<Stretch>,
}

/// A stretch of the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stretch {
    /// Cycles of the stretch.
    pub cycles: u64,
    /// Instructions of the stretch, of all harts.
    pub instructions: u64,
}

/// State of the marks in a checkpoint, so that a session that goes on from the checkpoint knows whether the region is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionState {
    commands: u32,
    had_command: bool,
    depth: u32,
    programs_marked: bool,
    pauses: bool,
    is_open: bool,
}

snapshot::snapshot!(RegionState { commands, had_command, depth, programs_marked, pauses, is_open });

impl Regions {
    /// Returns the state at the beginning of a run whose spec says `region`.
    pub(crate) fn new(region: Region) -> Self {
        Self {
            // With `marked`, programs count as having marked from the start: no command is the region by itself.
            programs_marked: region == Region::Marked,
            ..Self::default()
        }
    }

    /// Returns the state of the marks, for a checkpoint.
    pub(crate) fn state(&self) -> RegionState {
        let &Self { commands, had_command, depth, programs_marked, pauses, .. } = self;
        let is_open = self.open.is_some();
        RegionState { commands, had_command, depth, programs_marked, pauses, is_open }
    }

    /// Resumes another session's `state` at `now`, in a run whose spec says `region`. Returns the event that opens the region here, if it was open;
    /// `None` otherwise.
    pub(crate) fn resume(
        &mut self,
        state: &RegionState,
        region: Region,
        now: RunPosition,
    ) -> Option<Event> {
        let &RegionState { commands, had_command, depth, pauses, .. } = state;
        let programs_marked = state.programs_marked || region == Region::Marked;
        // In a run that profiles only what programs mark, the command's own region does not count.
        let is_open = state.is_open && (region != Region::Marked || state.programs_marked);
        *self = Self { commands, had_command, depth, programs_marked, pauses, ..Self::default() };
        is_open.then(|| self.start(now)).flatten()
    }

    /// Takes a mark that is executed at `now`, and returns how it changes the region, if it does.
    pub(crate) fn take(&mut self, mark: Mark, now: RunPosition) -> Option<Event> {
        match mark {
            Mark::CommandStart => {
                self.commands = self.commands.saturating_add(1);
                self.had_command = true;
                match self.commands {
                    1 if self.programs_marked && !self.pauses => None,
                    1 => self.start(now),
                    _ => self.program_start(now),
                }
            }
            Mark::CommandStop if self.commands == 1 => {
                self.commands = 0;
                self.summary.left_open = self.summary.left_open.saturating_add(self.depth);
                self.depth = 0;
                self.stop(now)
            }
            Mark::CommandStop if self.commands > 1 => {
                self.commands -= 1;
                self.program_stop(now)
            }
            Mark::CommandStop => None,
            // The command is over.
            _ if self.had_command && self.commands == 0 => None,
            Mark::Start => self.program_start(now),
            Mark::Stop => self.program_stop(now),
        }
    }

    /// Returns the number of stretches that have ended.
    pub(crate) fn count(&self) -> u64 {
        self.summary.count
    }

    /// Returns whether the region is open.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Ends the run at `now`, and returns what became of the region.
    pub(crate) fn end(mut self, now: RunPosition) -> RegionSummary {
        self.summary.left_open = self.summary.left_open.saturating_add(self.depth);
        self.stop(now);
        self.summary
    }

    fn program_start(&mut self, now: RunPosition) -> Option<Event> {
        let programs_marked = std::mem::replace(&mut self.programs_marked, true);
        if self.pauses && self.open.is_none() {
            return self.start(now);
        }
        self.depth = self.depth.saturating_add(1);
        if !programs_marked && self.open.is_some() {
            self.summary = RegionSummary { narrowed: true, ..RegionSummary::default() };
            self.open = Some(now);
            return Some(Event::RegionAnew);
        }
        self.start(now)
    }

    fn program_stop(&mut self, now: RunPosition) -> Option<Event> {
        if self.depth > 0 {
            self.depth -= 1;
            return match self.depth > 0 || self.pauses {
                true => None,
                false => self.stop(now),
            };
        }
        if self.open.is_none() {
            self.summary.stray_stops += 1;
            return None;
        }
        (self.programs_marked, self.pauses) = (true, true);
        self.stop(now)
    }

    fn start(&mut self, now: RunPosition) -> Option<Event> {
        if self.open.is_some() {
            return None;
        }
        self.open = Some(now);
        Some(Event::Region(true))
    }

    fn stop(&mut self, (cycles, instructions): RunPosition) -> Option<Event> {
        let (since, before) = self.open.take()?;
        let stretch = Stretch { cycles: cycles - since, instructions: instructions - before };
        self.summary.count += 1;
        self.summary.cycles += stretch.cycles;
        self.summary.instructions += stretch.instructions;
        if self.summary.each.len() < MAX_LISTED_STRETCHES {
            self.summary.each.push(stretch);
        }
        Some(Event::Region(false))
    }
}

impl RegionSummary {
    /// Returns what a user should know of marks that do not go together.
    pub fn warning(&self) -> Option<String> {
        let many = |n: u64, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
        let mut parts = Vec::new();
        if self.left_open > 0 {
            let starts = many(self.left_open.into(), "start");
            parts.push(format!("{starts} without a stop: open until the command's end"));
        }
        if self.stray_stops > 0 {
            let stops = many(self.stray_stops, "stop");
            parts.push(format!("{stops} without a start: no effect"));
        }
        (!parts.is_empty()).then(|| format!("the programs' region marks: {}", parts.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Mark::{CommandStart, CommandStop, Start, Stop};

    /// Marks a hundred cycles apart: the cycle numbers at which the region is open at last, and what is said of it.
    fn open(marks: &[Mark]) -> (Vec<(u64, u64)>, RegionSummary) {
        open_in(Region::Command, marks)
    }

    fn open_in(region: Region, marks: &[Mark]) -> (Vec<(u64, u64)>, RegionSummary) {
        let (mut regions, mut since, mut open) = (Regions::new(region), None, Vec::new());
        let mut now = 0;
        for mark in marks {
            now += 100;
            match regions.take(*mark, (now, 2 * now)) {
                Some(Event::Region(true)) => assert!(since.replace(now).is_none()),
                Some(Event::Region(false)) => open.push((since.take().unwrap(), now)),
                Some(Event::RegionAnew) => {
                    assert!(since.replace(now).is_some());
                    open.clear();
                }
                Some(other) => panic!("{other:?}"),
                None => {}
            }
        }
        let end = now + 100;
        open.extend(since.map(|since| (since, end)));
        let summary = regions.end((end, 2 * end));
        let cycles: u64 = open.iter().map(|(start, stop)| stop - start).sum();
        assert_eq!((summary.count, summary.cycles), (open.len() as u64, cycles));
        assert_eq!(summary.instructions, 2 * cycles);
        let listed: Vec<u64> = summary.each.iter().map(|one| one.cycles).collect();
        assert!(listed.into_iter().eq(open.iter().map(|(start, stop)| stop - start)));
        (open, summary)
    }

    #[test]
    fn a_command_without_marks_is_the_region() {
        let (open, summary) = open(&[CommandStart, CommandStop]);
        assert_eq!(open, [(100, 200)]);
        assert!(!summary.narrowed && summary.warning().is_none());
    }

    #[test]
    fn a_programs_own_marks_narrow_the_command() {
        let (open, summary) = open(&[CommandStart, Start, Stop, CommandStop]);
        assert_eq!(open, [(200, 300)]);
        assert!(summary.narrowed && summary.warning().is_none());
    }

    #[test]
    fn repeated_marks_add_up_and_nested_ones_count_once() {
        let (repeated, _) = open(&[CommandStart, Start, Stop, Start, Stop, CommandStop]);
        assert_eq!(repeated, [(200, 300), (400, 500)]);
        // Two processes or harts with a region each are alike: the region is open as long as one of theirs is.
        let (nested, summary) = open(&[CommandStart, Start, Start, Stop, Stop, Start, Stop]);
        assert_eq!(nested, [(200, 500), (600, 700)]);
        assert_eq!(summary.warning(), None);
    }

    #[test]
    fn a_stop_first_leaves_out_what_follows_until_a_start() {
        let (open, summary) = open(&[CommandStart, Stop, Start, Stop, CommandStop]);
        assert_eq!(open, [(100, 200), (300, 400)]);
        assert!(!summary.narrowed && summary.warning().is_none());
    }

    #[test]
    fn a_command_that_was_paused_goes_on_to_its_end() {
        let (paused, summary) = open(&[CommandStart, Stop, Start, CommandStop]);
        assert_eq!(paused, [(100, 200), (300, 400)]);
        assert_eq!(summary.warning(), None);
        let (nested, summary) = open(&[CommandStart, Stop, Start, Start, Stop, CommandStop, Start]);
        assert_eq!(nested, [(100, 200), (300, 600)]);
        assert_eq!(summary.warning(), None);
        let (stray, summary) = open(&[CommandStart, Stop, Stop, CommandStop]);
        assert_eq!(stray, [(100, 200)]);
        assert!(summary.warning().unwrap().contains("1 stop without a start"));
    }

    #[test]
    fn a_region_of_marks_alone_waits_for_them() {
        let marks = [CommandStart, Start, Stop, Start, Stop, CommandStop];
        let (marked, summary) = open_in(Region::Marked, &marks);
        assert_eq!(marked, [(200, 300), (400, 500)]);
        assert!(!summary.narrowed && summary.warning().is_none());
        let (nothing, summary) = open_in(Region::Marked, &[CommandStart, Stop, CommandStop]);
        assert_eq!((nothing.len(), summary.stray_stops), (0, 1));
        // What `tipsim-run` starts within the command is a program's mark.
        let script = [CommandStart, CommandStart, CommandStop, CommandStop];
        assert_eq!(open_in(Region::Marked, &script).0, [(200, 300)]);
    }

    #[test]
    fn unbalanced_marks_are_told() {
        let (left, summary) = open(&[CommandStart, Start, Start, Stop, CommandStop]);
        assert_eq!(left, [(200, 500)]);
        assert!(summary.warning().unwrap().contains("1 start without a stop"));
        let (stray, summary) = open(&[CommandStart, Start, Stop, Stop, Stop, Start, CommandStop]);
        assert_eq!(stray, [(200, 300), (600, 700)]);
        let warning = summary.warning().unwrap();
        assert!(warning.contains("2 stops without a start"), "{warning}");
    }

    #[test]
    fn marks_after_the_command_and_stray_ends_do_not_count() {
        let (over, summary) = open(&[CommandStart, CommandStop, Start, Stop, Start, CommandStop]);
        assert_eq!(over, [(100, 200)]);
        assert_eq!(summary.warning(), None);
    }

    #[test]
    fn a_command_within_the_command_is_a_programs_mark() {
        let marks = [CommandStart, CommandStart, CommandStop, CommandStop];
        assert_eq!(open(&marks).0, [(200, 300)]);
    }

    #[test]
    fn a_guest_without_tipsim_run_has_its_own_marks_alone() {
        assert_eq!(open(&[Stop, Start, Stop, Stop]).0, [(200, 300)]);
        // Once programs have marked, later commands are not the region either.
        let later = [CommandStart, Start, Stop, CommandStop, CommandStart, CommandStop];
        assert_eq!(open(&later).0, [(200, 300)]);
    }
}
