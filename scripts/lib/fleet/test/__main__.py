"""Fleets, end to end: on this machine, and on a Slurm cluster of it alone whose tasks, daemons and driver are killed on the way.

Whatever happens, each task is done once, never by two at a time, and both engines find the same.
"""

import argparse
import itertools
import json
import multiprocessing
import multiprocessing.queues
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse

from fleet.matrix import seeds, split_values, task_name
from fleet.results import profile_of, region_of
from fleet.state import Axes, Fleet, write_json
from fleet.test.cluster import until
from fleet.test.drivers import Driver, claim_all, end_all, kill, say, simulators, watch
from fleet.test.slurm import SlurmTest
from places import REPO

SPEC = """[guest]
memory = "128M"
[run]
boot = "functional"
region = "command"
command = "{command}"
[record]
trace = false
detail = false
[[sampler]]
profiler = ["tip", "nci"]
period = 199
[[sampler]]
profiler = ["tip", "nci"]
period = 1009
mode = "random"
"""
SAMPLED = """
[run.sampling]
unit = 5000
warm_up = 20000
predictors = 100000
every = 500000
store = true
"""
COMMANDS = {"nothing": "true", "list": "ls / > files"}
MATRIX = ["--preset", "boom-4w,large-boom", "--vary", "core.rob.entries=48,60,72,84,96", "--seeds", "2"]
TASKS = 40
# What a simulation finds. Its time is the host's affair.
FOUND = ["status", "instructions", "cycles", "ipc", "errors", "cycle_stack", "spec_sha256", "tipsim_sha256"]


class Test:
    def __init__(self, args: argparse.Namespace) -> None:
        self.out, self.tipsim, self.guest = args.out.resolve(), args.tipsim.resolve(), args.guest_dir.resolve()
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(parents=True)
        # Empty: the first tasks write their checkpoint at the same time.
        os.environ["TIPSIM_CACHE"] = str(self.out / "cache")
        self.specs = [self.spec(name, command) for name, command in COMMANDS.items()]

    def spec(self, name: str, command: str) -> pathlib.Path:
        path = self.out / f"{name}.toml"
        path.write_text(SPEC.format(command=command))
        return path

    def fails(self, words: str, *arguments: str | pathlib.Path) -> None:
        """A command that is refused, in these words."""
        command = [REPO / "scripts/fleet", *arguments, "--tipsim", self.tipsim, "--guest-dir", self.guest]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        one_line = done.stderr.count("\n") == 1
        assert done.returncode == 2 and words in done.stderr and one_line, f"no \"{words}\": {done.returncode}, {done.stderr}"

    def claims(self) -> None:
        """Of many that want the same tasks at the same time, each task has one; then those of the dead are free, and of silent hosts."""
        folder = self.out / "claims"
        folder.mkdir()
        write_json(folder / "matrix.json", {"tasks": {f"task{number}": {} for number in range(100)}, "retries": 1})
        queue: multiprocessing.queues.Queue[list[str]] = multiprocessing.Queue()
        racers = [multiprocessing.Process(target=claim_all, args=[folder, queue], daemon=True) for _ in range(8)]
        for racer in racers:
            racer.start()
        claimed = [task for _ in racers for task in queue.get(timeout=60)]
        fleet = Fleet(folder)
        assert sorted(claimed) == sorted(fleet.tasks), "claimed twice, or not at all"
        assert fleet.claim("task0") is None, "claimed from the living"
        for racer in racers:
            racer.kill()
            racer.join()
        again = fleet.claim("task0")
        assert again is not None and again[0] == 2, "not claimed from the dead"
        # Each try of another host has a silence in seconds, a job, Slurm's answer whether that runs, and whether the try counts as alive.
        foreign_tries: list[tuple[int, str | None, bool | None, bool]] = [
            (0, None, None, True), (1000, None, None, False), (0, "7", False, True),
            (1000, "7", True, True), (1000, "7", False, False), (1000, "7", None, True),
        ]
        for silence, job, runs, expected in foreign_tries:
            foreign = {"owner": fleet.me | {"machine": "another", "job": job, "restart": "0"}, "number": 1}
            os.utime(fleet.try_path("task1", 1), (time.time() - silence,) * 2)

            def answer(_job: str, runs: bool | None = runs) -> bool | None:
                return runs

            fleet.jobs = answer
            assert fleet.alive("task1", foreign) is expected, (silence, job, runs)
        say("8 processes claim 100 tasks: each once")

    def matrices(self) -> None:
        """Names of tasks, and what is refused before anything is run."""
        assert split_values('a,"b,c",[1, 2],') == ["a", '"b,c"', "[1, 2]", ""]
        assert seeds("3") == [1, 2, 3] and seeds("7,5") == [7, 5]
        assert task_name({"spec": "a", "preset": "b", "rob.entries": "64", "seed": 1}, {}) == "a+b+rob.entries=64+seed=1"
        alike: list[Axes] = [{"spec": "a", "run.command": command} for command in ["ls /", "ls ."]]
        first = task_name(alike[0], {})
        assert first != task_name(alike[1], {first}), first
        spec, plain = self.specs[0], self.out / "plain.toml"
        plain.write_text("[run]\ncommand = 'true'\n")
        refused: list[tuple[str, list[str | pathlib.Path]]] = [
            ("none.toml: No such file", ["none.toml"]),
            ("expected KEY=VALUE", [spec, "--vary", "core.rob.entries"]),
            ("--seeds 0: expected", [spec, "--seeds", "0"]),
            ("plain.toml: --seeds: expected a [[sampler]]", [plain, "--seeds", "2"]),
            ("core.rob.entrys", [spec, "--preset", "boom-4w", "--set", "core.rob.entrys=64"]),
            ("--partition: expected --engine slurm", [spec, "--partition", "long"]),
            ("different names", [spec, "--preset", "boom-4w,boom-4w"]),
            ("found none", [spec, "--resume"]),
        ]
        for words, arguments in refused:
            self.fails(words, *arguments, "--out", self.out / "refused")
        assert not (self.out / "refused").exists()
        say("names and refusals")

    # On this machine

    def local(self) -> None:
        """The whole matrix; stopped once in the midst."""
        run: list[str | pathlib.Path] = [*self.specs, *MATRIX]
        began = time.monotonic()
        driver = Driver(self, "local", *run)
        driver.wait_for(5)
        driver.process.send_signal(signal.SIGINT)
        driver.end(130)
        assert not simulators(driver.folder), "a stopped driver leaves a simulator"
        assert "To go on: scripts/fleet run --resume" in driver.log.read_text()
        self.fails("--vary: expected {\"core.rob.entries\"", *self.specs, *MATRIX[:2], "--seeds", "2", "--out", driver.folder)
        drivers = [Driver(self, "local", *run), Driver(self, "local", *run, "--jobs", "1")]
        until(lambda: simulators(drivers[0].folder), "a simulator")
        kill(next(iter(simulators(drivers[0].folder).values()))[0])
        watch(drivers)
        say(f"{TASKS} tasks on this machine, stopped once, then by two drivers, one killed: {time.monotonic() - began:.0f} s")

    def failures(self) -> None:
        """A command that fails is not tried again; a task that is killed too often is lost; both are run when asked for again."""
        folder = self.out / "failed"
        bad = self.spec("bad", "echo because; false")
        good = self.specs[0]
        driver = Driver(self, "failed", bad, good, "--retries", "0")
        until(lambda: simulators(folder).get("nothing"), "a simulator")
        kill(simulators(folder)["nothing"][0])
        driver.end(1)
        results = Fleet(folder).results()
        assert results["bad"]["status"] == "failed" and results["bad"]["exit_status"] == 1, results["bad"]
        assert any("because" in line for line in results["bad"]["console"]), results["bad"]
        assert results["nothing"]["status"] == "lost" and "signal 9" in results["nothing"]["reason"], results["nothing"]
        assert [results[task]["tries"] for task in ["bad", "nothing"]] == [1, 1]
        Driver(self, "failed", "run", "--resume").end(1)
        results = Fleet(folder).results()
        assert results["nothing"]["status"] == "done" and results["bad"]["status"] == "failed", results
        report = subprocess.run([REPO / "scripts/fleet", "report", folder], capture_output=True, text=True, check=True)
        page = pathlib.Path(report.stdout.strip()).read_text()
        assert "1 of 2 runs done" in page and "failed: the guest&#x27;s command ended with 1" in page, page
        status = subprocess.run([REPO / "scripts/fleet", "status", folder, "--format", "json"], capture_output=True, text=True, check=True)
        assert json.loads(status.stdout)["counts"] == {"failed": 1, "done": 1}, status.stdout
        say("failed and lost tasks: told apart, reasons kept, run again when asked for")

    def without_a_mark(self) -> None:
        """A task whose region never began has failed, whatever its command said."""
        marked = self.spec("marked", "true")
        marked.write_text(marked.read_text().replace('region = "command"', 'region = "marked"'))
        driver = Driver(self, "marked", marked).end(1)
        result = Fleet(driver.folder).results()["marked"]
        assert result["status"] == "failed" and "nothing was profiled" in result["reason"], result
        assert "nothing was profiled" in (driver.folder / "fleet.html").read_text()
        say("a region that never began: failed")

    def stored_units(self) -> None:
        """Stored units of a run on several cores: each core once, also if a worker is killed; on its own core they take what they took."""
        spec, stored = self.spec("sampled", "i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); done"), self.out / "stored"
        spec.write_text(spec.read_text() + SAMPLED)
        subprocess.run([self.tipsim, "run", spec, "--out", stored, "--guest-dir", self.guest], check=True, capture_output=True)
        self.fails("stored: --seeds: expected parameters", stored, "--seeds", "2", "--out", self.out / "refused")
        self.fails("run.command: expected parameters of the core", stored, "--vary", "run.command=a,b", "--out", self.out / "refused")
        self.fails("found no stored-units.bin in it", self.out, "--out", self.out / "refused")
        driver = Driver(self, "retimed", stored, "--preset", "boom-4w,mega-boom", "--vary", "core.rob.entries=32,64,96", "--retries", "99")
        fleet = driver.fleet()

        def kill_one() -> bool:
            """One that runs is killed, unless one was: it may have ended meanwhile."""
            if any(attempt.get("outcome") == "lost" for task in fleet.tasks for attempt in fleet.tries(task)):
                return True
            for pids in simulators(driver.folder).values():
                kill(pids[0])
            return False

        until(kill_one, "a killed simulator")
        watch([driver])
        results = fleet.results()
        assert len(results) == 6 and all(result["status"] == "done" for result in results.values()), results
        tries = [fleet.tries(task) for task in fleet.tasks]
        assert all(sum(attempt.get("outcome") == "done" for attempt in made) == 1 for made in tries), tries
        same = driver.folder / "tasks/stored+boom-4w+rob.entries=64"
        assert (same / "units.json").read_bytes() == (stored / "units.json").read_bytes()
        ratios = {task: result["cycles_ratio"] for task, result in results.items()}
        estimate = json.loads((stored / "run.json").read_text())["sampling"]["point"]
        assert results[same.name]["elapsed_cycles"] == round(estimate["cycles"]), (results[same.name], estimate)
        assert ratios[same.name] == 1 and len(set(ratios.values())) > 4, ratios
        text = (driver.folder / "fleet.txt").read_text()
        assert "of the run" in text.splitlines()[0] and " 1.0000 " in text, text
        say(f"stored units of a run: 6 cores, each once, {sum(map(len, tries)) - 6} killed and tried again")

    def curves(self) -> None:
        """Of what was varied: the axis along a curve, its lines, its points over seeds, and what links where."""
        folder = self.out / "curves"
        tasks = {f"a+{size}+{rob}+{seed}": {"spec": "a", "axes": {"spec": "a", "l2": size, "rob": rob, "seed": seed}, "set": []}
                 for size in ["256K", "1M"] for rob in ["32", "64", "96"] for seed in [1, 2]}
        folder.mkdir()
        write_json(folder / "matrix.json", {"id": "1", "commit": "c", "retries": 1, "tasks": tasks,
                                            "asked": {"specs": {"a": {}}, "vary": {}, "tipsim": "t", "guest": "g"}})
        for number, name in enumerate(tasks):
            place = folder / ("failed" if number == 11 else "tasks") / name
            place.mkdir(parents=True)
            cycles = 1000 + number
            # The run took ten times as long as its region.
            report = {"totals": {"elapsed": {"cycles": cycles, "ms": 1.0}, "instructions": 2 * cycles, "ipc": 9.0},
                      "columns": [{"name": "tip"}], "categories": ["Execution"], "counters": {"events": {"MEM.L2.MISS": 7 + number}},
                      "processes": [{"name": "all", "errors": [{"instruction": {"error": 0.25}}], "stack": [1.0]}]}
            write_json(place / "report.json", report)
            (place / "report.html").touch()
            write_json(place / "result.json", {"task": name, "status": "failed" if number == 11 else "done", "reason": "because",
                                               "instructions": 90000, "cycles": 10 * cycles, "ipc": 9.0,
                                               **region_of(report), **profile_of(report)})
        command = [REPO / "scripts/fleet", "report", folder, "--sampler", "tip"]
        subprocess.run([*command, "--show", "mem.l2.miss"], check=True, stdout=subprocess.DEVNULL)
        cycles, ipc, misses = json.loads((folder / "fleet.json").read_text())["curves"]
        assert (cycles["along"], cycles["values"]) == ("rob", [[32, "32"], [64, "64"], [96, "96"]]), cycles
        points = [[32, 1000.5, 1000, 1001], [64, 1002.5, 1002, 1003], [96, 1004.5, 1004, 1005]]
        assert cycles["lines"][0] == {"name": "l2 = 256K", "points": points}, cycles
        # One of the two runs of the last point failed.
        assert cycles["lines"][1]["points"][2] == [96, 1010, 1010, 1010] and len(cycles["lines"]) == 2, cycles
        assert (ipc["metric"], ipc["lines"][0]["points"][0][1]) == ("IPC", 2), ipc
        assert (misses["metric"], misses["lines"][1]["points"][0]) == ("MEM.L2.MISS", [32, 13.5, 13, 14]), misses
        page = (folder / "fleet.html").read_text()
        links = [urllib.parse.unquote(link) for link in re.findall(r'href="([^"]+)"', page)]
        assert len(links) == 11 and all((folder / link).is_file() for link in links), links
        assert "a+1M+96+2: failed: because" in page and page.count("<polyline") == 6, page
        assert "l2 = 1M, rob = 64: 1,008 elapsed cycles" in page, page
        lines = (folder / "fleet.txt").read_text().splitlines()
        assert lines[0].endswith("MEM.L2.MISS") and lines[1].split()[-1] == "7" and " 1,000 " in lines[1], lines
        subprocess.run([*command, "--along", "l2"], check=True, stdout=subprocess.DEVNULL)
        along = json.loads((folder / "fleet.json").read_text())["curves"][0]
        assert (along["values"], len(along["lines"])) == ([[1 << 18, "256K"], [1 << 20, "1M"]], 3), along
        for words, *more in [("such as MEM.L2.MISS", "--show", "l2_misses"), ("--along seed: expected a parameter", "--along", "seed"),
                             ("found l2, rob", "--along", "mhz")]:
            done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
            assert done.returncode == 2 and words in done.stderr, (words, done.stderr)
        say("curves, counters and links: right")

    def compare(self) -> None:
        fleets = [Fleet(self.out / name) for name in ["local", "slurm"]]
        local, slurm = [fleet.results() for fleet in fleets]
        assert len(local) == TASKS and local.keys() == slurm.keys(), (len(local), len(slurm))
        for task, result in local.items():
            for key in FOUND:
                assert result[key] == slurm[task][key], f"{task}: {key}: {result[key]} here, {slurm[task][key]} by Slurm"
            assert result["errors"]["tip"]["instruction"] > 0 and result["cycles"] > 0, result
        assert len({result["cycles"] for result in local.values()}) > TASKS / 4, "what is varied has no effect"
        tries = lost = 0
        for fleet in fleets:
            for task in fleet.tasks:
                made = fleet.tries(task)
                tries += len(made)
                lost += len(fleet.lost(made)) if fleet is fleets[1] else 0
                assert sum(attempt.get("outcome") == "done" for attempt in made) == 1, made
                for before, after in itertools.pairwise(made):
                    assert before.get("ended", 0) <= after["started"], f"{task}: begun again before its end"
            left = [str(path) for path in fleet.folder.rglob("*") if re.match(r"\.(matrix|result|\d+|clock|fleet|tipsim)", path.name)]
            assert not left and not os.listdir(fleet.folder / "running"), f"half-written: {left} {os.listdir(fleet.folder / 'running')}"
        caches = list((self.out / "cache/checkpoints").iterdir())
        assert len(caches) == 2 and all(path.suffix == ".ckpt" for path in caches), f"one for each width of core: {caches}"
        say(f"the same by both, each once: {tries} tries of {2 * TASKS} tasks, {lost} lost by Slurm")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 scripts/lib fleet.test", description=__doc__)
    parser.add_argument("--tipsim", required=True, type=pathlib.Path, help="the simulator")
    parser.add_argument("--guest-dir", required=True, type=pathlib.Path, help="the guest")
    parser.add_argument("--out", default=REPO / "out/fleet-test", type=pathlib.Path, help="where it runs")
    test = Test(parser.parse_args())
    # Whoever ends the test ends all that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("fleet test: stopped"))
    try:
        test.claims()
        test.matrices()
        test.curves()
        test.failures()
        test.without_a_mark()
        test.stored_units()
        test.local()
        SlurmTest(test, [*test.specs, *MATRIX], TASKS).run()
        test.compare()
    finally:
        end_all()


if __name__ == "__main__":
    main()
