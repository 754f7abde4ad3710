# What building the simulator needs on a Debian host. Sourced.
# shellcheck shell=bash

# Rust as the workspace wants it (edition 2024), and a C compiler for the libraries written in C.
need_toolchain() {
    local root="" missing=()
    [ "$(id -u)" = 0 ] || root=sudo
    command -v cc > /dev/null || missing+=(gcc libc6-dev)
    if ! rust_is_new_enough; then
        apt-cache show rustup > /dev/null 2>&1 && missing+=(rustup)
    fi
    if [ ${#missing[@]} -gt 0 ]; then
        echo "tipsim: installing ${missing[*]}" >&2
        { $root apt-get update && $root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y --no-install-recommends "${missing[@]}"; } > /dev/null
    fi
    if ! rust_is_new_enough && command -v rustup > /dev/null; then
        rustup toolchain install stable --profile minimal -c clippy -c rustfmt
    fi
    rust_is_new_enough || {
        echo "tipsim: needs Rust 1.91 or newer (found: $(rustc --version 2> /dev/null || echo none));" \
            "install it with rustup and run this again" >&2
        exit 2
    }
}

rust_is_new_enough() {
    local minor
    minor=$(rustc --version 2> /dev/null | sed -n 's/^rustc 1\.\([0-9]*\)\..*/\1/p')
    [ "${minor:-0}" -ge 91 ] && command -v cargo > /dev/null
}
