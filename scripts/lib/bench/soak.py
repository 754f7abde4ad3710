"""A soak: rounds of Debian's programs that keep several harts busy for long, in both modes, and what they print beside QEMU."""

import argparse
import base64
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.common import add_paths
from bench.initramfs import archive
from places import REPO

SOAK = REPO / "workloads/soak"
MODES = {"functional": ["run.region=run"], "timing": ["run.region=command"]}
# More rounds than any soak has.
NO_END = 1_000_000
# What a line of the console that is compared begins with.
MARK = "soak: "
# Seconds between looks at a guest.
LOOK = 1.0
# A guest may take so many times --stall of the clock's time where others keep the host's processors busy.
PATIENCE = 4
# Seconds that tipsim has to write what it found, and QEMU to end.
GRACE = 60


@dataclass
class Soaked:
    """What a guest did."""

    name: str
    minutes: float = 0.0
    # Rounds that came to their end, and the lines that the guest printed to be compared.
    rounds: int = 0
    lines: list[str] = field(default_factory=list)
    # Everything that is wrong, in words.
    faults: list[str] = field(default_factory=list)
    instructions: int | None = None
    mips: float | None = None


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench soak", description=__doc__, epilog="""
A round assembles and links by make -j, serves four clients and a benchmark by redis, runs stress-ng's checks of itself, and compresses in
threads (workloads/soak/soak.sh). After so many minutes the guest ends with the round that it is in. Then QEMU runs as many rounds with
the same kernel, and each line that the programs print has to be the same. It fails if a line differs, if a check fails, if the guest or
the simulator ends otherwise than it should, or if the guest prints nothing for long (--stall), which is a hang.
Example: scripts/bench soak --minutes 10 --mode timing --harts 8""", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30, metavar="N", help="of the host's time, for each mode (default: 30)")
    parser.add_argument("--mode", metavar="NAME,…", default=",".join(MODES), help="these of functional, timing (default: both)")
    parser.add_argument("--harts", type=int, default=4, metavar="N", help="1 to 16 (default: 4)")
    parser.add_argument("--stall", type=float, default=15, metavar="N",
                        help="minutes of a processor's time without a line that are a hang (default: 15)")
    parser.add_argument("--core", help="core preset (default: boom-4w)")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="json: the last line is everything as JSON")
    add_paths(parser, "tipsim", "guest", "out")
    return parser.parse_args()


def lines_of(console: pathlib.Path) -> list[str]:
    """Returns the lines of a console that are compared."""
    if not console.exists():
        return []
    text = re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", console.read_text(errors="replace"))
    # The last one may not be whole yet.
    whole = text.replace("\r", "")[: text.replace("\r", "").rfind("\n") + 1]
    return [line[line.index(MARK) + len(MARK):] for line in whole.splitlines() if MARK in line]


def on_processor(pid: int) -> float:
    """Returns the seconds that a process has had of processors; 0 if it is gone."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    # Fields 14 and 15 of proc(5), of which the first two are the number and the name.
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait(child: subprocess.Popen[bytes], console: pathlib.Path, stall: float, minutes: float | None = None,
         stop: pathlib.Path | None = None) -> str | None:
    """Waits for a guest's end, asks for it after so many minutes by the file `stop`, and returns what is wrong if it stands still."""
    began = last = time.monotonic()
    used, seen = 0.0, 0
    while child.poll() is None:
        time.sleep(LOOK)
        now = time.monotonic()
        if minutes is not None and stop and now - began > 60 * minutes and stop.parent.is_dir():
            stop.touch()
        found = len(lines_of(console))
        if found > seen:
            seen, last, used = found, now, on_processor(child.pid)
        elif on_processor(child.pid) - used > 60 * stall or now - last > PATIENCE * 60 * stall:
            last_line = (lines_of(console) or ["none"])[-1]
            # tipsim ends in order, and says what was executed until then.
            child.send_signal(signal.SIGINT)
            try:
                child.wait(GRACE)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            return f"hang: no line for {(now - last) / 60:.0f} minutes, the last: {last_line}"
    return None


def told(soaked: Soaked, lines: list[str]) -> Soaked:
    """Adds what a guest printed, and what of it says by itself that something failed."""
    soaked.lines = lines
    soaked.rounds = sum(line.endswith(" end of round") for line in lines)
    for line in lines:
        status = re.search(r"status (\d+)", line)
        failed = re.search(r"(failed|untrustworthy) ([1-9]\d*)", line)
        if (status and status[1] != "0") or failed or "does not answer" in line:
            soaked.faults.append(f"a check failed: {line}")
    if soaked.rounds == 0:
        soaked.faults.append("no round came to its end")
    return soaked


def soak(args: argparse.Namespace, mode: str) -> Soaked:
    """Soaks the simulator in a mode."""
    out = args.out / mode
    partial = out.with_name(f"{out.name}.partial")
    for folder in [out, partial]:
        shutil.rmtree(folder, ignore_errors=True)
    settings = [f"guest.harts={args.harts}", f'run.command="sh soak.sh {NO_END}"', *MODES[mode]]
    settings += [f"core.preset={args.core}"] if args.core else []
    command = [args.tipsim, "run", SOAK / "soak.toml", "--guest-dir", args.guest, "--out", out]
    command += [word for setting in settings for word in ("--set", setting)]
    began = time.monotonic()
    with open(args.out / f"{mode}.log", "wb") as log:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        hang = wait(child, partial / "console.log", args.stall, args.minutes, partial / "files/stop")
    folder = out if out.is_dir() else partial
    soaked = told(Soaked(mode, (time.monotonic() - began) / 60), lines_of(folder / "console.log"))
    soaked.faults += [hang] if hang else []
    if child.returncode != 0 and not hang:
        soaked.faults.append(f"exit status {child.returncode}, see {args.out / mode}.log")
    described: dict[str, Any] = json.loads((folder / "run.json").read_text()) if (folder / "run.json").exists() else {}
    soaked.instructions, soaked.mips = described.get("instructions"), described.get("mips")
    return soaked


def packages() -> pathlib.Path:
    """Returns the root of the soak's packages, as tipsim has it unpacked."""
    names = re.findall(r'"([^"]+)"', next(line for line in (SOAK / "soak.toml").read_text().splitlines() if line.startswith("packages")))
    done = subprocess.run([REPO / "guest-sw/debian", *names, "dash"], stdout=subprocess.PIPE, text=True, check=True)
    return pathlib.Path(done.stdout.splitlines()[-1])


def reference(args: argparse.Namespace, rounds: int) -> Soaked:
    """Runs so many rounds in QEMU: the guest's kernel, and one RAM file system with its files, those of the packages, and the soak's."""
    initrd, console = args.out / "initrd.cpio", args.out / "qemu.console"
    scripts = args.out / "initrd"
    shutil.rmtree(scripts, ignore_errors=True)
    scripts.mkdir()
    shutil.copy(SOAK / "soak.sh", scripts)
    with open(initrd, "wb") as file:
        file.write((args.guest / "initramfs.cpio").read_bytes())
        for root in [packages(), scripts]:
            archive(root, file)
    line = base64.b64encode(f"cd /tmp; sh /soak.sh {rounds}".encode()).decode()
    command = ["qemu-system-riscv64", "-M", "virt", "-smp", str(min(args.harts, 8)), "-m", "3G", "-nographic", "-bios",
               args.guest / "fw_dynamic.bin", "-kernel", args.guest / "Image", "-initrd", initrd, "-append",
               f"console=ttyS0 quiet tipsim.command={line}"]
    began = time.monotonic()
    with open(console, "wb") as screen, open(args.out / "qemu.log", "wb") as log:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=screen, stderr=log)
        hang = wait(child, console, args.stall)
    initrd.unlink()
    soaked = told(Soaked("qemu", (time.monotonic() - began) / 60), lines_of(console))
    soaked.faults += [hang] if hang else []
    return soaked


def differences(found: list[str], expected: list[str]) -> list[str]:
    """Returns a sentence for each line that QEMU printed otherwise; the last line tells the number of rounds."""
    def of_rounds(lines: list[str]) -> list[str]:
        return [line for line in lines if not line.startswith("rounds ")]

    pairs = zip(of_rounds(found), of_rounds(expected), strict=False)
    return [f"differs from QEMU: {ours}; QEMU: {theirs}" for ours, theirs in pairs if ours != theirs]


def main() -> int:
    args = arguments()
    modes = args.mode.split(",")
    if not set(modes) <= MODES.keys() or not 1 <= args.harts <= 16 or args.minutes <= 0 or args.stall <= 0:
        sys.exit(f"bench: expected --mode of {', '.join(MODES)}, --harts from 1 to 16, --minutes and --stall above 0")
    os.environ.setdefault("TIPSIM_GUEST_SW", str(REPO / "guest-sw"))
    args.out.mkdir(parents=True, exist_ok=True)
    soaked = []
    for mode in modes:
        print(f"{mode}: {args.minutes:g} minutes on {args.harts} harts", flush=True)
        soaked.append(soak(args, mode))
    rounds = max(of.rounds for of in soaked)
    if rounds:
        print(f"qemu: {rounds} rounds", flush=True)
        expected = reference(args, rounds)
        if expected.rounds < rounds:
            expected.faults.append(f"QEMU came to the end of {expected.rounds} of {rounds} rounds: the others are compared with nothing")
        for of in soaked:
            of.faults += differences(of.lines, expected.lines)
        soaked.append(expected)
    print(f"\n{'':12}{'minutes':>8}{'rounds':>8}{'lines':>8}{'M inst':>10}{'MIPS':>7}  verdict")
    for of in soaked:
        instructions = f"{of.instructions / 1e6:10.0f}" if of.instructions else f"{'–':>10}"
        speed = f"{of.mips:7.1f}" if of.mips else f"{'–':>7}"
        print(f"{of.name:12}{of.minutes:8.1f}{of.rounds:8}{len(of.lines):8}{instructions}{speed}  {'FAILED' if of.faults else 'good'}")
    for of in soaked:
        for fault in of.faults:
            print(f"{of.name}: {fault}")
    good = not any(of.faults for of in soaked)
    if args.format == "json":
        print(json.dumps({"good": good, "harts": args.harts, "guests": [asdict(of) for of in soaked]}))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
