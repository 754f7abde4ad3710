"""What the measurements of this folder share: builds guest, simulator and programs, and runs specs."""

import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parent.parent


def build() -> list[str]:
    """Builds guest and simulator; where they are."""
    command = [str(REPO / "scripts/fleet"), "build"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-2:]


def compile_program(program: Path, source: Path, *flags: str | Path) -> None:
    subprocess.run(["riscv64-linux-gnu-gcc", *flags, "-static", "-o", program, source], check=True)


def simulate(tipsim: str, spec: Path, out: Path, *options: str) -> str:
    """Runs a spec; what its console showed."""
    subprocess.run([tipsim, "run", spec, *options, "--out", out], check=True, stdout=subprocess.DEVNULL)
    return (out / "console.log").read_text(errors="replace").replace("\r", "")


def with_files(files: list[Path]) -> list[str]:
    """The options by which a spec has these files."""
    names = ",".join(f"'{file}'" for file in files)
    return ["--set", f"run.files=[{names}]"]
