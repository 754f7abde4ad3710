"""PARSEC 3.0: parsecmgmt builds a program in a copy of the user's tree, with our build configuration.

The copy is in the cache; its folders of inputs lead into the user's tree, which is only read.
"""

import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
from typing import Any

from places import REPO
from suites.common import (
    BadTree,
    Prepared,
    Row,
    expect,
    fresh,
    key_of,
    logged,
    need_commands,
    need_cross_compilers,
    read_table,
    say,
    static_executable,
)

TITLE = "PARSEC 3.0"
SIZES = ["test", "simdev", "simsmall", "simmedium", "simlarge", "native"]
WORKLOADS = REPO / "workloads/parsec"
CONFIG = WORKLOADS / "gcc-tipsim.bldconf"
# What the copy gets besides: files of ours, and where they go.
ADDED = {
    CONFIG: "config",
    WORKLOADS / "hooks.h": "tipsim",
    REPO / "guest-sw/tools/region.h": "tipsim",
    WORKLOADS / "canneal_atomic.h": "pkgs/kernels/canneal/src/atomic/atomic.h",
}
VERSION = "3.0"
# Of the user's tree: what is copied, and what is not, of each package.
COPIED = [".parsec_uniquefile", "bin", "config", "env.sh", "version"]
GROUPS = ["apps", "kernels", "libs", "tools"]
NOT_COPIED = {"inputs", "inst", "obj", "outputs", "run"}
SCRIPTS = {"config.guess", "config.sub", "configure", "depcomp", "install-sh", "missing", "mkinstalldirs"}
# Links statically, and leaves symbols and frame pointers to packages with flags of their own.
WRAPPER = """\
#!/bin/sh
for word; do
    shift
    [ "$word" = -s ] || set -- "$@" "$word"
done
exec {} -static "$@" -g -fno-omit-frame-pointer
"""
# Debian's config.guess and config.sub, which know this architecture; the suite's are older than it.
NEW_SCRIPTS = pathlib.Path("/usr/share/misc")


def memory(_row: Row) -> str:
    return "2G"


def find_tree(arguments: argparse.Namespace) -> pathlib.Path:
    given = arguments.parsec_dir or os.environ.get("PARSEC_DIR")
    if not given:
        raise BadTree("expected the folder of your PARSEC 3.0, by --parsec-dir DIR or PARSEC_DIR, found neither")
    tree = pathlib.Path(given).absolute()
    for name in (".parsec_uniquefile", "bin/parsecmgmt", "config", "pkgs"):
        expect(tree / name, f"PARSEC 3.0, which has {name}")
    file = expect(tree / "version", "the version of PARSEC")
    found = file.read_text(errors="replace").strip()
    if not found.startswith(VERSION):
        raise BadTree(f"{file}: expected version {VERSION}, found {found!r}")
    return tree


def packages(tree: pathlib.Path) -> list[pathlib.Path]:
    return [package for group in GROUPS for package in sorted((tree / "pkgs" / group).glob("*/")) if (package / "parsec").is_dir()]


def build_configuration(tree: pathlib.Path, package: pathlib.Path, base: str) -> str:
    """A package's own configuration for our build: what it has for GCC, cross-compiled."""
    names = [base, "gcc-pthreads", "gcc"]
    found = next((name for name in names if (package / "parsec" / f"{name}.bldconf").is_file()), None)
    if found is None:
        raise BadTree(f"{package / 'parsec'}: expected {' or '.join(f'{name}.bldconf' for name in names)}, found neither")
    return "\n".join([
        "# Written by scripts/run-spec.",
        f'source "${{PARSECDIR}}/{package.relative_to(tree)}/parsec/{found}.bldconf"',
        f'tipsim_package {package.name}',
    ]) + "\n"


def copy_tree(tree: pathlib.Path, copy: pathlib.Path) -> None:
    """The copy of the suite with our configuration in it; made once, and anew when what is of ours in it changes."""
    ours = key_of(pathlib.Path(__file__).read_text(), *(file.read_text() for file in ADDED))
    made_with = copy / "tipsim" / "made-with"
    if made_with.is_file() and made_with.read_text() == ours:
        return
    say(f"copying {tree} to {copy} (without inputs)")
    fresh(copy)
    bases = {row["name"]: row["base"] for row in read_table(WORKLOADS)}
    for name in COPIED:
        if (tree / name).is_dir():
            shutil.copytree(tree / name, copy / name, symlinks=True)
        elif (tree / name).exists():
            shutil.copy2(tree / name, copy / name)
    for package in packages(tree):
        to = copy / package.relative_to(tree)
        to.mkdir(parents=True)
        for part in sorted(package.iterdir()):
            if part.is_dir() and part.name not in NOT_COPIED:
                shutil.copytree(part, to / part.name, symlinks=True)
        (to / "parsec" / "gcc-tipsim.bldconf").write_text(build_configuration(tree, package, bases.get(package.name, "gcc-pthreads")))
    # OpenSSL's, which some mirrors lack under this name.
    openssl = copy / "pkgs/libs/ssl/src"
    if (openssl / "config").is_file() and not (openssl / "configure").exists():
        shutil.copy(openssl / "config", openssl / "configure")
    for script in copy.glob("pkgs/**/[cdim]*"):
        if script.name in ("config.sub", "config.guess"):
            shutil.copy(NEW_SCRIPTS / script.name, script)
        # Some mirrors of the suite have lost these permissions.
        if script.name in SCRIPTS:
            script.chmod(0o755)
    (copy / "tipsim").mkdir()
    for compiler in ("riscv64-linux-gnu-gcc", "riscv64-linux-gnu-g++"):
        script = copy / "tipsim" / compiler
        script.write_text(WRAPPER.format(compiler))
        script.chmod(0o755)
    for file, place in ADDED.items():
        if (copy / place).exists():
            shutil.copy(file, copy / place)
    made_with.write_text(ours)


def run_configuration(package: pathlib.Path, size: str, threads: int) -> tuple[str, str]:
    """run_exec and run_args of an input."""
    file = package / "parsec" / f"{size}.runconf"
    if not file.is_file():
        found = sorted(path.stem for path in file.parent.glob("*.runconf"))
        raise BadTree(f"{file}: expected the run configuration of the input {size}, found {', '.join(found) or 'none'}")
    script = f'. {shlex.quote(str(file))} && printf "%s\\n%s\\n" "$run_exec" "$run_args"'
    done = subprocess.run(["bash", "-c", script], env=dict(os.environ, NTHREADS=str(threads)), capture_output=True, text=True)
    lines = done.stdout.split("\n")
    if done.returncode or len(lines) < 3 or not lines[0]:
        raise BadTree(f"{file}: expected run_exec and run_args, found {(done.stdout + done.stderr).strip()!r}")
    return lines[0], " ".join(lines[1:]).strip()


def find_archive(package: pathlib.Path, row: Row, size: str) -> pathlib.Path | None:
    """The archive of an input; None if the program needs none."""
    if row["without_input"] in ("all", size):
        return None
    archive = package / "inputs" / f"input_{size}.tar"
    if not archive.is_file():
        found = sorted(path.name for path in archive.parent.glob("*")) if archive.parent.is_dir() else []
        raise BadTree(f"{archive}: expected the input {size} (PARSEC has them in archives of their own), "
                      f"found {', '.join(found) or 'nothing'}")
    return archive


def prepare(tree: pathlib.Path, row: Row, size: str, threads: int, cache: pathlib.Path) -> Prepared:
    name = row["name"]
    package = expect(tree / "pkgs" / row["kind"] / name, f"the program {name}")
    executable, arguments = run_configuration(package, size, threads)
    archive = find_archive(package, row, size)

    need_cross_compilers("gcc", "g++")
    need_commands({"gcc": "gcc", "make": "make", "m4": "m4", str(NEW_SCRIPTS / "config.sub"): "autotools-dev"})
    root = cache / key_of(tree)
    copy = root / "tree"
    copy_tree(tree, copy)
    command = f"bin/parsecmgmt -a build -p {name} -c gcc-tipsim"
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PARSEC")}
    log = root / "logs" / f"{name}.log"
    logged(f"{name}: build", f"PARSECDIR=$PWD {command}", copy, log, kept)
    built = list((copy / package.relative_to(tree) / "inst").glob(f"*gcc-tipsim/{executable}"))
    if not built:
        raise BadTree(f"{copy / package.relative_to(tree)}/inst: expected {executable} from {command} (log: {log}), found nothing")

    folder = fresh(root / "runs" / f"{name}-{size}-{threads}") / f"{name}-{size}"
    to = folder / executable
    to.parent.mkdir(parents=True)
    if archive:
        logged(f"{name}: input {size}", f"tar -xf {shlex.quote(str(archive))}", folder, root / "logs" / f"{name}-input.log")
    shutil.copy2(static_executable(built[0]), to)
    command = f"./{executable} {arguments}".strip()
    variables = {"OMP_NUM_THREADS": str(threads)} if row["base"] == "gcc-openmp" else {}
    return Prepared(f"{TITLE} {name}, {size}", folder, [command], [], variables, [], marks_itself=True)


def check(prepared: dict[str, Any], _results: pathlib.Path) -> None:
    """The suite has no outputs to compare with."""
    say(f"{prepared['title']}: output not compared: PARSEC has nothing to compare it with")
