# Tools from crates.io that development needs. Sourced after toolchain.sh.
# shellcheck shell=bash
# The variables with the paths of tools are for the script that sources this file.
# shellcheck disable=SC2034

# need_crate NAME VERSION [OPTION...]: builds a crate once into the cache, with cargo's options, and sets $crate to its folder.
need_crate() {
    local name=$1 version=$2
    shift 2
    crate=${TIPSIM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tipsim}/$name-$version
    [ -x "$crate/bin/$name" ] && return
    echo "tipsim: building $name $version" >&2
    cargo install --quiet --locked --root "$crate" "$@" "$name@$version"
}

# Licences and duplicate versions of dependencies.
need_cargo_deny() { need_crate cargo-deny 0.20.2; CARGO_DENY=$crate/bin/cargo-deny; }

# The Debian package.
need_cargo_deb() { need_crate cargo-deb 3.8.0; CARGO_DEB=$crate/bin/cargo-deb; }

# The guide.
need_mdbook() { need_crate mdbook 0.5.4 --no-default-features --features search; MDBOOK=$crate/bin/mdbook; }
