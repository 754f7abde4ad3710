# The directory that a build ends in. Sourced by guest-sw/build.
# shellcheck shell=bash
# The script that sources this file sets the variables that are only read here.
# shellcheck disable=SC2154

build_result() {
    local part=$result.part firmware kernel rootfs
    firmware=$(stage_dir firmware "$firmware_key")
    kernel=$(stage_dir kernel "$kernel_key")
    rootfs=$(stage_dir rootfs "$rootfs_key")
    rm -rf "$part"
    mkdir -p "$part"
    # Hard links: a result costs no space, and survives when its stages are removed.
    cp -al "$firmware"/fw_jump.elf "$firmware"/fw_dynamic.elf "$firmware"/fw_dynamic.bin "$part"
    cp -al "$kernel"/Image "$kernel"/vmlinux "$part"
    cp -al "$kernel"/.config "$part/kernel.config"
    local extra
    for extra in vmlinux-gdb.py scripts kernel-build; do
        [ ! -e "$kernel/$extra" ] || cp -al "$kernel/$extra" "$part"
    done
    cp -al "$rootfs"/initramfs.cpio "$rootfs"/debug "$part"
    ln "$part/debug/usr/bin/quickstart" "$part/quickstart"
    KERNEL_RELEASE=$(cat "$kernel/release") COMPILER=$compiler PATCHES=$(all_patches) \
        python3 "$here/lib/manifest.py" "$part" "$guest/packages.lock" > "$part/manifest.json.new"
    mv "$part/manifest.json.new" "$part/manifest.json"
    rm -rf "$result"
    mv "$part" "$result"
}
