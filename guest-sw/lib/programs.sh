# Our own programs for the guest. Sourced by guest-sw/build.

build_programs() {
    local source name
    # Frame pointers: perf's call chains need them, DWARF unwinding is unreliable on this architecture.
    local cflags="-O2 -g -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -Wall -Wextra"
    riscv64-linux-gnu-gcc -mno-omit-leaf-frame-pointer -x c -c -o /dev/null /dev/null 2> /dev/null ||
        cflags=${cflags/-mno-omit-leaf-frame-pointer/}
    for source in "$here"/tools/*.c "$repo"/workloads/quickstart/quickstart.c; do
        name=$(basename "$source" .c)
        # The path of the source must not depend on where the repository is.
        riscv64-linux-gnu-gcc $cflags -ffile-prefix-map="$repo"/= -o "$name" "$source" -lm
        echo "  CC      $name"
    done
}
