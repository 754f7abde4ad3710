"""What a fleet is to run: the product of specs, presets, values and seeds, as tasks with readable names."""

import argparse
import hashlib
import itertools
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
from collections.abc import Container
from typing import Any, TypedDict

from fleet.spec import content_and_checksum, is_stored_run, sha256
from fleet.state import Axes, Fleet, FleetError, Task, create_json, read_json, write_json

LONGEST_NAME = 120
UNITS = {"": 0, "K": 10, "KiB": 10, "M": 20, "MiB": 20, "G": 30, "GiB": 30}
# Options by what they are called in the matrix.
OPTIONS = {"specs": "SPEC", "preset": "--preset", "set": "--set", "vary": "--vary", "seeds": "--seeds", "repeat": "--repeat",
           "tipsim": "tipsim", "guest": "the guest"}


class Spec(TypedDict):
    """A run spec that was asked for, with what it is built on."""

    path: str
    sha256: str
    content: dict[str, Any]


def size(text: str, where: str) -> int:
    """Bytes of a size such as 512M."""
    match = re.fullmatch(r"(\d+)([A-Za-z]*)", str(text))
    if not match or match[2] not in UNITS:
        raise FleetError(f"{where}: expected a size such as 512M or 2G, found \"{text}\"")
    return int(match[1]) << UNITS[match[2]]


def split_values(text: str) -> list[str]:
    """Values between commas, but for those in quotes and brackets."""
    values, depth = [""], 0
    quote: str | None = None
    for character in text:
        if quote:
            quote = None if character == quote else quote
        elif character in "\"'":
            quote = character
        else:
            depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0 and not quote:
            values.append("")
        else:
            values[-1] += character
    return values


def assignment(text: str, option: str) -> tuple[str, str]:
    """Key and value of KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[\w-]+(\.[\w-]+)*", key):
        raise FleetError(f"{option} {text}: expected KEY=VALUE, e.g. core.rob.entries=128")
    return key, value


def varied(texts: list[str]) -> dict[str, list[str]]:
    """Values by key."""
    axes: dict[str, list[str]] = {}
    for text in texts:
        key, values = assignment(text, "--vary")
        found = split_values(values)
        if key in axes or "" in found or len(set(found)) < len(found):
            raise FleetError(f"--vary {text}: expected different values of a key that is named once")
        axes[key] = found
    return axes


def seeds(text: str | None) -> list[int]:
    """Seeds of a number of them, or of a list."""
    if text is None:
        return []
    words = text.split(",")
    if not all(re.fullmatch(r"\d+", word) for word in words) or len(set(words)) < len(words) or words == ["0"]:
        raise FleetError(f"--seeds {text}: expected how many, e.g. 5, or a list such as 3,5,9")
    return list(range(1, int(words[0]) + 1)) if len(words) == 1 else [int(word) for word in words]


def specs(texts: list[str]) -> dict[str, Spec]:
    """Path, checksum and content of each spec, by a name that no other has."""
    paths = [pathlib.Path(text) for text in texts]
    found: dict[str, Spec] = {}
    for path in paths:
        content, checksum = content_and_checksum(path)
        alike = sum(other.stem == path.stem for other in paths) > 1
        name = f"{path.resolve().parent.name}-{path.stem}" if alike else path.stem
        if name in found:
            raise FleetError(f"{path}: expected specs of different names, found {path.stem} twice")
        found[name] = {"path": str(path.resolve()), "sha256": checksum, "content": content}
    return found


def inline(value: object) -> str:
    """A value as TOML on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {inline(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def with_seed(spec: Spec, seed: str | int) -> str:
    """The setting that gives all random samplers of a spec a seed."""
    samplers = spec["content"].get("sampler", [])
    modes = [mode if isinstance(mode, list) else [mode] for mode in (s.get("mode", "periodic") for s in samplers)]
    if not any("random" in mode for mode in modes):
        raise FleetError(f"{spec['path']}: --seeds: expected a [[sampler]] with mode = \"random\", found none; nothing else has a seed")
    return "sampler=" + inline([{**s, "seed": seed} if "random" in mode else s for s, mode in zip(samplers, modes, strict=True)])


def preset_name(preset: str) -> tuple[str, str]:
    """A preset, or its file from wherever the spec is; and what it is called."""
    if preset.endswith(".toml") or "/" in preset:
        return str(pathlib.Path(preset).resolve()), pathlib.Path(preset).stem
    return preset, preset


def axis_name(key: str) -> str:
    return key.removeprefix("core.")


def task_name(axes: Axes, taken: Container[str]) -> str:
    """A name for people and for file systems."""
    parts = [str(value) if key in ["spec", "preset"] else f"{key}={value}" for key, value in axes.items()]
    whole = "+".join(re.sub(r"[^\w.=-]+", "-", part).strip("-") for part in parts)
    name = whole[:LONGEST_NAME]
    if name != whole or name in taken:
        name = f"{name[:LONGEST_NAME - 9]}-{hashlib.sha256(json.dumps(axes).encode()).hexdigest()[:8]}"
    return name


def memory_of(spec: Spec, settings: list[str]) -> int:
    """Bytes of the guest's memory."""
    found = spec["content"].get("guest", {}).get("memory", "512M")
    for setting in settings:
        if setting.startswith("guest.memory="):
            found = setting.partition("=")[2].strip("\"'")
    return size(found, f"{spec['path']}: guest.memory")


def tasks(asked_specs: dict[str, Spec], args: argparse.Namespace) -> dict[str, Task]:
    """All tasks: axes, settings, and the guest's memory."""
    axes: list[list[tuple[str, str | int, list[str]]]] = [[("spec", name, []) for name in asked_specs]]
    if args.preset:
        presets = [preset_name(preset) for preset in args.preset]
        if len({name for _, name in presets}) < len(presets):
            raise FleetError(f"--preset {','.join(args.preset)}: expected presets of different names")
        axes.append([("preset", name, [f"core.preset={preset}"]) for preset, name in presets])
    for key, values in varied(args.vary).items():
        axes.append([(axis_name(key), value.strip("\"'"), [f"{key}={value}"]) for value in values])
    if args.seeds:
        axes.append([("seed", seed, []) for seed in seeds(args.seeds)])
    if args.repeat > 1:
        axes.append([("repeat", number, []) for number in range(1, args.repeat + 1)])
    named = {assignment(text, "--set")[0] for text in args.set} | set(varied(args.vary))
    found: dict[str, Task] = {}
    for point in itertools.product(*axes):
        spec_name = str(point[0][1])
        spec = asked_specs[spec_name]
        retimes = is_stored_run(pathlib.Path(spec["path"]))
        if retimes:
            check_of_core(spec, named, args)
        settings = []
        # As many tasks as processors: one thread each. Results are the same.
        if not retimes and "run.threads" not in named and "threads" not in spec["content"].get("run", {}):
            settings.append("run.threads=one")
        # A preset first: single parameters are set on top of it.
        settings += [text for _, _, own in point for text in own if text.startswith("core.preset=")]
        settings += args.set
        settings += [text for _, _, own in point for text in own if not text.startswith("core.preset=")]
        settings += [with_seed(spec, value) for axis, value, _ in point if axis == "seed"]
        named_axes = {axis: value for axis, value, _ in point}
        found[task_name(named_axes, found)] = {"spec": spec_name, "axes": named_axes, "set": settings, "retimes": retimes,
                                               "memory": 0 if retimes else memory_of(spec, settings)}
    return found


def check_of_core(spec: Spec, named: set[str], args: argparse.Namespace) -> None:
    """Stored units are timed on other cores: nothing else can be varied."""
    other = next((key for key in sorted(named) if not key.startswith("core.")), None)
    if other or args.seeds:
        raise FleetError(f"{spec['path']}: {other or '--seeds'}: expected parameters of the core alone (core.…), "
                         "as the units of a run are timed again without its guest")


def threads(task: Task) -> int:
    """Processors that a task keeps busy."""
    if task.get("retimes"):
        return 1
    chosen = [setting.partition("=")[2].strip("\"'") for setting in task["set"] if setting.startswith("run.threads=")]
    return 1 if chosen[-1:] == ["one"] else 2


def check_cores(tipsim: pathlib.Path, found: dict[str, Task], asked_specs: dict[str, Spec]) -> None:
    """Cores that do not exist are told of before anything is run; not those of specs with parameters of their own."""
    plain = [task for task in found.values() if asked_specs[task["spec"]]["content"].get("core", {}).keys() <= {"preset"}]
    for core in {tuple(s for s in task["set"] if s.startswith("core.")) for task in plain}:
        preset = next((s.partition("=")[2] for s in core if s.startswith("core.preset=")), None)
        if preset is None:
            continue
        command = [str(tipsim), "core", "show", preset, "--format", "json"]
        for setting in core:
            command += ["--set", setting] if not setting.startswith("core.preset=") else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            words = done.stderr.strip().removeprefix("tipsim: ").removeprefix("override: ")
            raise FleetError(f"{', '.join(core)}: {words}")


def commit(repo: pathlib.Path) -> str | None:
    """The commit of a clone, and whether it was changed; None outside one."""
    git = ["git", "-C", str(repo), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def brief(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:200] + "…"


def check_same(folder: pathlib.Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    """A folder holds one matrix."""
    for key, option in OPTIONS.items():
        before, now = old["asked"][key], new["asked"][key]
        if key == "specs" and before.keys() == now.keys():
            changed = [name for name in now if now[name] != before[name]]
            if changed:
                raise FleetError(f"{now[changed[0]]['path']}: is another spec now than when the fleet in {folder} was begun; "
                                 "use another --out")
        elif key == "specs":
            before, now = list(before), list(now)
        if before != now:
            raise FleetError(f"{folder}: has the fleet of another matrix; {option}: expected {brief(before)}, found {brief(now)}; "
                             "use another --out")


def prepare(folder: pathlib.Path, args: argparse.Namespace, tipsim: pathlib.Path, guest: pathlib.Path | None,
            repo: pathlib.Path) -> Fleet:
    """Begins a fleet, or finds the one that was begun: its folder, checked to be what is asked for now. Stored units need no guest."""
    asked_specs = specs(args.specs)
    found = tasks(asked_specs, args)
    check_cores(tipsim, found, asked_specs)
    manifest = guest / "manifest.json" if guest else None
    if manifest and not manifest.exists():
        raise FleetError(f"{guest}: expected a guest that guest-sw/build made, found no manifest.json in it")
    asked = {
        "specs": {name: {"path": spec["path"], "sha256": spec["sha256"]} for name, spec in asked_specs.items()},
        "preset": args.preset, "set": args.set, "vary": varied(args.vary), "seeds": seeds(args.seeds), "repeat": args.repeat,
        "tipsim": sha256(tipsim), "guest": manifest and sha256(manifest),
    }
    new = {"id": secrets.token_hex(4), "asked": asked, "guest": guest and str(guest.resolve()),
           "commit": commit(repo), "retries": args.retries, "tasks": found}
    old = read_json(folder / "matrix.json")
    if old is None and folder.exists() and any(not name.startswith(".") and name != "tipsim" for name in os.listdir(folder)):
        raise FleetError(f"{folder}: expected an empty folder or one of a fleet, found another")
    if old:
        check_same(folder, old, new)
        write_json(folder / "matrix.json", old | {"retries": args.retries})
    else:
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / f".tipsim.{secrets.token_hex(8)}"
        shutil.copy2(tipsim, partial)
        os.rename(partial, folder / "tipsim")
        if not create_json(folder / "matrix.json", new):
            return prepare(folder, args, tipsim, guest, repo)  # Another driver was quicker.
    return Fleet(folder)
