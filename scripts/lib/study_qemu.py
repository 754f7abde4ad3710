"""What a program of the study writes, by QEMU user mode: another implementation of the same instructions."""

import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

import study_data

CACHE = pathlib.Path(os.environ.get("TIPSIM_CACHE")
                     or f"{os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')}/tipsim")
REPO = pathlib.Path(__file__).resolve().parents[2]


def read(spec):
    return tomllib.loads(spec.read_text())


def lay_beneath(base, root):
    """Links every file of `base` into `root` where that has none: as an overlay file system shows both."""
    for folder, folders, files in os.walk(base):
        inside = pathlib.Path(folder).relative_to(base)
        links = [name for name in folders if (pathlib.Path(folder) / name).is_symlink()]
        for name in files + links:
            source, target = pathlib.Path(folder) / name, root / inside / name
            if not os.path.lexists(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        for name in folders:
            if name not in links and not os.path.lexists(root / inside / name):
                (root / inside / name).mkdir(parents=True)


def tools():
    """proot gives a program a root of its own and QEMU for its children, without privileges."""
    missing = [package for program, package in [("proot", "proot"), ("qemu-riscv64", "qemu-user"), ("cpio", "cpio")]
               if shutil.which(program) is None]
    if missing:
        sudo = [] if os.geteuid() == 0 else ["sudo"]
        done = subprocess.run([*sudo, "apt-get", "install", "-y", "--no-install-recommends", *missing],
                              stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            sys.exit(f"study: --qemu needs {' '.join(missing)}, which apt could not install")


def run(spec, scratch):
    """What the program's command leaves in result.txt."""
    shutil.rmtree(scratch, ignore_errors=True)
    root, out, base = scratch / "root", scratch / "out", scratch / "base"
    out.mkdir(parents=True)
    base.mkdir()
    description = read(spec)
    printed = subprocess.run([REPO / "guest-sw/debian", *description["guest"]["packages"], "dash"], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    # Links instead of copies, where the file system has them both.
    packages = printed.splitlines()[-1]
    if subprocess.run(["cp", "-al", packages, root], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        shutil.rmtree(root, ignore_errors=True)
        subprocess.run(["cp", "-a", packages, root], check=True)
    initramfs = (CACHE / "guest/latest/initramfs.cpio").resolve()
    subprocess.run(f"cpio -id --quiet --no-absolute-filenames --no-preserve-owner < '{initramfs}' 2> /dev/null", shell=True, cwd=base, check=False)
    lay_beneath(base, root)
    for name in description["run"].get("files", []):
        source = spec.parent / name
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, out / source.name)
    command = ["proot", "-0", "-q", "qemu-riscv64", "-r", root, "-b", "/proc", "-b", "/dev", "-b", f"{out}:/out", "-w", "/out",
               "/usr/bin/sh", "-c", description["run"]["command"]]
    environment = {"PATH": "/usr/bin", "HOME": "/root", "TERM": "dumb"}
    with open(scratch / "log", "wb") as log:
        done = subprocess.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=False,
                              env=environment | {"PATH": os.environ["PATH"] + ":/usr/bin"})
    result = study_data.result_text(out)
    if result is None or done.returncode != 0:
        return None, f"exit status {done.returncode}, see {scratch / 'log'}"
    shutil.rmtree(root)
    shutil.rmtree(base)
    return result, None


def compare(out, found, programs):
    """Runs each program and says in its `output` whether the results are equal; false if one differs."""
    tools()
    good = True
    for at, program in enumerate(programs, 1):
        print(f"study: QEMU: {program['name']} ({at} of {len(programs)})", file=sys.stderr)
        result, why = run(found[program["name"]], out / "qemu" / program["name"])
        if why:
            program["output"] = f"QEMU failed: {why}"
        elif result == program["result"]:
            program["output"] = "equal to QEMU's"
        else:
            program["output"] = "DIFFERS from QEMU's"
        good &= program["output"] == "equal to QEMU's"
    return good
