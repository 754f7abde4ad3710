"""SPEC CPU2017 and SPEC CPU 2026: the suite's own tools build a program and set up its run; see the guide's chapter on suites.

All that they write goes below a folder of the cache (`--output_root`), none of it into the user's tree.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import shlex
import shutil
from typing import Any

from places import REPO
from suites.common import (
    BadTree,
    Prepared,
    Row,
    expect,
    fresh,
    key_of,
    last_lines,
    logged,
    need_commands,
    need_cross_compilers,
    say,
    static_executable,
)

# The part of our configuration that both suites share.
SHARED_CONFIG = pathlib.Path(__file__).with_name("spec.cfg")
COMPILERS = {"C": "gcc", "C++": "g++", "Fortran": "gfortran"}
# The labels of our configuration: what is cross-compiled, and what is built for this machine to make input.
LABEL, HOST_LABEL = "tipsim", "tipsim-host"
# Tools of the suite that run on the host, also where the other commands of a comparison run in the guest.
HOST_TOOLS = ("specdiff", "specperl")


@dataclasses.dataclass
class SpecCpu:
    """One edition of SPEC CPU: what differs between editions, and the functions that every suite has."""

    TITLE: str
    # Folder of the run specs, of the table of programs, and of the edition's own configuration.
    workloads: str
    # Beginning of the version in version.txt.
    version: str
    rate_memory: str
    # Macros of the configuration: the languages' standards, as GCC names them.
    standards: dict[str, str]
    SIZES: list[str] = dataclasses.field(default_factory=lambda: ["test", "train", "ref"])

    def memory(self, row: Row) -> str:
        return "8G" if row["kind"].endswith("speed") else self.rate_memory

    def configuration(self) -> str:
        """Returns our configuration for runcpu."""
        return SHARED_CONFIG.read_text() + "\n" + (REPO / "workloads" / self.workloads / "tipsim-riscv64.cfg").read_text()

    def find_tree(self, arguments: argparse.Namespace) -> pathlib.Path:
        given = arguments.spec_dir or os.environ.get("SPEC_DIR")
        if not given:
            raise BadTree(f"expected the folder of your installed {self.TITLE}, by --spec-dir DIR or SPEC_DIR, found neither")
        tree = pathlib.Path(given).absolute()
        for name in ("shrc", "bin/runcpu", "bin/specinvoke", "benchspec/CPU"):
            expect(tree / name, f"an installed {self.TITLE} (made by its install.sh), which has {name}")
        file = expect(tree / "version.txt", f"the version of {self.TITLE}")
        found = file.read_text(errors="replace").strip()
        if not found.startswith(self.version):
            raise BadTree(f"{file}: expected version {self.version}x of {self.TITLE}, found {found!r}")
        return tree

    def prepare(self, tree: pathlib.Path, row: Row, size: str, threads: int, cache: pathlib.Path) -> Prepared:
        expect(tree / "benchspec/CPU" / row["name"], f"the program {row['name']} of {self.TITLE}")
        find_input(tree, row["name"], size)
        return set_up(Tools(self, tree, row, size, threads, cache))

    def check(self, prepared: dict[str, Any], results: pathlib.Path) -> None:
        """Compares the output with the suite's own specdiff, after what else the suite does with the output on the host."""
        title = prepared["title"]
        if not prepared["checks"]:
            say(f"{title}: output not compared: the suite gave no commands for it")
            return
        expect(results, "the program's folder, as the run left it")
        for number, script in enumerate(prepared["checks"]):
            try:
                logged(f"{title}: comparison, step {number + 1} of {len(prepared['checks'])}", script, results,
                       results / f"tipsim-comparison-{number}.log", dict(os.environ, RESULTS=str(results.absolute())))
            except BadTree as error:
                # What the tool itself says is in the file to which the command leads its output.
                found = re.findall(r">\s*([^\s>]+)\s*$", script)
                file = results / found[0] if found else None
                told = f"\nThe end of {file}:\n{last_lines(file.read_text(errors='replace'))}" if file and file.is_file() else ""
                raise BadTree(f"{title}: the output differs from the suite's: {error}{told}", status=1) from error
        say(f"{title}: output as the suite expects it ({sum('specdiff' in script for script in prepared['checks'])} comparisons)")


SPEC2017 = SpecCpu("SPEC CPU2017", "spec2017", "1.1.", "3G",
                   {"c_standard": "c99", "cxx_standard": "c++03", "fortran_standard": "gnu"})
SPEC2026 = SpecCpu("SPEC CPU 2026", "spec2026", "1.0.", "4G",
                   {"c_standard": "c18", "cxx_standard": "c++17", "fortran_standard": "f2018"})


def find_input(tree: pathlib.Path, name: str, size: str) -> None:
    """Fails if the tree has no input of that size for the program `name`."""
    # A speed program may have its input in the folder of its rate program, whose number is lower by a hundred.
    twin = re.sub(r"^(\d)(\d\d\.\w+)_s$", lambda match: f"{int(match[1]) - 1}{match[2]}_r", name)
    folders = [tree / "benchspec/CPU" / program / "data" for program in (name, twin)]
    wanted = [size] if size != "ref" else ["refrate", "refspeed"]
    if not any((folder / data).is_dir() for folder in folders for data in wanted):
        found = sorted(path.name for folder in folders[:1] if folder.is_dir() for path in folder.iterdir())
        raise BadTree(f"{folders[0]}: expected the input {' or '.join(wanted)}, found {', '.join(found) or 'nothing'}")


class Tools:
    """runcpu and specinvoke of a tree, writing below `root`."""

    def __init__(self, suite: SpecCpu, tree: pathlib.Path, row: Row, size: str, threads: int, cache: pathlib.Path) -> None:
        self.suite, self.tree, self.row, self.size, self.threads = suite, tree, row, size, threads
        self.root = cache / key_of(tree)
        self.config = self.root / "config/tipsim-riscv64.cfg"
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(suite.configuration())
        self.logs = self.root / "logs" / row["name"]
        self.programs = self.root / "benchspec/CPU" / row["name"]

    def script(self, folder: str, command: str) -> str:
        """A command where the suite's tools are on the path."""
        return f"cd {shlex.quote(str(self.tree))} && . ./shrc > /dev/null && cd {folder} && {command}"

    def runcpu(self, what: str, action: str, *options: str) -> str:
        macros = {"jobs": os.cpu_count(), "threads": self.threads, **self.suite.standards}
        words = ["runcpu", f"--config={self.config}", f"--output_root={self.root}",
                 *(word for name, value in macros.items() for word in ("--define", f"{name}={value}")),
                 f"--action={action}", "--tune=base", f"--size={self.size}", "--copies=1", f"--threads={self.threads}",
                 "--iterations=1", "--noreportable",
                 *options, self.row["name"]]
        script = self.script(shlex.quote(str(self.tree)), " ".join(map(shlex.quote, words)))
        return logged(f"{self.row['name']}: {what}", script, self.tree, self.logs / f"{what.split()[0].strip(',')}.log")

    def build(self) -> list[pathlib.Path]:
        """Cross-builds the program, gives its executables. What compilers say is in the build folder, not in runcpu's own log."""
        try:
            self.runcpu("build", "build")
            failure = ""
        except BadTree as error:
            failure = str(error)
        executables = list(self.programs.glob(f"exe/*_base.{LABEL}"))
        if executables and not failure:
            return [static_executable(path) for path in executables]
        failure = failure or f"{self.programs / 'exe'}: expected an executable *_base.{LABEL} from runcpu --action=build, found nothing"
        files = sorted(self.programs.glob(f"build/build_base_{LABEL}.*/make*.*"), key=lambda path: path.stat().st_mtime_ns)
        told = [f"The end of {file}:\n{last_lines(file.read_text(errors='replace'))}" for file in files[-2:] if file.stat().st_size]
        raise BadTree("\n".join([failure, *told]))

    def run_folder(self, label: str) -> pathlib.Path | None:
        """The newest run folder of a label and this size, or None."""
        found = [path for path in self.programs.glob(f"run/run_base_{self.size}*_{label}.*") if path.is_dir()]
        return max(found, key=lambda path: path.stat().st_mtime_ns, default=None)

    def commands(self, folder: pathlib.Path, file: str) -> list[str]:
        """Returns the commands of a file of specinvoke as shell commands: `COMMAND &` does not wait, `wait` waits for those before it."""
        log = self.logs / f"{file}.log"
        script = self.script(shlex.quote(str(folder)), f"specinvoke -n {file}")
        text = logged(f"{self.row['name']}: commands of {file}", script, folder, log)
        lines = [line.strip() for line in text.splitlines()]
        return [line for line in lines if line and not re.match(r"#|specinvoke |cd |export |unset |\w+=", line)]


def environment(folder: pathlib.Path, row: Row, threads: int) -> dict[str, str]:
    """Variables that the run is to have: what the suite says in its command file, and OpenMP's."""
    found = dict(re.findall(r"^-E (\w+) (.*)$", (folder / "speccmds.cmd").read_text(errors="replace"), flags=re.M))
    found = {name: value.strip("'\"") for name, value in found.items() if name not in ("PATH", "HOME", "LD_LIBRARY_PATH")}
    if row["kind"].endswith("speed"):
        found |= {"OMP_NUM_THREADS": str(threads)}
        found.setdefault("OMP_STACKSIZE", "120M")
    return found


def joined(lines: list[str]) -> list[str]:
    """Returns commands with each batch of `COMMAND &` lines as one command, which waits for all of them and fails if one of them fails."""
    commands: list[str] = []
    batch: list[str] = []
    for line in [*lines, "wait"]:
        if line.endswith("&"):
            batch.append(f'{line} jobs="$jobs $!"')
            continue
        if batch:
            script = f"jobs=; status=0; {'; '.join(batch)}; for job in $jobs; do wait $job || status=$?; done; exit $status"
            commands.append(f"sh -c {shlex.quote(script)}")
            batch = []
        if line != "wait":
            commands.append(line)
    return commands


def without_host_paths(command: str, tools: Tools, run: pathlib.Path, folder: pathlib.Path) -> str:
    """The command with files of the host as files in the folder that the guest gets."""

    def local(match: re.Match[str]) -> str:
        path = pathlib.Path(match[0])
        if path.is_relative_to(run):
            return "./" + str(path.relative_to(run))
        expect(path, f"a file that is used by: {command}")
        data = folder / "tipsim-data" / key_of(path.parent)
        data.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, data / path.name, dirs_exist_ok=True)
        else:
            shutil.copy2(path, data)
        return str((data / path.name).relative_to(folder))

    roots = "|".join(re.escape(str(root)) for root in (tools.root, tools.tree))
    return re.sub(rf"(?:{roots})/[^\s'\"<>;]+", local, command)


def compare_commands(tools: Tools, label: str, run: pathlib.Path, options: list[str]) -> tuple[pathlib.Path, list[str]]:
    """What compares the output: runcpu writes it down with the run itself, which `--fake` only pretends."""
    if not (run / "compare.cmd").is_file():
        try:
            tools.runcpu("comparison, written down", "validate", "--fake", *options)
        except BadTree as error:
            say(error)
        run = tools.run_folder(label) or run
    if not (run / "compare.cmd").is_file():
        say(f"{run}/compare.cmd: expected from runcpu --fake, found nothing: the output will not be compared")
        return run, []
    return run, tools.commands(run, "compare.cmd")


def set_up(tools: Tools) -> Prepared:
    """Builds a program and sets up its input."""
    row = tools.row
    compilers = [COMPILERS[language] for language in row["language"].split()]
    need_cross_compilers(*compilers)
    if row["setup"] == "host":
        need_commands({compiler: compiler for compiler in compilers})
    executables = tools.build()
    # Run folders of before: runcpu numbers new ones after them.
    shutil.rmtree(tools.programs / "run", ignore_errors=True)
    label, options = (HOST_LABEL, ["--define", "host=1"]) if row["setup"] == "host" else (LABEL, [])
    tools.runcpu("setup of the run", "runsetup", *options)
    run = tools.run_folder(label)
    if run is None or not (run / "speccmds.cmd").is_file():
        raise BadTree(f"{run or tools.programs / 'run'}: expected speccmds.cmd of a run folder from runcpu --action=runsetup, "
                      "found nothing")

    target = run.name.replace(HOST_LABEL, LABEL)
    folder = fresh(tools.root / "runs" / f"{row['name']}-{tools.size}-{tools.threads}") / target
    shutil.copytree(run, folder)
    if label == HOST_LABEL:
        for path in folder.glob(f"*.{HOST_LABEL}"):
            path.unlink()
        for path in executables:
            shutil.copy2(path, folder)

    def for_guest(command: str, source: pathlib.Path) -> str:
        return without_host_paths(command, tools, source, folder).replace(source.name, target).replace(HOST_LABEL, LABEL)

    commands = joined([for_guest(command, run) for command in tools.commands(run, "speccmds.cmd")])
    if not commands:
        raise BadTree(f"{run}/speccmds.cmd: expected commands from specinvoke -n, found none")
    variables = environment(run, row, tools.threads)
    compared, lines = compare_commands(tools, label, run, options)
    by_host = [line for line in lines if any(tool in line for tool in HOST_TOOLS)]
    afterwards = [for_guest(line, compared) for line in lines if line not in by_host]
    by_host = [line.replace(f"{compared}/", "./").replace(HOST_LABEL, LABEL) for line in by_host]
    checks = [tools.script('"$RESULTS"', line) for line in by_host]
    return Prepared(f"{tools.suite.TITLE} {row['name']}, {tools.size}", folder, commands, afterwards, variables, checks)
