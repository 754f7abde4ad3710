"""How far a fleet is, on standard error: a line that changes on a terminal, else one now and then."""

import sys
import time

from fleet.state import Fleet, Result

# Seconds between two lines in a log.
PERIOD = 15


def clock(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


class Progress:
    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.began = time.monotonic()
        self.terminal = sys.stderr.isatty()
        self.last: str | None = None
        self.looked: float = 0
        self.shown: float = -PERIOD

    def show(self, running: dict[str, float], at_once: int, waiting: str = "", force: bool = False) -> None:
        """`running` tasks by name with their seconds, of which `at_once` can run; `waiting`: a word of what waits for whom."""
        now = time.monotonic()
        if now - self.looked < 1 and not force:
            return
        self.looked = now
        asked = [task for task in self.fleet.tasks if self.fleet.is_asked(task)]
        results = {task: result for task, result in self.fleet.results().items() if task in asked}
        done = sum(result["status"] == "done" for result in results.values())
        left = self.left(asked, results, running, at_once)
        words = f"fleet: {done} of {len(asked)} done, {len(results) - done} failed, {len(running)} running{waiting}, " \
            f"{clock(time.monotonic() - self.began)} elapsed"
        if left is not None and len(results) < len(asked):
            words += f", {clock(left)} left, ends about {time.strftime('%H:%M', time.localtime(time.time() + left))}"
        if self.terminal and words != self.last:
            print(f"\r\033[K{words}", end="", file=sys.stderr, flush=True)
        elif not self.terminal and (force or now - self.shown >= PERIOD):
            print(words, file=sys.stderr, flush=True)
            self.shown = now
        self.last = words

    def left(self, asked: list[str], results: dict[str, Result], running: dict[str, float], at_once: int) -> float | None:
        """Seconds to the end, by what tasks of the same spec took; None before the first."""
        measured = self.fleet.measured()
        if not measured:
            return None
        usual = sum(spec["mean"] for spec in measured.values()) / len(measured)
        work = 0.0
        for name in asked:
            if name not in results:
                spec = self.fleet.tasks[name]["spec"]
                mean = measured[spec]["mean"] if spec in measured else usual
                work += max(0, mean - running.get(name, 0))
        return work / max(1, at_once)

    def say(self, words: str) -> None:
        """A line that stays."""
        print(f"{chr(13) + chr(27) + '[K' if self.terminal else ''}fleet: {words}", file=sys.stderr, flush=True)
        self.last = None

    def end(self) -> None:
        if self.terminal:
            print(file=sys.stderr)
