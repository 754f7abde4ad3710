# What building the simulator needs on a Debian host. Sourced.
# shellcheck shell=bash

# Rust as the workspace wants it (edition 2024), and a C compiler for the libraries written in C.
need_toolchain() {
    local missing=()
    command -v cc > /dev/null || missing+=(gcc libc6-dev)
    if ! rust_is_new_enough; then
        apt-cache show rustup > /dev/null 2>&1 && missing+=(rustup)
    fi
    install_packages "${missing[@]}"
    if ! rust_is_new_enough && command -v rustup > /dev/null; then
        rustup toolchain install stable --profile minimal -c clippy -c rustfmt
    fi
    rust_is_new_enough || {
        echo "tipsim: needs Rust 1.91 or newer (found: $(rustc --version 2> /dev/null || echo none));" \
            "install it with rustup and run this again" >&2
        exit 2
    }
}

# Debian packages that are not there.
need_packages() {
    local package missing=()
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${Status}' "$package" 2> /dev/null)" = "install ok installed" ] || missing+=("$package")
    done
    install_packages "${missing[@]}"
}

# need_python_packages NAME PACKAGE==VERSION...: a virtual environment of that name in the cache, with these packages. Sets `venv` to it.
need_python_packages() {
    local name=$1 python
    shift
    # Without ensurepip there are no virtual environments with pip in them.
    python3 -c 'import ensurepip' 2> /dev/null || need_packages python3-venv
    python=$(python3 -c 'import sys; print(*sys.version_info[:2], sep=".")')
    venv=${TIPSIM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tipsim}/$name
    if [ "$(cat "$venv/versions" 2> /dev/null)" != "$python $*" ]; then
        echo "tipsim: installing $*" >&2
        rm -rf "$venv"
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet "$@"
        echo "$python $*" > "$venv/versions"
    fi
}

install_packages() {
    local root=""
    [ $# -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || root=sudo
    echo "tipsim: installing $*" >&2
    { $root apt-get update && $root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "$@"; } > /dev/null
}

rust_is_new_enough() {
    local minor
    minor=$(rustc --version 2> /dev/null | sed -n 's/^rustc 1\.\([0-9]*\)\..*/\1/p')
    [ "${minor:-0}" -ge 91 ] && command -v cargo > /dev/null
}
