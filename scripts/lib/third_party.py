"""Prints the licences of all crates that are linked into tipsim, with their notices: who has the program may have no source."""

import json
import pathlib
import subprocess
from typing import Any

NOTICES = ("LICEN", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")


def linked(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """Crates that tipsim needs to run, of others' authors."""
    packages = {p["id"]: p for p in metadata["packages"]}
    needs = {n["id"]: [d["pkg"] for d in n["deps"] if any(k["kind"] is None for k in d["dep_kinds"])]
             for n in metadata["resolve"]["nodes"]}
    queue = [p["id"] for p in metadata["packages"] if p["name"] == "tipsim"]
    seen = set(queue)
    while queue:
        new = set(needs[queue.pop()]) - seen
        seen |= new
        queue += new
    return sorted((packages[i] for i in seen if packages[i]["source"]), key=lambda p: (p["name"], p["version"]))


def main() -> None:
    metadata = json.loads(subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"],
        check=True, stdout=subprocess.PIPE).stdout)
    texts: dict[str, list[str]] = {}
    for package in linked(metadata):
        folder = pathlib.Path(package["manifest_path"]).parent
        print(f"{package['name']} {package['version']}: {package['license'] or 'see its files'}")
        files = [f for f in sorted(folder.iterdir()) if f.is_file() and f.name.upper().startswith(NOTICES)]
        for file in files:
            text = file.read_text(errors="replace").strip()
            texts.setdefault(text, []).append(f"{package['name']} {package['version']} {file.name}")
    # A text that many share stands there once.
    for text, owners in texts.items():
        print("\n" + "=" * 78)
        print("\n".join(owners))
        print("-" * 78)
        print(text)


if __name__ == "__main__":
    main()
