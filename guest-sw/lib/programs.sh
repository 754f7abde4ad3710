# Our own programs and libraries for the guest. Sourced by guest-sw/build.
# shellcheck shell=bash
# The script that sources this file sets the variables that are only read here.
# shellcheck disable=SC2154

build_programs() {
    local source name
    # Frame pointers: perf's call chains need them, DWARF unwinding is unreliable on this architecture.
    local cflags="-O2 -g -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -Wall -Wextra"
    riscv64-linux-gnu-gcc -mno-omit-leaf-frame-pointer -x c -c -o /dev/null /dev/null 2> /dev/null ||
        cflags=${cflags/-mno-omit-leaf-frame-pointer/}
    local sysroot lib=usr/lib/riscv64-linux-gnu
    sysroot=$(stage_dir sysroot "$sysroot_key")/root
    mkdir -p bin lib
    for source in "$here"/tools/*.c "$repo"/workloads/quickstart/quickstart.c; do
        name=$(basename "$source" .c)
        # The path of the source must not depend on where the repository is.
        # shellcheck disable=SC2086
        riscv64-linux-gnu-gcc $cflags -ffile-prefix-map="$repo"/= -o "bin/$name" "$source"
        echo "  CC      $name"
    done
    # A capstone of our own, with RISC-V alone.
    riscv64-linux-gnu-gcc -O2 -shared -fPIC --sysroot="$sysroot" -B"$sysroot/$lib" -Wl,-soname,libcapstone.so.5 \
        -Wl,-u,cs_open -Wl,-z,defs -ffile-prefix-map="$repo"/= -o lib/libcapstone.so.5 \
        "$here/perf/capstone-riscv.c" "$sysroot/$lib/libcapstone.a"
}
