# The guide's builder. Sourced after toolchain.sh.
# shellcheck shell=bash

# mdBook, built once into the cache. Sets MDBOOK.
need_mdbook() {
    local version=0.5.4 root
    root=${TIPSIM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tipsim}/mdbook-$version
    if [ ! -x "$root/bin/mdbook" ]; then
        echo "tipsim: building mdBook $version" >&2
        cargo install --quiet --locked --no-default-features --features search --root "$root" mdbook@$version
    fi
    MDBOOK=$root/bin/mdbook
}
