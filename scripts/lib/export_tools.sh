# The tools that open exported profiles, for the tests. Sourced after toolchain.sh.
# shellcheck shell=bash

# perf, pprof and debuginfod from Debian; Firefox Profiler's reader, speedscope's schema and Perfetto's messages from npm and
# PyPI, in the cache. Sets TIPSIM_EXPORT_TOOLS.
need_export_tools() {
    # node: profiler-cli wants version 24, which Debian does not have.
    local npm=(node@24.21.0 @firefox-devtools/profiler-cli@0.10.0 speedscope@1.25.0 ajv@8.20.0)
    local pypi=(perfetto==0.59.1 protobuf==7.36.2)
    local dir=${TIPSIM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tipsim}/export-tools
    command -v perf > /dev/null || need_packages linux-perf
    command -v go > /dev/null || need_packages golang-go
    command -v npm > /dev/null || need_packages npm
    need_packages binutils-riscv64-linux-gnu g++-riscv64-linux-gnu python3-venv
    # Serves debug information; the others make an archive as Debian's.
    need_packages debuginfod dpkg-dev apt-utils
    # Opens report.html.
    command -v chromium > /dev/null || need_packages chromium
    if [ "$(cat "$dir/versions" 2> /dev/null)" != "${npm[*]} ${pypi[*]}" ]; then
        echo "tipsim: installing ${npm[*]} ${pypi[*]}" >&2
        rm -rf "$dir"
        mkdir -p "$dir"
        npm install --loglevel=error --no-audit --no-fund --prefix "$dir" "${npm[@]}" > /dev/null
        python3 -m venv "$dir/python"
        "$dir/python/bin/pip" install --quiet "${pypi[@]}"
        echo "${npm[*]} ${pypi[*]}" > "$dir/versions"
    fi
    export TIPSIM_EXPORT_TOOLS=$dir
}
