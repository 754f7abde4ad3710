"""Command line of scripts/study."""

import argparse
import json
import pathlib
import sys

from places import REPO, guest_built_last
from study import data, overhead, page, qemu, readme, results, text
from study.data import Study
from study.runs import add_options, run

SPECS = REPO / "workloads/study"
DESCRIPTION = """Runs the programs of workloads/study, judges every profiler by the Oracle on each, and puts the figures of the
published evaluation (TIP, MICRO 2021) beside what is found: study.txt, study.html, study.json.

It goes on where it stopped: a program whose results are whole is not run again. What is run at once is what the
machine has processors and memory for.
"""
EXAMPLES = """Examples:
  scripts/study                            all programs, to out/study
  scripts/study xz povray                  these two
  scripts/study --list                     what there is, and what it stands for
  scripts/study --set core.preset=mega-boom --out out/study-mega
  scripts/study --qemu                     also compare what the programs write with QEMU user mode
  scripts/study --compare                  what moved since the results that the repository keeps
  scripts/study --keep                     keep these results in the repository
  scripts/study parallel --help            programs with threads, on 1, 2, 4 and 8 harts
  scripts/study --engine slurm             on a cluster; scripts/fleet --help has the options
"""


def parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser(prog="scripts/study", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=raw)
    top.add_argument("names", nargs="*", metavar="NAME", help="programs (default: all)")
    top.add_argument("--out", type=pathlib.Path, default=REPO / "out/study", metavar="DIR", help="default: out/study")
    top.add_argument("--format", choices=["text", "json"], default="text", help="of what is printed at the end")
    top.add_argument("--list", action="store_true", help="the programs; nothing is run")
    top.add_argument("--report", action="store_true", help="run nothing: the report of what is there")
    top.add_argument("--qemu", action="store_true", help="run each program by QEMU user mode, too, and compare its results")
    top.add_argument("--overhead", action="store_true", help="run each program under perf record -e tip, too, and say what that costs")
    top.add_argument("--compare", action="store_true", help="also say what moved since the kept results")
    top.add_argument("--keep", action="store_true", help="write these results to workloads/study/results, and the tables of its README")
    add_options(top)
    top.add_argument("--specs", type=pathlib.Path, default=SPECS, metavar="DIR", help=argparse.SUPPRESS)
    return top


def specs(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """The programs' specs by name; what they are all built on is no program."""
    return {path.stem: path for path in sorted(folder.glob("*.toml")) if path.stem != "common"}


def print_list(found: dict[str, pathlib.Path], as_json: bool) -> None:
    rows = [qemu.read(path) | {"name": name} for name, path in found.items()]
    rows = [{"name": row["name"], **row["about"], "packages": row["guest"]["packages"]} for row in rows]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'program':14}{'stands for':18}{'group':16}{'fit':20}packages")
    for row in rows:
        print(f"{row['name']:14}{row['stands_for']:18}{row['group']:16}{row['fit']:20}{' '.join(row['packages'])}")


def gather(args: argparse.Namespace, found: dict[str, pathlib.Path]) -> Study:
    """The study of what has been run."""
    programs, missing = [], {}
    for name in args.names or found:
        folder = args.out / "tasks" / name
        if (folder / "report.json").exists():
            programs.append(data.program(folder))
        else:
            missing[name] = "not run, or its run failed (scripts/fleet status has the reason)"
    if not programs:
        sys.exit(f"study: nothing in {args.out}: no program's run is whole")
    for program in programs:
        wanted = results.kept(args.specs, program["name"]).get("result")
        if wanted is not None and program["result"] is not None:
            program["output"] = results.AS_KEPT if program["result"] == wanted else "DIFFERS from the kept one"
    return {
        "core": ", ".join(sorted({p["core"] for p in programs})),
        "published_samples": data.PUBLISHED_SAMPLES,
        "programs": programs,
        "missing": missing,
        "summary": data.summary(programs),
        "correlation_with_execute": data.correlations(programs),
        "exceptions": data.exceptions(programs),
    }


def guest_of(args: argparse.Namespace) -> pathlib.Path:
    """The guest that the programs ran in."""
    matrix = args.out / "matrix.json"
    if args.guest_dir or not matrix.exists():
        return args.guest_dir or guest_built_last()
    return pathlib.Path(json.loads(matrix.read_text())["guest"])


def main() -> int:
    args = parser().parse_args()
    found = specs(args.specs)
    unknown = [name for name in args.names if name not in found]
    if unknown:
        print(f"study: {unknown[0]}: no such program; expected one of {', '.join(found)}", file=sys.stderr)
        return 2
    if args.list:
        print_list({name: found[name] for name in args.names or found}, args.format == "json")
        return 0
    good = args.report or run(args, found.values(), args.out, args.names)
    study = gather(args, found)
    if args.qemu:
        good &= qemu.compare(args.out, found, study["programs"], guest_of(args))
    if args.overhead:
        good &= overhead.measure(args.out, found, study["programs"], lambda specs, out: run(args, specs, out))
    (args.out / "study.json").write_text(json.dumps(study, indent=1) + "\n")
    (args.out / "study.txt").write_text(text.text(study))
    (args.out / "study.html").write_text(page.page(study))
    if args.keep:
        results.keep(args.specs, study)
        readme.write(args.specs / "README.md", study)
    print(json.dumps(study, indent=1) if args.format == "json" else text.text(study), end="")
    if args.compare:
        print(results.moved(args.specs, study), end="")
    print(f"results: {args.out}/study.html, study.txt, study.json, tasks/", file=sys.stderr)
    differs = any(p.get("output", "").startswith("DIFFERS") for p in study["programs"])
    return 0 if good and not differs and not study["missing"] else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        # What is done is kept, and scripts/fleet has said so.
        sys.exit(130)
