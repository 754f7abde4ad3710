//! GDB's `monitor` commands.

use gdbstub::outputln;
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd};
use machine::Mark;
use report::printable;

use super::End;
use super::target::Debugged;

const HELP: &str = "\
help          this
info          harts, memory, and how the machine runs
cycle         cycles and instructions since reset
region start  a region of interest starts here, as by its instruction; region stop: it ends
reset         the machine begins anew (then: maintenance flush register-cache)
quit          ends tipsim";

impl MonitorCmd for Debugged<'_> {
    fn handle_monitor_cmd(
        &mut self,
        command: &[u8],
        mut out: ConsoleOutput<'_>,
    ) -> Result<(), &'static str> {
        let command = String::from_utf8_lossy(command);
        let words: Vec<_> = command.split_whitespace().collect();
        match words[..] {
            [] | ["help"] => outputln!(out, "{HELP}"),
            ["info"] => self.info(&mut out),
            ["cycle"] => {
                for (hart, (instructions, cycles)) in
                    self.session.system().harts.positions().enumerate()
                {
                    outputln!(out, "hart {hart}: {cycles} cycles, {instructions} instructions");
                }
            }
            ["region", which @ ("start" | "stop")] => {
                let mark = match which {
                    "start" => Mark::Start,
                    _ => Mark::Stop,
                };
                match self.session.mark(mark) {
                    Ok(()) if self.session.is_timing() => {
                        let cycle = self.session.system().harts.first().cycle();
                        outputln!(out, "the region {which}s at cycle {cycle}");
                    }
                    Ok(()) => outputln!(
                        out,
                        "no timing core is running: a region means nothing to functional harts"
                    ),
                    Err(error) => outputln!(out, "region: {error}"),
                }
            }
            ["reset"] => self.reset(&mut out),
            ["quit"] => {
                self.ended = Some(End::Killed);
                // The answer still goes out; then there is nothing more to read.
                let _ = self.connection.shutdown(std::net::Shutdown::Read);
            }
            _ => {
                let command = printable(command.trim());
                outputln!(
                    out,
                    "{command}: expected help, info, cycle, region start, region stop, reset or quit"
                );
            }
        }
        Ok(())
    }
}

impl Debugged<'_> {
    fn info(&self, out: &mut ConsoleOutput<'_>) {
        let mode = match self.session.is_timing() {
            true => "under the timing core",
            false => "functional, one cycle per instruction",
        };
        let memory = self.session.system().board.bus.ram.size() >> 20;
        outputln!(out, "{mode}; {memory} MiB of memory at 0x80000000");
        for hart in 0..self.session.system().harts.len() {
            let (text, pc) = self.session.system().harts.describe(hart);
            outputln!(out, "thread {}: {text}, pc {pc:#x}", hart + 1);
        }
    }

    fn reset(&mut self, out: &mut ConsoleOutput<'_>) {
        let done = match self.beginning {
            Ok(beginning) => self.session.restore(&beginning.state, beginning.mode),
            Err(why) => {
                outputln!(out, "reset: {why}");
                return;
            }
        };
        match done {
            Ok(()) => {
                outputln!(
                    out,
                    "the machine is as it was before its first instruction, but for disks and files; \
                     `maintenance flush register-cache` has GDB look again"
                );
            }
            Err(error) => outputln!(out, "reset: {error}"),
        }
    }
}
