# The root file system. Sourced by guest-sw/build.
# shellcheck shell=bash
# The script that sources this file sets the variables that are only read here.
# shellcheck disable=SC2154

# One command after another adds a line to the file "spec".
# shellcheck disable=SC2129
build_rootfs() {
    local sysroot perf programs busybox lib=usr/lib/riscv64-linux-gnu strip=riscv64-linux-gnu-strip
    sysroot=$(stage_dir sysroot "$sysroot_key")/root
    perf=$(stage_dir perf "$perf_key")
    programs=$(stage_dir programs "$programs_key")
    busybox=$(stage_dir busybox "$busybox_key")
    local name file target mode

    rm -rf files debug
    mkdir -p files debug/usr/{bin,lib/riscv64-linux-gnu}
    : > spec
    while read -r name; do
        echo "dir /$name 0755 0 0" >> spec
    done < "$here/rootfs/directories"
    echo "dir /tmp 1777 0 0" >> spec
    echo "dir /var/tmp 1777 0 0" >> spec
    # The kernel opens /dev/console before /init has mounted anything.
    echo "nod /dev/console 0600 0 0 c 5 1" >> spec
    echo "nod /dev/null 0666 0 0 c 1 3" >> spec
    # The layout of today's Debian.
    echo "slink /bin usr/bin 0777 0 0" >> spec
    echo "slink /sbin usr/bin 0777 0 0" >> spec
    echo "slink /usr/sbin bin 0777 0 0" >> spec
    echo "slink /lib usr/lib 0777 0 0" >> spec
    # The name servers that the kernel's own DHCP client was told.
    echo "slink /etc/resolv.conf /proc/net/pnp 0777 0 0" >> spec
    echo "slink /etc/mtab /proc/self/mounts 0777 0 0" >> spec
    echo "slink /var/run /run 0777 0 0" >> spec

    cp "$busybox/busybox" debug/usr/bin/busybox
    cp "$busybox/busybox.stripped" files/busybox
    add_file usr/bin/busybox files/busybox 0755
    while read -r name; do
        echo "slink /usr/bin/$name busybox 0777 0 0" >> spec
    done < <(tr -s ' ' '\n' < "$here/rootfs/applets" | grep .)

    cp "$perf/perf" debug/usr/bin/perf
    cp "$perf/perf.stripped" files/perf
    add_file usr/bin/perf files/perf 0755
    # Where perf looks for them: its "exec path".
    add_file usr/libexec/perf-core/tests/shell/test_tip.sh "$perf/test_tip.sh" 0755
    add_file usr/libexec/perf-core/tests/shell/test_riscv_pdis.sh "$perf/test_riscv_pdis.sh" 0755
    for file in "$programs"/bin/*; do
        name=$(basename "$file")
        cp "$file" "debug/usr/bin/$name"
        $strip --strip-debug -o "files/$name" "$file"
        add_file "usr/bin/$name" "files/$name" 0755
    done
    # The quick-start program keeps its lines, for perf annotate in the guest.
    sed -i "s|files/quickstart |debug/usr/bin/quickstart |" spec

    while read -r name; do
        if [ -e "$programs/lib/$name" ]; then
            cp "$programs/lib/$name" "debug/$lib/$name"
        else
            cp -L "$sysroot/$lib/$name" "debug/$lib/$name"
        fi
        $strip -o "files/$name" "debug/$lib/$name"
        add_file "$lib/$name" "files/$name" 0755
    done < <(needed_libraries "$sysroot" debug/usr/bin/*)
    echo "slink /usr/lib/ld-linux-riscv64-lp64d.so.1 riscv64-linux-gnu/ld-linux-riscv64-lp64d.so.1 0777 0 0" >> spec

    # Terminals that a console is likely to be.
    unpack ncurses-base terminfo
    for name in l/linux v/vt100 v/vt220 x/xterm x/xterm-256color; do
        cp "terminfo/usr/share/terminfo/$name" "files/${name#*/}"
        add_file "usr/share/terminfo/$name" "files/${name#*/}" 0644
    done
    rm -rf terminfo

    for name in passwd group profile hosts nsswitch.conf; do add_file "etc/$name" "$here/rootfs/$name" 0644; done
    add_file root/.perfconfig "$here/rootfs/perfconfig" 0644
    add_file usr/bin/tipsim-help "$here/rootfs/tipsim-help" 0755
    add_file init "$here/rootfs/init" 0755
    for name in "${systemd_files[@]}"; do
        case $name in *-init) mode=0755 ;; *) mode=0644 ;; esac
        add_file "$(basename "$name")" "$name" "$mode"
    done

    sed -i "s| files/| $PWD/files/|; s| debug/| $PWD/debug/|" spec
    "$(stage_dir kernel "$kernel_key")/gen_init_cpio" -t 1767225600 spec > initramfs.cpio
    rm -rf files

    # What Debian strips from its C library, found by build ID as debuggers do.
    unpack libc6-dbg dbg
    # shellcheck disable=SC2231
    for file in debug/$lib/*.so*; do
        target=$(riscv64-linux-gnu-readelf -n "$file" | sed -n 's/.*Build ID: \(..\)\(.*\)/\1\/\2.debug/p')
        if [ -n "$target" ] && [ -e "dbg/usr/lib/debug/.build-id/$target" ]; then
            install -D "dbg/usr/lib/debug/.build-id/$target" "debug/usr/lib/debug/.build-id/$target"
        fi
    done
    rm -rf dbg
}

# add_file GUEST_PATH HOST_FILE MODE
add_file() { echo "file /$1 $2 $3 0 0" >> spec; }

# The shared libraries that the given files need, and those need, and so on.
needed_libraries() {
    local sysroot=$1 file name seen=" "
    shift
    local queue=("$@")
    while [ ${#queue[@]} -gt 0 ]; do
        file=${queue[0]}
        queue=("${queue[@]:1}")
        while read -r name; do
            case $seen in *" $name "*) continue ;; esac
            seen+="$name "
            echo "$name"
            queue+=("$sysroot/usr/lib/riscv64-linux-gnu/$name")
        done < <(riscv64-linux-gnu-readelf -d "$file" 2> /dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    done
    case $seen in *ld-linux*) ;; *) echo ld-linux-riscv64-lp64d.so.1 ;; esac
}
