"""Prints the manifest of a finished guest directory. Arguments: the directory, the package lock file."""

import hashlib
import json
import os
import sys


def sha256(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") \
            else hashlib.sha256(file.read()).hexdigest()


def main() -> None:
    directory, lock = sys.argv[1:]
    files = {}
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            if not name.startswith("manifest.json"):
                files[os.path.relpath(path, directory)] = {"bytes": os.path.getsize(path), "sha256": sha256(path)}
    packages = {}
    with open(lock) as file:
        for line in file:
            if not line.startswith("#"):
                name, version, digest = line.split()[:3]
                packages[name] = {"version": version.replace("%3a", ":"), "sha256": digest}
    patches = {os.path.basename(p): sha256(p) for p in os.environ["PATCHES"].split()}
    json.dump({"kernel": os.environ["KERNEL_RELEASE"], "compiler": os.environ["COMPILER"], "patches": patches,
               "packages": packages, "files": dict(sorted(files.items()))}, sys.stdout, indent=1)
    print()


main()
