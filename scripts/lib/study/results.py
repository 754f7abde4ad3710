"""The results that the repository keeps, one small JSON per program, and what moved since."""

import json
import pathlib
import re
from typing import Any

from report_terms import PROFILERS
from study.data import Study

# A change below this is not told: points of error, and shares of cycles and instructions.
POINTS, SHARE = 0.002, 0.002
# Said of a program that wrote what the kept results have.
AS_KEPT = "as kept"


def path(specs: pathlib.Path, name: str) -> pathlib.Path:
    return specs / "results" / f"{name}.json"


def kept(specs: pathlib.Path, name: str) -> dict[str, Any]:
    file = path(specs, name)
    return json.loads(file.read_text()) if file.exists() else {}


def rounded(value: object) -> object:
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return round(value, 5) if isinstance(value, float) else value


def write(specs: pathlib.Path, name: str, content: dict[str, Any]) -> None:
    """Writes what is kept of a program, with a line for each innermost table."""
    path(specs, name).parent.mkdir(exist_ok=True)
    text = json.dumps(rounded(content), indent=1)
    path(specs, name).write_text(re.sub(r"\{[^{}]*\}", lambda table: re.sub(r"\s+", " ", table[0]), text) + "\n")


def keep(specs: pathlib.Path, study: Study) -> None:
    for program in study["programs"]:
        errors = {who: {level: {mode: {key: entry[key] for key in ["error", "noise", "bias", "published_length"]}
                                for mode, entry in modes.items()}
                        for level, modes in levels.items()} for who, levels in program["errors"].items()}
        kept_keys = {key: program[key] for key in ["commit", "name", "core", "packages", "cycles", "instructions", "ipc", "class",
                                               "stack", "top_down", "tea", "result"]}
        output = program.get("output")
        if output == AS_KEPT:
            output = kept(specs, program["name"]).get("output")
        if output:
            kept_keys["output"] = output
        write(specs, program["name"], {**kept_keys, "errors": errors})


def moved(specs: pathlib.Path, study: Study) -> str:
    """A line for each number of each program that moved."""
    lines = []
    for program in study["programs"]:
        before = kept(specs, program["name"])
        if not before:
            lines.append(f"{program['name']}: no kept results")
            continue
        for key in ["cycles", "instructions"]:
            ratio = program[key] / before[key] - 1
            if abs(ratio) >= SHARE:
                lines.append(f"{program['name']}: {key} {before[key]:,} -> {program[key]:,} ({100 * ratio:+.1f} %)")
        for key in ["core", "class", "packages"]:
            if program[key] != before[key]:
                lines.append(f"{program['name']}: {key} {before[key]} -> {program[key]}")
        for who in PROFILERS:
            for level, modes in before["errors"].get(who, {}).items():
                old = modes["periodic"]["error"]
                new = program["errors"][who][level]["periodic"]["error"]
                if abs(new - old) >= POINTS:
                    lines.append(f"{program['name']}: error of {who} by {level} {100 * old:.2f} -> {100 * new:.2f} %")
    return "".join(f"{line}\n" for line in lines) or "nothing moved since the kept results\n"
