# The kernel tree: Debian's source package with our patches on top. Sourced by guest-sw/build.

all_patches() { find "$repo/linux-patches" -name '[0-9]*.patch' | sort; }
# A patch belongs to perf if all that it touches is below tools/.
touches_only_tools() { ! grep '^+++ b/' "$1" | grep -qv '^+++ b/tools/'; }
patch_sums() {
    local patch
    for patch in $(all_patches); do
        if touches_only_tools "$patch"; then
            [ "$1" = kernel ] || sha256sum < "$patch"
        else
            [ "$1" = perf ] || sha256sum < "$patch"
        fi
    done
}
kernel_patches() { patch_sums kernel; }
perf_patches() { patch_sums perf; }

# Prints the patched tree; unpacks it first if it is not there.
kernel_tree() {
    local sum tree patch
    # shellcheck disable=SC2046
    sum=$(key "$(package_line "$kernel_package")" $(all_patches) "$regs_header")
    tree=$guest/source/$sum
    if [ ! -e "$tree/.patched" ]; then
        rm -rf "$guest/source"
        mkdir -p "$tree"
        unpack "$kernel_package" "$tree/package" >&2
        tar -x -f "$tree"/package/usr/src/linux-source-*.tar.xz -C "$tree" --strip-components 1
        rm -r "$tree/package"
        for patch in $(all_patches); do
            echo "applying $(basename "$patch")" >&2
            patch -d "$tree" -p1 --no-backup-if-mismatch < "$patch" >&2
        done
        cp "$regs_header" "$tree/drivers/perf/tip_regs.h"
        touch "$tree/.patched"
    fi
    echo "$tree"
}
