"""What a program of the study writes, by QEMU user mode: another implementation of the same instructions."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tomllib
from typing import Any

from places import REPO
from study import data
from study.data import Program


def read(spec: pathlib.Path) -> dict[str, Any]:
    return tomllib.loads(spec.read_text())


def lay_beneath(base: pathlib.Path, root: pathlib.Path) -> None:
    """Links every file of `base` into `root` where that has none: as an overlay file system shows both."""
    for folder, folders, files in os.walk(base):
        inside = pathlib.Path(folder).relative_to(base)
        links = [name for name in folders if (pathlib.Path(folder) / name).is_symlink()]
        for name in files + links:
            source, target = pathlib.Path(folder) / name, root / inside / name
            # Devices are the host's, later.
            if (source.is_symlink() or source.is_file()) and not os.path.lexists(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        for name in folders:
            if name not in links and not os.path.lexists(root / inside / name):
                (root / inside / name).mkdir(parents=True)


# The first bytes of a RISC-V program (64 bits, little-endian, executable or shared object), and which of them count.
MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xf3\x00"
MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
# A root of its own in which the kernel starts RISC-V programs by QEMU; in name spaces, so that it needs no privileges (Linux 6.7)
# and nothing of the host changes. $1: the root; $2: the working folder; $3: QEMU; $4, $5: magic and mask; $6: the command;
# $7: what is preloaded.
# Programs that ask for the date get the one that the guest's clock shows (guest.clock).
CONTAINER = """
set -e
mkdir -p "$1/out" "$1/proc" "$1/sys" "$1/dev" "$1/tmp" "$1/binfmt"
mount -t binfmt_misc none "$1/binfmt"
echo ":tipsim:M::$4:$5:$3:PF" > "$1/binfmt/register"
mount --bind "$2" "$1/out"
mount -t proc none "$1/proc"
mount --rbind /dev "$1/dev"
mount -t tmpfs none "$1/tmp"
status=0
env -i PATH=/usr/bin:/usr/sbin:/usr/games HOME=/root TERM=dumb FAKETIME="@2026-01-01 00:00:00" DONT_FAKE_MONOTONIC=1 \\
    "$(command -v chroot)" "$1" /usr/bin/sh -c "
        export LD_PRELOAD=$7
        cd /out
        $6" || status=$?
# Not by exec: this shell, and not one under QEMU, is the first process, which orphans fall to.
exit $status
"""
FAKETIME = "/usr/lib/riscv64-linux-gnu/faketime/libfaketime.so.1"
# Seconds after which a program is taken not to end.
LIMIT = 1800


def run(spec: pathlib.Path, guest: pathlib.Path, scratch: pathlib.Path, preload: str = FAKETIME) -> tuple[str | None, str | None]:
    """What the program's command leaves in result.txt; as found before, if the spec is the same. A program that does not run with
    another date than the host's (povray) runs with that.
    """
    known, text = scratch / "result.json", spec.read_text()
    if known.exists() and (before := json.loads(known.read_text()))["spec"] == text:
        return before["result"], None
    shutil.rmtree(scratch, ignore_errors=True)
    root, out, base = scratch / "root", scratch / "out", scratch / "base"
    out.mkdir(parents=True)
    base.mkdir()
    description = read(spec)
    names = [*description["guest"]["packages"], "dash", "libfaketime"]
    unpacked = subprocess.run([REPO / "guest-sw/debian", *names], check=False, stdout=subprocess.PIPE, text=True)
    if unpacked.returncode != 0:
        return None, f"guest-sw/debian {' '.join(names)}: exit status {unpacked.returncode}"
    # Links instead of copies, where the file system has them both.
    packages = unpacked.stdout.splitlines()[-1]
    if subprocess.run(["cp", "-al", packages, root], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        shutil.rmtree(root, ignore_errors=True)
        subprocess.run(["cp", "-a", packages, root], check=True)
    with open(guest / "initramfs.cpio", "rb") as initramfs:
        # It cannot make devices without privileges, and need not: its status says nothing.
        subprocess.run(["cpio", "-id", "--quiet"], cwd=base, stdin=initramfs, stderr=subprocess.DEVNULL, check=False)
    if not (base / "usr/bin/tipsim-run").exists():
        return None, f"{guest / 'initramfs.cpio'}: expected the guest's files, found no usr/bin/tipsim-run"
    lay_beneath(base, root)
    for name in description["run"].get("files", []):
        source = spec.parent / name
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, out / source.name)
    command = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", CONTAINER, "sh", root, out,
               shutil.which("qemu-riscv64-static"), MAGIC, MASK, description["run"]["command"], preload]
    with open(scratch / "log", "wb") as log:
        try:
            done = subprocess.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=False, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return None, f"no end within {LIMIT} s, see {scratch / 'log'}"
    result = data.result_text(out)
    if (result is None or done.returncode != 0) and preload:
        return run(spec, guest, scratch, preload="")
    if result is None or done.returncode != 0:
        return None, f"exit status {done.returncode}, see {scratch / 'log'}"
    shutil.rmtree(root)
    shutil.rmtree(base)
    known.write_text(json.dumps({"spec": text, "result": result}))
    return result, None


def compare(out: pathlib.Path, found: dict[str, pathlib.Path], programs: list[Program], guest: pathlib.Path) -> bool:
    """Runs each program and says in its `output` whether the results are equal; false if one differs."""
    good = True
    for at, program in enumerate(programs, 1):
        print(f"study: QEMU: {program['name']} ({at} of {len(programs)})", file=sys.stderr)
        result, why = run(found[program["name"]], guest, out / "qemu" / program["name"])
        if why:
            program["output"] = f"QEMU failed: {why}"
        elif result == program["result"]:
            program["output"] = "equal to QEMU's"
        else:
            program["output"] = "DIFFERS from QEMU's"
        good &= program["output"] == "equal to QEMU's"
    return good
