//! Processes, threads, functions and instructions: cycles, shares and cycle stacks.

use super::{ORACLE, ReportPath, Rule, SAMPLERS, TEA, TIP, rule};

impl ReportPath<'_> {
    pub(super) fn process(&self) -> Rule {
        let name = format!("processes.{}", self.names[1]);
        let cycles = self.own(2, "cycles");
        match self.keys[2..] {
            ["count"] => rule("Processes that the row stands for.", "counted", "profile/src/guest_context.rs", "none"),
            ["pid"] => rule("The guest kernel's process id.", "from the driver's side-band records", "profile/src/guest_context.rs", "none"),
            ["cycles"] => rule("Cycles of the process by the Oracle: each cycle is charged once, to what the commit stage does or waits for.", "sum over its instructions of units / 840 (840 units are a cycle, so that n instructions that commit together share it evenly)", ORACLE, TIP),
            ["share"] => rule("Share of all processes' profiled cycles.", "cycles / processes.all.cycles", "report/src/build.rs", TIP)
                .from(format!("{name}.cycles"), cycles)
                .from("processes.all.cycles", self.at(&["processes", "0", "cycles"]))
                .check(cycles.zip(self.at(&["processes", "0", "cycles"])).map(|(part, whole)| part / whole)),
            ["stack", _] => self.stack(&name, cycles),
            ["samples", _] => rule("Samples of this sampler in the process.", "samples × (its weight in the process / its whole weight): samples are not counted per process, their cycles say how many it got", SAMPLERS, TIP)
                .from(format!("columns.{}.samples", self.names[3]), self.at(&["columns", self.keys[3], "samples"])),
            ["errors", _, level, kind] => self.error(&name, cycles, level, kind),
            _ => self.index(),
        }
    }

    pub(super) fn command(&self) -> Rule {
        let source = "report/src/commands.rs";
        match self.keys[2..] {
            ["count"] => rule("Processes of this command.", "counted", source, "none"),
            ["cycles"] => rule(
                "Cycles of all processes of this command by the Oracle.",
                "sum of processes.*.cycles over `members`",
                source,
                TIP,
            ),
            ["share"] => rule(
                "Share of all processes' profiled cycles.",
                "sum of processes.*.share over `members`",
                source,
                TIP,
            ),
            ["stack", _] => rule(
                "Share of the command's cycles in this category.",
                "sum of processes.*.stack * processes.*.cycles over `members` / cycles of the command",
                source,
                TIP,
            ),
            _ => self.index(),
        }
    }

    /// Returns the rule of a number of the threads; `below` is entry and field.
    pub(crate) fn thread(&self, below: &[&str]) -> Rule {
        let source = "report/src/threads.rs, from the profiled cycles between the guest's switches";
        let [_, field @ ..] = below else {
            return self.no_rule();
        };
        match field {
            ["process"] => self.index(),
            ["share"] => rule(
                "Share of all cycles in which threads of this name ran in this process.",
                "cycles of the threads / (cycles - idle)",
                source,
                "none",
            )
            .from("cycles of the threads", self.own(2, "cycles")),
            ["cycles"] => rule(
                "Profiled cycles in which threads of this name ran in this process, kernel code included.",
                "sum over the threads",
                source,
                "none",
            ),
            _ => rule(
                "How many threads of the process had this name, or the kernel's number of one of them.",
                "counted, or as the guest says",
                source,
                "none",
            ),
        }
    }

    pub(crate) fn verdict(&self, below: &[&str]) -> Rule {
        let source = "report/src/verdict.rs";
        match below {
            [.., "process"] => self.index(),
            [_, "interpreted", ..] => self.interpreted(below),
            [_, "places", _, "share"] => rule(
                "Share of the cycles of its command's processes that the Oracle charges to this function.",
                "sum of the cycle stacks of its instructions / cycles of the command",
                source,
                TIP,
            ),
            [_, "inclusive", .., "share"] => rule(
                "Share of the command's cycles at and below this function; of a callee: below that caller.",
                "cycles at and below its nodes in the tree of callers / cycles of the command",
                "report/src/inclusive.rs, from calls and returns in the commit stream",
                TIP,
            ),
            [.., "share"] => rule(
                "Share of the command's cycles that the Oracle charges for this cause; of a place: there.",
                "the component of the cycle stacks / cycles of the command",
                source,
                TIP,
            ),
            _ => self.no_rule(),
        }
    }

    pub(crate) fn hart(&self, below: &[&str]) -> Rule {
        let (meaning, formula) = match below {
            [_, "stack", ..] => (
                "Share of the hart's busy cycles that the Oracle charges for this category.",
                "its cycle stack / (cycles - idle)",
            ),
            [_, "windows", _, "processes", ..] => (
                "A process, and the cycles of the window in which the hart executed it.",
                "sum of the window's cycles by process",
            ),
            [_, "cycles" | "idle" | "instructions"] => {
                ("Of this hart, in the region of interest.", "counted")
            }
            [_, "windows", _, "start" | "end"] => (
                "A cycle at which a window begins, or the one after it.",
                "as the run counts cycles",
            ),
            [_, "hart"] => ("The hart's number.", "from 0"),
            _ => return self.no_rule(),
        };
        rule(meaning, formula, "report/src/harts.rs", TIP)
    }

    pub(crate) fn what_if(&self, below: &[&str]) -> Rule {
        let source = "emulator/src/what_if.rs";
        match below {
            ["trials", _, "gain"] | ["trials", _, "select", "gain"] => rule(
                "Share of the program's cycles (on several harts: of the elapsed ones) that it takes less without a cause of lost cycles at some instructions, or with selects in the place of branches.",
                "1 - cycles without / cycles",
                "emulator/src/what_if.rs, from a run of its own",
                "timing/src/without.rs",
            )
            .check(match (self.own(below.len(), "cycles"), self.at(&["what_if", "cycles"])) {
                (Some(without), Some(cycles)) => Some(1.0 - without / cycles),
                _ => None,
            }),
            ["trials", _, "lost"] => rule(
                "Share of the program's cycles that the Oracle charges to the cause at these instructions.",
                "the components of the cycle stacks / cycles of the program",
                "emulator/src/what_if/candidates.rs",
                TIP,
            ),
            ["harts"] => rule("Harts of the run.", "guest.harts", source, TIP),
            [.., "cycles"] => rule(
                "Cycles of the program, all its processes together; on several harts: elapsed cycles of the region. Of a trial: without the cause.",
                "sum of its processes' cycles",
                source,
                TIP,
            ),
            _ => self.no_rule(),
        }
    }

    pub(super) fn row(&self) -> Rule {
        let what = if self.keys[0] == "functions" { "function" } else { "instruction" };
        let own = format!("{}.{}", self.names[0], self.names[1]);
        let (process, whole) = self.process_of(2);
        match self.keys[2..] {
            ["cycles"] => rule(format!("Cycles that the Oracle charges to this {what} in its process."), "sum of its units / 840", ORACLE, TIP),
            ["share"] => rule(format!("Share of its process's cycles that the Oracle charges to this {what}."), "cycles / cycles of the process", ORACLE, TIP)
                .from(format!("{own}.cycles"), self.own(2, "cycles"))
                .from(process, whole)
                .check(self.own(2, "cycles").zip(whole).map(|(part, whole)| part / whole)),
            ["total"] => rule(
                "Share of its process's cycles that the Oracle charges to this function and to all that it calls; what calls itself counts once.",
                "cycles at and below its nodes in the tree of callers / cycles of the process",
                "report/src/inclusive.rs, from calls and returns in the commit stream",
                TIP,
            ),
            ["stack", _] => self.stack(&process.replace(".cycles", ""), whole),
            ["store_queue"] => rule(format!("Share of its process's cycles in which this {what} waited at dispatch for room in the store queue while the ROB ran empty; the published stack has it under \"Front-end\"."), "cycles in that state / cycles of the process", "profile/src/stack.rs (FrontEndStores), from every record of the commit stream", TEA),
            ["shares", column] => rule(
                format!("Share of its own time in the process that {} gives to this {what}; the Oracle's beside it is {own}.share.", self.names[3]),
                "weight of the samples that name it / weight of all its samples in the process; a sample weighs the cycles since the one before, split evenly over the instructions that it names",
                SAMPLERS,
                TIP,
            )
            .from(format!("{own}.share (Oracle)"), self.own(2, "share"))
            .from(format!("columns.{}.samples", self.names[3]), self.at(&["columns", column, "samples"])),
            _ => self.index(),
        }
    }

    fn stack(&self, of: &str, cycles: Option<f64>) -> Rule {
        let category = *self.names.last().unwrap_or(&"");
        let meaning = format!(
            "Share of the process's cycles that the Oracle charges as \"{category}\": {}.",
            match category {
                "Execution" => "at least one instruction commits",
                "ALU stall" =>
                    "the oldest instruction waits for operands or a unit (or serialises, and is no load, store or atomic)",
                "Load stall" => "the oldest instruction is a load or atomic that waits",
                "Store stall" => "the oldest instruction is a store that waits",
                "Front-end" => "the ROB is empty and nothing flushed it",
                "Mispredict" => "the ROB is empty after a mispredicted branch",
                _ => "the ROB is empty after any other flush, exception or interrupt",
            }
        );
        rule(meaning, "cycles in that state / cycles of the process", "profile/src/stack.rs and profile/src/oracle.rs, from every record of the commit stream", "TIP (MICRO 2021), figure 7")
            .from(format!("{of}.cycles"), cycles)
            .from("cycles in that state", cycles.map(|cycles| cycles * self.value))
    }
}
