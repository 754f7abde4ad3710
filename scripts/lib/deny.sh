# Licences and duplicate versions of dependencies. Sourced after toolchain.sh.
# shellcheck shell=bash

# cargo-deny, built once into the cache. Sets CARGO_DENY.
need_cargo_deny() {
    local version=0.20.2 root
    root=${TIPSIM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tipsim}/cargo-deny-$version
    if [ ! -x "$root/bin/cargo-deny" ]; then
        echo "tipsim: building cargo-deny $version" >&2
        cargo install --quiet --locked --root "$root" cargo-deny@$version
    fi
    CARGO_DENY=$root/bin/cargo-deny
}
