# busybox, of Debian's source package and with its own configuration of busybox-static: Debian's has no names of its
# functions, and no frame pointers. Sourced by guest-sw/build.
# shellcheck shell=bash
# The script that sources this file sets the variables that are only read here.
# shellcheck disable=SC2154
# A stage runs under set -e, so that a failed cd ends it.
# shellcheck disable=SC2103,SC2164

build_busybox() {
    local patch triplet=riscv64-linux-gnu version
    version=$(package_line busybox.debian | cut -d ' ' -f 2)
    rm -rf source
    mkdir source
    tar -xf "$(deb busybox.orig)" -C source --strip-components 1
    tar -xf "$(deb busybox.debian)" -C source
    cd source
    while read -r patch; do
        patch -p1 < "debian/patches/$patch"
    done < <(grep -v '^#' debian/patches/series | grep .)
    cat debian/config/os/linux debian/config/pkg/static > .config
    export KCONFIG_NOTIMESTAMP=1
    # Not "yes |": it would end by SIGPIPE, which counts.
    make silentoldconfig < <(yes '')
    # With the cross compiler's own glibc: not every cross linker can link the guest's statically (2.40 ends with a fault over
    # R_RISCV_SET_ULEB128).
    make -j "$jobs" CROSS_COMPILE=$triplet- SKIP_STRIP=y BB_EXTRA_VERSION="Debian $version" \
        CONFIG_EXTRA_CFLAGS="-g -fno-omit-frame-pointer -ffile-prefix-map=$PWD=/busybox"
    cd ..
    $triplet-readelf -l source/busybox | grep INTERP && { echo "busybox is not linked statically"; return 1; }
    # Its functions keep their names; mapping symbols are no names.
    $triplet-strip --strip-debug --wildcard --strip-symbol='$*' -o busybox.stripped source/busybox
    mv source/busybox busybox
    rm -r source
}
