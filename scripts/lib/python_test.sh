#!/bin/bash
# The Python package: its wheel, built and installed, and emulator/python/tests on a run of its own.
set -euo pipefail

case ${1:-} in
    '' | -h | --help)
        cat <<'HELP'
Usage: scripts/lib/python_test.sh TIPSIM [pytest option]...

Installs maturin and the libraries that read tables into the cache, builds the wheel as the workspace's tests are built, and runs emulator/python/tests
with the binary TIPSIM and the guest in TIPSIM_GUEST.

Example:
  scripts/lib/python_test.sh target/debug/tipsim -k damaged
HELP
        [ $# -gt 0 ] && exit 0 || exit 2 ;;
esac

TIPSIM=$(realpath "$1")
export TIPSIM
shift
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$repo"
. scripts/lib/toolchain.sh

need_python_packages python-test maturin==1.16.0 pytest==9.2.0 pyarrow==26.0.1 polars==2.1.0 duckdb==2.0.1 pandas==3.1.1 matplotlib==3.11.2 \
    nbclient==0.11.0 ipykernel==7.4.0 jsonschema==4.26.0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Nothing of the workspace is built anew: its tests have built it with these features, in the tests' profile. Cargo takes that name for
# tests alone, so the wheel's profile is dev with all that Cargo.toml says of it.
awk '/^\[/ { on = /^\[profile\.test/ } on' Cargo.toml | sed 's/^\[profile\.test/[profile.dev/' > "$work/profile.toml"
"$venv/bin/maturin" build --locked --profile dev --config "$work/profile.toml" --features as-in-tests \
    --manifest-path emulator/python/Cargo.toml --interpreter "$venv/bin/python" --out "$work"
wheel=$(echo "$work"/tipsim-*-abi3-*.whl)
"$venv/bin/pip" install --quiet --target "$work/site" --no-deps "$wheel"
# Not the sources, but what was installed.
cd "$work"
PYTHONPATH=$work/site PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -m pytest --quiet -p no:cacheprovider --basetemp "$work/runs" --durations 5 "$repo/emulator/python/tests" "$@"
