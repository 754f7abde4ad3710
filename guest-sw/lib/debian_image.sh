# A disk image with Debian. Sourced by guest-sw/debian-image. Uses: here, guest, lock, tipsim, builder.

image_packages="linux-image-riscv64 linux-perf initramfs-tools systemd-sysv udev iproute2 iputils-ping procps zstd"
image_size=2G

# As find_packages, and what Debian requires of every system.
find_image_packages() {
    if [ -s "$lock" ] && [ "$update" = no ] && grep -q '^# required ' "$lock"; then return; fi
    make_private_apt
    local required
    required=$(private_apt apt-cache dumpavail |
        awk '/^Package: /{name=$2} /^Priority: required/{required=1} /^Essential: yes/{required=1}
             /^$/{if (required) print name; required=0}' | sort -u | paste -sd ' ')
    [ -n "$required" ] || fail "apt knows no required packages"
    sysroot_packages="$required $sysroot_packages"
    update=yes
    find_packages
    echo "# required $required" >> "$lock"
}

required_packages() { sed -n 's/^# required //p' "$lock"; }

build_image() {
    local name file command status root=$PWD/root
    mkdir -p "$root/var/cache/apt/archives" "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" share
    # Everything is unpacked here once, so that dpkg can run, the merged /usr of base-files first: what follows goes
    # through its links. The guest's dpkg unpacks it again and keeps the books.
    dpkg-deb --fsys-tarfile "$(deb base-files)" | tar -x -C "$root"
    for name in $(grep -v '^#' "$lock" | cut -d ' ' -f 1 | grep -v '^opensbi$'); do
        file=$(deb "$name")
        cp "$file" "$root/var/cache/apt/archives/$name.deb"
        case $name in
            linux-image-*) ;;
            *) dpkg-deb --fsys-tarfile "$file" | tar -x --keep-directory-symlink -C "$root" ;;
        esac
    done
    required_packages > "$root/var/cache/apt/archives/required"
    : > "$root/var/lib/dpkg/status"
    install -m 755 "$here/rootfs/second-stage" "$root/second-stage"
    unpack opensbi opensbi
    cp opensbi/usr/lib/riscv64-linux-gnu/opensbi/generic/fw_dynamic.bin .
    truncate -s "$image_size" disk.img
    /sbin/mke2fs -q -t ext4 -E root_owner=0:0 -d "$root" disk.img
    # What stays is for the names of functions in reports.
    rm -rf opensbi "$root"/{dev,proc,run,second-stage,sys,tmp,var}
    command='mkdir -p /mnt && mount -t ext4 /dev/vda /mnt && mount -t proc proc /mnt/proc && mount -t sysfs sys /mnt/sys &&
        mount -t devtmpfs dev /mnt/dev && chroot /mnt /bin/sh /second-stage > second-stage.log 2>&1;
        status=$?; cp /mnt/boot/vmlinu* vmlinux; cp /mnt/boot/initrd.img* initrd.img;
        umount /mnt/proc /mnt/sys /mnt/dev; umount /mnt && exit $status'
    status=0
    "$tipsim" boot --guest-dir "$builder" --memory 1G --drive disk.img --share share --command "$command" \
        < /dev/null > boot.log 2>&1 || status=$?
    tail -n 30 share/second-stage.log
    [ "$status" = 0 ]
    mv share/vmlinux share/initrd.img .
    rm -rf share
}
