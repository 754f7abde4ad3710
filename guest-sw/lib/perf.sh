# perf, of the kernel's own tree, linked against Debian's riscv64 libraries. Sourced by guest-sw/build and
# guest-sw/check-patches. Uses: sysroot_key, perf_tracing, jobs.
# shellcheck shell=bash
# The script that sources this file sets the variables that are only read here.
# shellcheck disable=SC2154

# make_perf TREE: in the folder out of this one.
make_perf() {
    local tree=$1 sysroot triplet=riscv64-linux-gnu
    sysroot=$(stage_dir sysroot "$sysroot_key")/root
    # --sysroot alone leaves the cross compiler's own, older, glibc first.
    local flags="--sysroot=$sysroot -isystem $sysroot/usr/include/$triplet -isystem $sysroot/usr/include"
    # Of slang what perf calls, a sixth: the guest unpacks it at every boot.
    mkdir -p out static
    ln -sf "$sysroot/usr/lib/$triplet/libslang.a" static/
    local link="--sysroot=$sysroot -L$PWD/static -B$sysroot/usr/lib/$triplet -L$sysroot/usr/lib/$triplet"
    # Tracepoints, and the names of system calls, only for a kernel that has them: they cost memory and a boot's instructions.
    local tracing="NO_LIBTRACEEVENT=1 NO_LIBAUDIT=1"
    [ "$perf_tracing" = no ] || tracing=
    # shellcheck disable=SC2086
    PKG_CONFIG_LIBDIR=$sysroot/usr/lib/$triplet/pkgconfig:$sysroot/usr/share/pkgconfig \
    PKG_CONFIG_SYSROOT_DIR=$sysroot \
    make -C "$tree/tools/perf" O="$PWD/out" ARCH=riscv CROSS_COMPILE=$triplet- -j "$jobs" prefix=/usr WERROR=0 V=0 \
        EXTRA_CFLAGS="-O2 -g -fno-omit-frame-pointer $flags $link -ffile-prefix-map=$tree=/kernel" LDFLAGS="$link" JEVENTS_ARCH=riscv \
        NO_LIBPERL=1 NO_LIBPYTHON=1 NO_LIBBPF=1 BUILD_BPF_SKEL=0 $tracing \
        NO_LIBNUMA=1 NO_LIBCRYPTO=1 NO_LIBBABELTRACE=1 NO_LIBUNWIND=1 NO_GTK2=1 NO_DEMANGLE=1 NO_JVMTI=1 \
        NO_LIBPFM4=1 NO_LIBLZMA=1 NO_LZMA=1 NO_SDT=1 LIBIBERTY_DEMANGLE=1
}

build_perf() {
    local tree triplet=riscv64-linux-gnu
    tree=$(kernel_tree)
    make_perf "$tree"
    # A library that is not found is left out without a word.
    local want wanted="libelf.so.1 libdw.so.1 libz.so.1 libzstd.so.1 libcapstone.so.5"
    [ "$perf_tracing" = no ] || wanted+=" libtraceevent.so.1 libaudit.so.1"
    for want in $wanted; do
        $triplet-readelf -d out/perf | grep -qF "[$want]" || { echo "perf was built without $want"; return 1; }
    done
    # Not with -q: nm would end by SIGPIPE, which counts.
    $triplet-nm out/perf | grep ' rust_demangle$' || { echo "perf was built without libiberty's demangler"; return 1; }
    $triplet-nm out/perf | grep ' SLsmg_init_smg$' || { echo "perf was built without slang"; return 1; }
    # Its functions keep their names, for profiles of perf itself; mapping symbols are no names.
    $triplet-strip --strip-debug --wildcard --strip-symbol='$*' -o perf.stripped out/perf
    mv out/perf perf
    # Of the scripts that `perf test` executes, ours: others want bash, or tracepoints, or run for minutes.
    cp "$tree/tools/perf/tests/shell/test_tip.sh" "$tree/tools/perf/tests/shell/test_riscv_pdis.sh" .
    rm -rf out static
}
