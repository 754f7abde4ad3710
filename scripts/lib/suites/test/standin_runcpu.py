#!/usr/bin/env python3
"""The stand-in's runcpu: builds, sets up a run folder and writes command files, as our configuration and the package suites expect it."""

import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys

options = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
macros = dict(value.partition("=")[::2] for word, value in itertools.pairwise(sys.argv) if word == "--define")
program = sys.argv[-1]


def configuration(text: str) -> dict[str, str]:
    """Variables of the sections that hold for every program, with macros in their places."""
    found, section, skip = {}, "default", False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("%ifdef"):
            skip = re.findall(r"\{(\w+)\}", line)[0] not in macros
        elif line.startswith("%else"):
            skip = not skip
        elif line.startswith("%endif"):
            skip = False
        elif skip or not line or line.startswith("#"):
            continue
        elif line.endswith(":"):
            section = line[:-1]
        else:
            name, _, value = line.partition("=")
            # Every macro must be defined, also in sections of other programs.
            value = re.sub(r"%\{(\w+)\}", lambda match: macros[match[1]], value.strip())
            if section.startswith("default"):
                found[name.strip()] = value
    return found


config = configuration(pathlib.Path(options["config"]).read_text())
label = config["label"]
tree = pathlib.Path(os.environ["SPEC"])
source = tree / "benchspec/CPU" / program
folder = pathlib.Path(options["output_root"]) / "benchspec/CPU" / program
executable = f"tiny_r_base.{label}"
size = options["size"] if options["size"] != "ref" else "refspeed" if program.endswith("_s") else "refrate"
data = source / "data" / size
run = folder / "run" / f"run_base_{size}_{label}.0000"


def build() -> None:
    log = folder / f"build/build_base_{label}.0000/make.out"
    for path in (log.parent, folder / "exe"):
        path.mkdir(parents=True, exist_ok=True)
    flags = " ".join(config.get(name, "") for name in ("OPTIMIZE", "EXTRA_CFLAGS", "EXTRA_PORTABILITY"))
    command = f"{config['CC']} {flags} -o exe/{executable}"
    with log.open("w") as said:
        made = subprocess.run([*command.split(), *source.glob("src/*.c")], cwd=folder, stdout=said, stderr=subprocess.STDOUT)
    if made.returncode:
        sys.exit("the stand-in's build failed")


def set_up() -> None:
    build()
    run.mkdir(parents=True)
    shutil.copy(folder / "exe" / executable, run)
    for path in (data / "input").iterdir():
        shutil.copy(path, run)
    if (run / "control").exists():
        made = subprocess.run([f"./{executable}", "make"], cwd=run, check=True, capture_output=True, text=True)
        (run / "in.txt").write_text(made.stdout)
    own = f"../{run.name}/{executable}"
    commands = [f"-o {name}.out -e {name}.err {own} in.txt > {name}.out 2>> {name}.err" for name in ("tiny", "second")]
    # A speed program is two processes at a time.
    commands = [f"{command} &" for command in commands] + ["wait"] if program.endswith("_s") else commands[:1]
    (run / "speccmds.cmd").write_text("\n".join(["-E TINY_SCALE 3", f"-C {run}", *commands]) + "\n")


def write_comparison() -> None:
    own, output = f"../{run.name}/{executable}", data / "output"
    copy = output / "in.txt" if (output / "in.txt").exists() else data / "input/in.txt"
    lines = [f"-o same.out -e same.err {own} in.txt {copy} > same.out 2>> same.err"]
    compared = {"same.out": "same.out", "tiny.out": "tiny.out"}
    if program.endswith("_s"):
        lines.insert(0, "-o sorted.out -e sorted.err specperl sort.pl second.out > sorted.out 2>> sorted.err")
        compared["sorted.out"] = "tiny.out"
    for name, expected in compared.items():
        lines.append(f"-o {name}.cmp -e {name}.err {tree}/bin/harness/specdiff -m {output}/{expected} {name} > {name}.cmp")
    (run / "compare.cmd").write_text("\n".join(lines) + "\n")


actions = {"build": build, "runsetup": set_up, "validate": write_comparison}
if "fake" not in options and options["action"] == "validate":
    sys.exit("the stand-in validates with --fake only")
print(f"runcpu of the stand-in: {options['action']} {program}, {label}", flush=True)
actions[options["action"]]()
