"""Programs with threads on 1, 2, 4 and 8 harts: how they scale, what takes the rest, and how far profilers err (scripts/study parallel)."""

import argparse
import json
import pathlib
import subprocess
import sys
from typing import Any

from places import REPO
from report_terms import PROFILERS
from study import data, parallel_text, results
from study.qemu import read
from study.runs import add_options, run

SPECS = REPO / "workloads/study/parallel"
# Numbers of harts: all tasks of one fleet, of which --harts chooses some. The first is what the others are compared with.
HARTS = [1, 2, 4, 8]
# A change below this is not told: of speed-ups and errors as shares, and of cycles and instructions in proportion.
POINTS, SHARE = 0.005, 0.005
DESCRIPTION = """Runs the programs of workloads/study/parallel on 1, 2, 4 and 8 harts, one thread for each hart and the same work
on any number. It tells how they scale, what takes the rest of the harts (speed-up stacks), and how large every profiler's error is by
number of harts: parallel.txt, parallel.html, parallel.json.

It goes on where it stopped: a run whose results are whole is not run again.
"""
EXAMPLES = """Examples:
  scripts/study parallel                           all programs on 1, 2, 4 and 8 harts, to out/study-parallel
  scripts/study parallel xz kmeans --harts 1,4     these two, on one hart and on four
  scripts/study parallel --compare                 what moved since the results that the repository keeps
  scripts/study parallel --keep                    keep these results in the repository, and the tables of the README
"""


def numbers(text: str) -> list[int]:
    """Reads `--harts`."""
    found = sorted({int(number) for number in text.split(",") if number.isdigit()})
    if not found or len(found) < len(text.split(",")) or not set(found) <= set(HARTS):
        raise argparse.ArgumentTypeError(f"expected some of {','.join(map(str, HARTS))}, found {text}")
    return found


def parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser(prog="scripts/study parallel", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=raw)
    top.add_argument("names", nargs="*", metavar="NAME", help="programs (default: all)")
    top.add_argument("--harts", type=numbers, default=HARTS, metavar="N,…", help="some of 1, 2, 4 and 8 (default: all)")
    top.add_argument("--out", type=pathlib.Path, default=REPO / "out/study-parallel", metavar="DIR", help="default: out/study-parallel")
    top.add_argument("--format", choices=["text", "json"], default="text", help="of what is printed at the end")
    top.add_argument("--list", action="store_true", help="the programs; nothing is run")
    top.add_argument("--report", action="store_true", help="run nothing: the report of what is there")
    top.add_argument("--compare", action="store_true", help="also say what moved since the kept results")
    top.add_argument("--keep", action="store_true", help="write these results to workloads/study/parallel/results, and the README's tables")
    add_options(top)
    return top


def task(name: str, harts: int) -> str:
    """Returns what the fleet calls a run."""
    return f"{name}+guest.harts={harts}"


def compared(tipsim: pathlib.Path, one: pathlib.Path, several: pathlib.Path) -> dict[str, Any]:
    """Returns the speed-up of a run on one hart to one on several, with what takes the rest, as `tipsim report ONE SEVERAL` tells it."""
    command: list[str | pathlib.Path] = [tipsim, "report", one, several, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[str, Any] | None = json.loads(done.stdout).get("speedup") if done.returncode == 0 else None
    if found is None:
        sys.exit(f"study: {one} and {several}: no speed-up is told: {done.stderr.strip()}")
    lost = {part["component"]: part["lost"] for part in found["components"]}
    # A table without one of the components would not add up to the number of harts.
    if lost.keys() != parallel_text.COMPONENTS.keys():
        sys.exit(f"study: {one} and {several}: expected the components {', '.join(parallel_text.COMPONENTS)}, found {', '.join(lost)}")
    return {"speedup": found["speedup"], "lost": lost}


def program(tipsim: pathlib.Path, out: pathlib.Path, name: str, harts: list[int]) -> dict[str, Any] | None:
    """Returns what is kept of a program's runs; none if there is no run on one hart."""
    folders = {number: out / "tasks" / task(name, number) for number in harts}
    there = {number: folder for number, folder in folders.items() if (folder / "report.json").exists()}
    if HARTS[0] not in there:
        return None
    runs: dict[str, Any] = {}
    for number, folder in there.items():
        found = data.program(folder)
        elapsed = json.loads((folder / "report.json").read_text())["totals"]["elapsed"]["cycles"]
        errors = {who: {level: modes["periodic"] for level, modes in of.items()} for who, of in found["errors"].items()}
        runs[str(number)] = {
            "elapsed_cycles": elapsed, "instructions": found["instructions"], "mips": found["mips"], "host_seconds": found["host_seconds"],
            "stack": found["stack"], "result": found["result"],
            "errors": {who: {level: {key: entry[key] for key in ["error", "noise", "bias"]} for level, entry in of.items()}
                       for who, of in errors.items()},
        }
        if number > HARTS[0]:
            runs[str(number)] |= compared(tipsim, there[HARTS[0]], folder)
    return {key: found[key] for key in ["commit", "name", "about", "core", "packages"]} | {"runs": runs}


def moved(specs: pathlib.Path, programs: list[dict[str, Any]]) -> str:
    """Returns a line for each number that is another one than in the kept results."""
    lines = []
    for found in programs:
        before = results.kept(specs, found["name"])
        if not before:
            lines.append(f"{found['name']}: no kept results")
            continue
        for number in found["runs"].keys() & before["runs"].keys():
            old, new = before["runs"][number], found["runs"][number]
            where = f"{found['name']} on {number}"
            for key in ["elapsed_cycles", "instructions"]:
                ratio = new[key] / old[key] - 1
                if abs(ratio) >= SHARE:
                    lines.append(f"{where}: {key} {old[key]:,} -> {new[key]:,} ({100 * ratio:+.1f} %)")
            for who in PROFILERS:
                for level, entry in old["errors"].get(who, {}).items():
                    error = new["errors"][who][level]["error"]
                    if abs(error - entry["error"]) >= POINTS:
                        lines.append(f"{where}: error of {who} by {level} {100 * entry['error']:.1f} -> {100 * error:.1f} %")
            if new["result"] != old["result"]:
                lines.append(f"{where}: the program's result is another one")
    return "".join(f"{line}\n" for line in sorted(lines)) or "nothing moved since the kept results\n"


def keep(specs: pathlib.Path, study: dict[str, Any]) -> None:
    """Writes the results that the repository keeps, without what depends on the host, and the README's tables."""
    for found in study["programs"]:
        runs = {number: {key: value for key, value in of.items() if key not in ["mips", "host_seconds"]}
                for number, of in found["runs"].items()}
        results.write(specs, found["name"], {**found, "runs": runs})
    parallel_text.write_tables(specs / "README.md", study)


def main() -> int:
    args = parser().parse_args()
    found = {path.stem: path for path in sorted(SPECS.glob("*.toml")) if path.stem != "common"}
    unknown = [name for name in args.names if name not in found]
    if unknown:
        print(f"study: {unknown[0]}: no such program; expected one of {', '.join(found)}", file=sys.stderr)
        return 2
    names = args.names or list(found)
    # All others are compared with one hart.
    args.harts = sorted({HARTS[0], *args.harts})
    if args.list:
        about = {name: read(found[name])["about"] for name in names}
        lines = [f"{name:12}{about[name]['shape']:30}{about[name]['work']}" for name in names]
        print(json.dumps(about, indent=2) if args.format == "json" else "\n".join(lines))
        return 0
    only = [task(name, number) for name in names for number in args.harts]
    good = args.report or run(args, found.values(), args.out, only, f"guest.harts={','.join(map(str, HARTS))}")
    # The simulator that ran them reads their files.
    tipsim = args.out / "tipsim"
    gathered = {name: program(tipsim, args.out, name, args.harts) for name in names}
    programs = [of for of in gathered.values() if of]
    if not programs:
        sys.exit(f"study: nothing in {args.out}: no program's run on one hart is whole")
    missing = [task(name, number) for name in names for number in args.harts
               if str(number) not in (gathered[name] or {"runs": {}})["runs"]]
    study = {"harts": args.harts, "programs": programs, "missing": missing}
    text = parallel_text.text(study)
    (args.out / "parallel.json").write_text(json.dumps(study, indent=1) + "\n")
    (args.out / "parallel.txt").write_text(text)
    (args.out / "parallel.html").write_text(parallel_text.page(study))
    if args.keep:
        keep(SPECS, study)
    print(json.dumps(study, indent=1) if args.format == "json" else text, end="\n" if args.format == "json" else "")
    if args.compare:
        print(moved(SPECS, programs), end="")
    print(f"results: {args.out}/parallel.html, parallel.txt, parallel.json, tasks/", file=sys.stderr)
    return 0 if good and not missing else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        # What is done is kept, and scripts/fleet has said so.
        sys.exit(130)
