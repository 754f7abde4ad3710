"""Executes the command blocks of the guide's chapters, and checks the links of every Markdown file.

In a chapter, blocks of these kinds are executed, in order, by one bash in an empty folder of its own, with the clone in $TIPSIM and
tipsim on the path:
  ```sh               commands
  ```LANG,file=NAME   written to NAME
  ```text,expect      each line is in the output of the sh block before it, in this order; `...` stands for anything
Blocks of any other kind are not. A block that ends with an error, or an output that is not as expected, fails.
"""

import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from places import LIB, REPO

CHAPTERS = REPO / "emulator/guide/src"
MARK = "@@guide:"

# Cargo in a chapter's clone: it takes what was built for the chapter before, and in continuous integration keeps it for the next time.
CARGO = """#!/bin/bash
set -e
PYTHONPATH='{lib}' python3 - << 'END'
import os, pathlib, built
target = pathlib.Path(os.environ["CARGO_TARGET_DIR"])
if built.restore(target, built.stored("{name}")):
    built.give_times(pathlib.Path("."), target)
END
'{cargo}' "$@"
[ -z "${{CI:-}}" ] || PYTHONPATH='{lib}' python3 - << 'END'
import os, pathlib, built
built.keep(pathlib.Path("."), pathlib.Path(os.environ["CARGO_TARGET_DIR"]), built.stored("{name}"))
END
"""


class Block:
    def __init__(self, path: pathlib.Path, line: int, info: str, text: str) -> None:
        self.path, self.line, self.text = path, line, text
        self.words = info.split(",")

    def check(self) -> None:
        """Nothing is left out, or expected of nothing, by a slip."""
        if self.words[0] == "sh" and not self.runs and not self.file:
            raise SystemExit(f"guide: {self}: expected sh or sh,file=NAME, found {','.join(self.words)}")
        if self.expects and not self.wanted():
            raise SystemExit(f"guide: {self}: expects nothing")

    def wanted(self) -> list[str]:
        """The lines that an output must have."""
        lines = map(str.strip, self.text.splitlines())
        return [line for line in lines if line and line != "..."]

    @property
    def file(self) -> str | None:
        return next((word[5:] for word in self.words if word.startswith("file=")), None)

    @property
    def runs(self) -> bool:
        return self.words == ["sh"]

    @property
    def expects(self) -> bool:
        return "expect" in self.words

    def __str__(self) -> str:
        return f"{self.path.relative_to(REPO)}:{self.line}"


def blocks(path: pathlib.Path) -> list[Block]:
    """The fenced blocks of a file."""
    fence = re.compile(r"^(\s*)(`{3,})(\S*)\s*$")
    found: list[Block] = []
    # A block whose end has not come: its first line's number, its indentation, its fence, its kind, and its lines so far.
    begun: tuple[int, str, str, str, list[str]] | None = None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = fence.match(line)
        if begun is None and match:
            begun = (number, match[1], match[2], match[3], [])
        elif begun and match and match[2] == begun[2] and not match[3]:
            found.append(Block(path, begun[0], begun[3], "\n".join(begun[4])))
            found[-1].check()
            begun = None
        elif begun:
            indent = begun[1]
            begun[4].append(line[len(indent):] if line.startswith(indent) else line)
    if begun:
        raise SystemExit(f"guide: {path.relative_to(REPO)}:{begun[0]}: a block without an end")
    return found


def script(chapter_blocks: list[Block]) -> str:
    """The bash script of a chapter."""
    lines = ["set -euo pipefail"]
    for number, block in enumerate(chapter_blocks):
        if block.file:
            end = f"GUIDE_END_{number}"
            lines += [f"cat > {block.file} <<'{end}'", block.text, end]
        elif block.runs:
            lines += [f"echo {MARK}{number}", block.text]
    return "\n".join(lines) + "\n"


def unexpected(block: Block, output: str) -> str | None:
    """The first line of a block that is not in the output, or None."""
    at = 0
    lines = output.splitlines()
    for wanted in block.wanted():
        pattern = re.compile(r"\s+".join(".*".join(map(re.escape, word.split("..."))) for word in wanted.split()))
        found = next((n + 1 for n in range(at, len(lines)) if pattern.search(lines[n])), None)
        if found is None:
            return wanted
        at = found
    return None


def run_chapter(path: pathlib.Path, tipsim: pathlib.Path, out: pathlib.Path, limit: float) -> tuple[bool, str]:
    """Runs a chapter. Gives what it did, or why it failed."""
    found = blocks(path)
    folder = out / path.stem
    shutil.rmtree(folder, ignore_errors=True)
    (folder / ".bin").mkdir(parents=True)
    (folder / ".bin/tipsim").symlink_to(tipsim)
    work = folder / "work"
    work.mkdir()
    environment = dict(os.environ, TIPSIM=str(REPO), PATH=f"{folder / '.bin'}:{os.environ['PATH']}", TERM="dumb", LC_ALL="C.UTF-8")
    if any(block.runs and "cargo " in block.text for block in found):
        # A build of its own: another's files would take the place of those that tests use meanwhile. A build of one package alone has
        # other features of libraries than that of all tests, so that it would be of little use here.
        environment["CARGO_TARGET_DIR"] = str(folder / "target")
        (folder / ".bin/cargo").write_text(CARGO.format(lib=LIB, name=f"built-{path.stem}", cargo=shutil.which("cargo")))
        (folder / ".bin/cargo").chmod(0o755)
    began = time.monotonic()
    with open(folder / "output.txt", "w+b") as output:
        # In a session of its own: what a chapter leaves running ends with it.
        bash = subprocess.Popen(["bash", "-c", script(found)], cwd=work, env=environment, stdin=subprocess.DEVNULL,
                                stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = str(bash.wait(limit))
        except subprocess.TimeoutExpired:
            status = f"none within {limit:.0f} s"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(bash.pid, signal.SIGKILL)
        bash.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    took = time.monotonic() - began
    parts = {}
    for part in text.split(MARK)[1:]:
        block_number, _, rest = part.partition("\n")
        parts[int(block_number)] = rest
    last = max(parts, default=None)
    if status != "0":
        where, of_block, output_of_it = (str(found[last]), found[last].text, parts[last]) if last is not None else (str(path), "", text)
        tail = "\n".join(output_of_it.splitlines()[-30:])
        return False, f"{where}: exit status {status} after {took:.0f} s. The block:\n{of_block}\nIts output:\n{tail}"
    previous: int | None = None
    expectations = 0
    for number, block in enumerate(found):
        previous = number if block.runs else previous
        if not block.expects:
            continue
        expectations += 1
        if previous is None:
            return False, f"{block}: expects an output, but no block before it runs"
        wanted = unexpected(block, parts[previous])
        if wanted is not None:
            return False, f"{block}: expected the line\n  {wanted}\nin the output of {found[previous]}, found:\n{parts[previous]}"
    runs = sum(block.runs for block in found)
    return True, f"{path.stem}: {runs} blocks ran, {expectations} outputs as expected, {took:.0f} s"


def anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub and mdBook make it."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text.strip().lower()))


def without_fences(text: str) -> str:
    return re.sub(r"^\s*```.*?^\s*```\s*$", "", text, flags=re.M | re.S)


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", without_fences(text))


def links() -> tuple[list[str], int, int]:
    """Links of all Markdown files that lead nowhere."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=REPO, check=True, capture_output=True, text=True)
    files = [REPO / name for name in listed.stdout.splitlines() if (REPO / name).is_file()]
    bad, count = [], 0
    for path in files:
        for link in re.findall(r"\]\(([^)\s]+)\)", without_code(path.read_text())):
            if re.match(r"[a-z]+:", link):
                continue
            count += 1
            place, _, fragment = link.partition("#")
            target = (path.parent / place).resolve() if place else path
            if not target.exists():
                bad.append(f"{path.relative_to(REPO)}: {link}: no such file")
            elif fragment and target.suffix == ".md":
                headings = re.findall(r"^#+\s+(.*)$", without_fences(target.read_text()), flags=re.M)
                if fragment not in map(anchor, headings):
                    bad.append(f"{path.relative_to(REPO)}: {link}: no such heading")
    return bad, count, len(files)


def listed_chapters() -> list[pathlib.Path]:
    names = re.findall(r"\]\(([^)]+\.md)\)", (CHAPTERS / "SUMMARY.md").read_text())
    missing = sorted({path.name for path in CHAPTERS.glob("*.md")} - set(names) - {"SUMMARY.md"})
    if missing:
        raise SystemExit(f"guide: SUMMARY.md does not list {', '.join(missing)}")
    return [CHAPTERS / name for name in names]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tipsim", required=True, type=pathlib.Path, help="the binary that chapters run")
    parser.add_argument("--out", default=REPO / "out/guide", type=pathlib.Path, help="where they run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="chapters at once (default: one for each processor)")
    parser.add_argument("--limit", type=float, default=900, help="seconds that a chapter may take")
    parser.add_argument("--without", default="", metavar="NAME,…", help="chapters that are left out, if none is asked for")
    parser.add_argument("chapters", nargs="*", help="names of chapters; without, all of them, and the links of all Markdown files")
    arguments = parser.parse_args()
    known = {path.stem: path for path in listed_chapters()}
    left_out = arguments.without.split(",") if arguments.without else []
    unknown = [name for name in arguments.chapters + left_out if name not in known]
    if unknown:
        raise SystemExit(f"guide: no chapter '{unknown[0]}'; there are: {', '.join(known)}")
    names = arguments.chapters or [name for name in known if name not in left_out]
    chapters = [known[name] for name in names]
    if not arguments.chapters:
        bad, count, files = links()
        if bad:
            raise SystemExit("\n".join(["guide: links that lead nowhere:", *bad]))
        print(f"guide: {count} links in {files} Markdown files lead somewhere", flush=True)
    tipsim = arguments.tipsim.resolve()
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        tasks = [pool.submit(run_chapter, path, tipsim, arguments.out.resolve(), arguments.limit) for path in chapters]
        for task in concurrent.futures.as_completed(tasks):
            good, words = task.result()
            failed += not good
            print(words if good else f"FAILED: {words}", flush=True)
    if failed:
        raise SystemExit(f"guide: {failed} of {len(chapters)} chapters failed")


if __name__ == "__main__":
    main()
