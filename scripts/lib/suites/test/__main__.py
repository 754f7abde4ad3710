"""Test of the package suites: programs of small stand-ins for SPEC CPU2017, SPEC CPU 2026 and PARSEC 3.0 are built, run in the guest,
also sampled, and compared; and what is missing in a tree is said."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from places import program
from suites import commands
from suites.common import LOG_LINES, BadTree, read_table
from suites.test.standin import EDITIONS, make_parsec, make_spec

TABLES = {
    "spec2017": ["name,language,kind,setup,notes", "998.made_r,C,intrate,host,sums numbers that it made",
                 "999.tiny_r,C,intrate,,sums numbers"],
    "spec2026": ["name,language,kind,setup,notes", "899.made_s,C,intspeed,host,sums numbers that it made in two processes",
                 "799.tiny_r,C,intrate,,sums numbers"],
    "parsec": ["name,language,kind,base,without_input,notes", "tiny,C,kernels,gcc-pthreads,,sums numbers in threads"],
}
# What scripts/run-spec makes of --sampled, and units that suit programs so short.
SAMPLED = ["--set", 'run.sampling.scheme="systematic"', "--set", "run.sampling.every=20000", "--set", "run.sampling.unit=2000",
           "--set", "run.sampling.warm_up=1000"]


class Test:
    def __init__(self, tipsim: pathlib.Path, guest: pathlib.Path, folder: pathlib.Path) -> None:
        self.tipsim, self.guest, self.folder = tipsim, guest, folder
        self.environment = dict(os.environ, TIPSIM_CACHE=str(folder / "cache"), SPEC_DIR=str(folder / "cpu2017"))
        self.environment.pop("PARSEC_DIR", None)
        for edition in EDITIONS:
            make_spec(folder / edition)
        make_parsec(folder / "parsec-3.0")
        for name, lines in TABLES.items():
            (folder / name).mkdir()
            (folder / name / "programs.csv").write_text("\n".join(lines) + "\n")
            for row in read_table(folder / name):
                (folder / name / f"{row['name']}.toml").write_text(commands.spec_text(commands.SUITES[name], row))

    def suites(self, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*program("suites"), *map(str, words)], capture_output=True, text=True,
                              env=self.environment | {"LC_ALL": "C"} | environment, cwd=self.folder)

    def prepare(self, spec: str, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.suites("prepare", self.folder / spec, "--out", self.folder / "out", *words, **environment)

    def ready(self, spec: str, *words: object) -> pathlib.Path:
        """Prepares a program. Gives its folder."""
        # The checkpoint of the functional boot is shared by all runs of this memory and these harts.
        prepared = self.prepare(spec, "--set", 'guest.memory="256M"', *words)
        assert prepared.returncode == 0, prepared.stderr
        return pathlib.Path(prepared.stdout.strip().splitlines()[-1])

    def run(self, folder: pathlib.Path, sampled: bool = False) -> str:
        """Runs what is ready: its region is the program's, and the program's function is in the report. Gives what was said."""
        done = self.suites("run", folder, "--tipsim", self.tipsim, "--guest-dir", self.guest)
        assert done.returncode == 0, done.stdout + done.stderr
        run = json.loads((self.folder / "out/run.json").read_text())
        assert run["regions"]["count"] == 1, run["regions"]
        assert (run.get("sampling") or {}).get("units", 0) >= 2 if sampled else not run.get("sampling"), run.get("sampling")
        reports = [json.loads(path.read_text()) for path in (self.folder / "out").glob("**/report.json")]
        assert any(row["name"] == "sum" for report in reports for row in report["functions"]), done.stdout
        return done.stderr

    def refused(self, expected: str, prepared: subprocess.CompletedProcess[str]) -> None:
        assert prepared.returncode == 2, (prepared.returncode, prepared.stderr)
        assert expected in prepared.stderr, f"expected: {expected}\nfound: {prepared.stderr}"

    def runs(self) -> None:
        folder = self.ready("spec2017/999.tiny_r.toml")
        script = (folder / "run_base_test_tipsim.0000/tipsim-commands.sh").read_text()
        own = "../run_base_test_tipsim.0000/tiny_r_base.tipsim in.txt"
        assert "export TINY_SCALE=3\n" in script and f"\ntipsim-run {own} > tiny.out 2>> tiny.err || failed " in script, script
        assert f"\n{own} tipsim-data/" in script, script

        folder = self.ready("spec2017/998.made_r.toml")
        said = self.run(folder)
        assert "output as the suite expects it (2 comparisons)" in said, said
        self.differs(folder)
        self.run(self.ready("parsec/tiny.toml", "--parsec-dir", "parsec-3.0", "--threads", "2"))
        assert "2 threads, " in (self.folder / "out/console.log").read_text()
        self.run(self.ready("parsec/tiny.toml", "--parsec-dir", "parsec-3.0", "--size", "native", *SAMPLED), sampled=True)

        cpu2026 = ["--spec-dir", "cpu2026", "--size", "ref"]
        folder = self.ready("spec2026/799.tiny_r.toml", *cpu2026)
        assert (folder / "run_base_refrate_tipsim.0000/tipsim-commands.sh").is_file()
        folder = self.ready("spec2026/899.made_s.toml", *cpu2026, *SAMPLED)
        script = (folder / "run_base_refspeed_tipsim.0000/tipsim-commands.sh").read_text()
        assert script.count("\ntipsim-run ") == 1 and "\ntipsim-run sh -c 'jobs=; " in script, script
        said = self.run(folder, sampled=True)
        assert "output as the suite expects it (3 comparisons)" in said, said

    def differs(self, folder: pathlib.Path) -> None:
        """Another output than the suite's, in what the last run of 998.made_r left."""
        expected = self.folder / "cpu2017/benchspec/CPU/998.made_r/data/test/output/tiny.out"
        expected.write_text("1\n")
        try:
            commands.SUITES["spec2017"].check(json.loads((folder / "prepared.json").read_text()), self.folder / "out/files/results")
        except BadTree as error:
            assert error.status == 1 and "998.made_r, test: the output differs from the suite's" in str(error), error
            assert "tiny.out.cmp:\n  | " in str(error) and " differ: " in str(error), error
        else:
            raise AssertionError("another output is taken for the suite's")

    def refusals(self) -> None:
        """Whatever is missing is named: the file, what was expected, what was found."""
        tiny, tree = "spec2017/999.tiny_r.toml", self.folder / "cpu2017"
        self.refused("by --spec-dir DIR or SPEC_DIR, found neither", self.prepare(tiny, SPEC_DIR=""))
        self.refused("nowhere/shrc: expected an installed SPEC CPU2017 (made by its install.sh), which has shrc, found nothing",
                     self.prepare(tiny, "--spec-dir", "nowhere"))
        self.refused("--size: expected test, train, ref, found huge", self.prepare(tiny, "--size", "huge"))
        self.refused("999.tiny_r/data: expected the input refrate or refspeed, found test", self.prepare(tiny, "--size", "ref"))
        (tree / "version.txt").write_text("1.0.5\n")
        self.refused("version.txt: expected version 1.1.x of SPEC CPU2017, found '1.0.5'", self.prepare(tiny))
        (tree / "version.txt").write_text("1.1.9\n")
        (tree / "benchspec/CPU/999.tiny_r/src/bad.c").write_text("int bad(void) { return nothing; }\n")
        failed = self.prepare(tiny)
        self.refused("build failed: expected exit status 0, found 1. The end of ", failed)
        self.refused("/make.out:\n  | ", failed)
        self.refused("'nothing' undeclared", failed)
        assert failed.stderr.count("\n  | ") <= 2 * LOG_LINES
        shutil.rmtree(tree / "benchspec/CPU/999.tiny_r")
        self.refused("benchspec/CPU/999.tiny_r: expected the program 999.tiny_r of SPEC CPU2017, found nothing",
                     self.prepare(tiny))
        (self.folder / "spec2017/505.mcf_q.toml").touch()
        self.refused("expected the name of a program of ", self.prepare("spec2017/505.mcf_q.toml"))
        self.refused("cpu2017/version.txt: expected version 1.0.x of SPEC CPU 2026, found '1.1.9'",
                     self.prepare("spec2026/799.tiny_r.toml"))
        self.refused("799.tiny_r/data: expected the input test, found refrate",
                     self.prepare("spec2026/799.tiny_r.toml", "--spec-dir", "cpu2026"))
        self.refused("--sampled: expected one thread, since a guest with several harts cannot be sampled, found --threads 2",
                     self.prepare("spec2026/899.made_s.toml", "--spec-dir", "cpu2026", "--size", "ref", "--threads", "2", *SAMPLED))
        tiny, tree = "parsec/tiny.toml", self.folder / "parsec-3.0"
        self.refused("by --parsec-dir DIR or PARSEC_DIR, found neither", self.prepare(tiny))
        self.refused("cpu2017/.parsec_uniquefile: expected PARSEC 3.0, which has .parsec_uniquefile, found nothing",
                     self.prepare(tiny, "--parsec-dir", "cpu2017"))
        given = {"PARSEC_DIR": str(tree)}
        self.refused("simlarge.runconf: expected the run configuration of the input simlarge, found native, simdev, test",
                     self.prepare(tiny, "--size", "simlarge", **given))
        self.refused("input_simdev.tar: expected the input simdev", self.prepare(tiny, "--size", "simdev", **given))
        written = [tree / "pkgs/kernels/tiny/inst", self.folder / "cpu2017/result"]
        assert not any(path.exists() for path in written), "the user's tree was written to"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 scripts/lib suites.test", description=__doc__)
    parser.add_argument("--tipsim", required=True, type=pathlib.Path)
    parser.add_argument("--guest-dir", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    commands.write_specs(check=True)
    with tempfile.TemporaryDirectory() as folder:
        test = Test(arguments.tipsim.resolve(), arguments.guest_dir.resolve(), pathlib.Path(folder))
        test.runs()
        test.refusals()
    print("suites: run specs are as the tables say; programs of the stand-in trees ran and were compared; what is missing is named")


if __name__ == "__main__":
    main()
