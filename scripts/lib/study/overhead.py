"""What `perf record -e tip` costs a program: the same run with it, in the guest."""

import json
import pathlib
import sys
from collections.abc import Callable

from study import qemu
from study.data import Program

RECORD = "perf record -q -e tip -F 4000 -o /tmp/tip.data -- tipsim-run "


def derived(spec: pathlib.Path, name: str, folder: pathlib.Path) -> pathlib.Path | None:
    """The spec with its profiled command under perf; None if the program marks its region by itself."""
    command = qemu.read(spec)["run"]["command"]
    if command.count("tipsim-run ") != 1:
        return None
    path = folder / f"{name}.toml"
    text = json.dumps(command.replace("tipsim-run ", RECORD), ensure_ascii=False)
    path.write_text(f"base = {json.dumps(str(spec.resolve()))}\n[run]\ncommand = {text}\n[record]\nprofilers = false\n")
    return path


def measure(
    out: pathlib.Path, found: dict[str, pathlib.Path], programs: list[Program], run: Callable[[list[pathlib.Path], pathlib.Path], bool]
) -> bool:
    """Runs each program under perf and notes its `overhead`: by how much more cycles its region has. False if a run failed."""
    folder = out / "overhead"
    (folder / "specs").mkdir(parents=True, exist_ok=True)
    specs = {p["name"]: derived(found[p["name"]], p["name"], folder / "specs") for p in programs}
    good = run([path for path in specs.values() if path], folder / "fleet")
    for program in programs:
        path = folder / "fleet/tasks" / program["name"] / "run.json"
        if path.exists():
            cycles = json.loads(path.read_text())["regions"]["cycles"]
            program["overhead"] = cycles / program["region_cycles"] - 1
        elif specs[program["name"]] is None:
            print(f"study: {program['name']} marks its region by itself: no run under perf", file=sys.stderr)
    return good
