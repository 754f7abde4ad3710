# The kernel. Sourced by guest-sw/build and guest-sw/check-patches. Uses: kernel_config, jobs.
# shellcheck shell=bash
# The script that sources this file sets the variables that are only read here.
# shellcheck disable=SC2154

# make_kernel TREE ARGUMENT...: make, with its objects in this folder.
make_kernel() {
    make -C "$1" O="$PWD" ARCH=riscv CROSS_COMPILE=riscv64-linux-gnu- -j "$jobs" \
        KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 2026' KBUILD_BUILD_USER=tipsim KBUILD_BUILD_HOST=tipsim "${@:2}"
}

# configure_kernel TREE
configure_kernel() {
    cat "${kernel_config[@]}" > wanted.config
    make_kernel "$1" KCONFIG_ALLCONFIG="$PWD/wanted.config" allnoconfig
}

build_kernel() {
    local tree line missing=0
    tree=$(kernel_tree)
    configure_kernel "$tree"
    # A symbol whose dependencies are not met is dropped without a word.
    while read -r line; do
        if ! grep -qxF "$line" .config; then
            echo "not in the configuration: $line"
            missing=1
        fi
    done < <(grep -E '^(# )?CONFIG_' wanted.config)
    [ "$missing" = 0 ]
    make_kernel "$tree" Image
    make_kernel "$tree" -s kernelrelease > release
    if grep -qx CONFIG_GDB_SCRIPTS=y .config; then make_kernel "$tree" scripts_gdb; fi
    if grep -qx CONFIG_MODULES=y .config; then make_kernel "$tree" modules; fi
    mkdir -p keep
    cp vmlinux arch/riscv/boot/Image usr/gen_init_cpio .config release keep/
    if grep -qx CONFIG_GDB_SCRIPTS=y .config; then keep_gdb_scripts; fi
    if grep -qx CONFIG_MODULES=y .config; then keep_module_build; fi
    # Only the results are kept: the object files are 20 times as big.
    find . -mindepth 1 -maxdepth 1 ! -name keep -exec rm -rf {} +
    mv keep/* keep/.config .
    rmdir keep
}

# The kernel's own commands for GDB (lx-ps, lx-dmesg, …), which GDB loads with vmlinux.
keep_gdb_scripts() {
    cp -rL vmlinux-gdb.py keep/
    mkdir -p keep/scripts
    cp -rL scripts/gdb keep/scripts/
}

# What the build of a module reads: the configuration, generated headers, the build's own programs, the symbols.
keep_module_build() {
    mkdir keep/kernel-build
    cp -a Makefile .config Module.symvers include scripts keep/kernel-build/
    mkdir -p keep/kernel-build/arch/riscv
    cp -a arch/riscv/include keep/kernel-build/arch/riscv/
    # Modules are linked with a linker script of their own.
    find arch/riscv -name '*.lds' -exec cp --parents {} keep/kernel-build/ \;
}
