# The kernel tree: Debian's source package with our patches on top. Sourced by guest-sw/build
# and guest-sw/check-patches.
# shellcheck shell=bash
# The script that sources this file sets the variables that are only read here.
# shellcheck disable=SC2154

all_patches() { find "$repo/linux-patches" -name '[0-9]*.patch' | sort; }
# The files of a patch that are built: no documentation, no list of maintainers. Those of perf are below tools/.
built_files() { sed -n 's|^+++ b/||p' "$1" | grep -v '^Documentation/\|^MAINTAINERS$' || true; }
touches_kernel() { built_files "$1" | grep -v '^tools/' > /dev/null; }
touches_perf() { built_files "$1" | grep '^tools/' > /dev/null; }
patch_sums() {
    local patch
    for patch in $(all_patches); do
        if "touches_$1" "$patch"; then sha256sum < "$patch"; fi
    done
}
kernel_patches() { patch_sums kernel; }
perf_patches() { patch_sums perf; }

# Prints the patched tree. It is unpacked once per package: 90,000 files take their time. When the patches
# change, the old ones are taken off again.
kernel_tree() {
    local tree want patch
    tree=$guest/source/$(key "$(package_line "$kernel_package")")
    # shellcheck disable=SC2046
    want=$(key $(all_patches) "$regs_header" "$uncore_header" "$here"/perf/*.h)
    if [ "$(cat "$tree/.patched" 2> /dev/null)" != "$want" ]; then
        rm -f "$tree/.patched"
        { [ -e "$tree/.unpacked" ] && take_patches_off "$tree"; } || unpack_tree "$tree" >&2
        mkdir -p "$tree/.applied"
        for patch in $(all_patches); do
            echo "applying $(basename "$patch")" >&2
            # Said here: in a command substitution an error ends nothing by itself.
            patch -d "$tree" -p1 --no-backup-if-mismatch < "$patch" >&2 || return
            cp "$patch" "$tree/.applied/"
        done
        add_generated_files "$tree"
        echo "$want" > "$tree/.patched"
    fi
    echo "$tree"
}

# What is in no patch, since it is generated from the simulator's own tables.
add_generated_files() {
    cp "$regs_header" "$1/drivers/perf/tip_regs.h"
    cp "$uncore_header" "$1/drivers/perf/tipsim_uncore_regs.h"
    cp "$here"/perf/*.h "$1/tools/perf/util/"
}

unpack_tree() {
    rm -rf "$1"
    mkdir -p "$1"
    unpack "$kernel_package" "$1/package"
    tar -x -f "$1"/package/usr/src/linux-source-*.tar.xz -C "$1" --strip-components 1
    rm -r "$1/package"
    touch "$1/.unpacked"
}

# Fails if they do not come off as they went on.
take_patches_off() {
    local patch
    for patch in $(find "$1/.applied" -name '*.patch' 2> /dev/null | sort -r); do
        patch -d "$1" -R -p1 --no-backup-if-mismatch --force < "$patch" >&2 || return 1
        rm "$patch"
    done
}
