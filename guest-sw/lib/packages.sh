# Debian packages: the host's tools by its own apt, the guest's files by a private apt that never touches the host.
# Sourced by guest-sw/build and guest-sw/debian. Uses: guest, update, install; lock: the file that pins versions.
# shellcheck shell=bash
# The script that sources this file sets the variables that are only read here.
# shellcheck disable=SC2154

suite=trixie
# The release by its codename, and while it is stable by that name too: a mirror in the middle of its own update may have
# only one of them whole.
suite_names="$suite stable"
kernel_package=linux-source-6.12
host_tools="gcc-riscv64-linux-gnu libc6-dev-riscv64-cross gcc libc6-dev make flex bison bc python3 pkg-config
    xz-utils bzip2 patch ca-certificates debian-archive-keyring"
# What perf is built against; with all they depend on these are the sysroot, and the guest's libraries come from it.
sysroot_packages="libc6-dev libelf-dev libdw-dev libcapstone-dev zlib1g-dev libzstd-dev libiberty-dev libslang2-dev
    libtraceevent-dev libaudit-dev"
plain_packages="$kernel_package opensbi ncurses-base libc6-dbg"
# What is built from Debian's source package. In the lock file NAME.orig and NAME.debian are its two archives.
source_packages=busybox

host_packages() {
    local package missing=""
    command -v dpkg-query > /dev/null || fail "needs a Debian host (dpkg, apt)"
    for package in $host_tools; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2> /dev/null | grep -qx installed || missing+=" $package"
    done
    [ -n "$missing" ] || return 0
    [ "$install" = yes ] || fail "missing host packages:$missing"
    say "installing$missing"
    local root=""
    [ "$(id -u)" = 0 ] || root=sudo
    # shellcheck disable=SC2086
    { $root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing ||
        { $root apt-get update &&
            $root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; }
    } > "$guest/logs/host-packages.log" 2>&1 9>&- || {
        tail -n 20 "$guest/logs/host-packages.log" >&2
        fail "apt could not install:$missing"
    }
}

# The mirror that this machine's apt has for Debian itself, from either form of its sources.
host_mirror() {
    python3 - <<'PYTHON'
import glob, re, sys
DEBIAN = re.compile(r"^(bookworm|trixie|forky|sid|stable|testing|unstable|oldstable)$")
for path in ["/etc/apt/sources.list", *sorted(glob.glob("/etc/apt/sources.list.d/*"))]:
    try:
        text = open(path).read()
    except OSError:
        continue
    entries = []
    if path.endswith(".sources"):
        for stanza in re.split(r"\n\s*\n", text):
            stanza = "\n".join(line for line in stanza.splitlines() if not line.startswith("#"))
            field = {k.lower(): v.split() for k, v in re.findall(r"^([\w-]+):[ \t]*(.*(?:\n[ \t].*)*)", stanza, re.M)}
            if "deb" in field.get("types", []) and field.get("enabled") != ["no"]:
                entries += [(u, field.get("suites", []), field.get("components", [])) for u in field.get("uris", [])]
    else:
        for line in text.splitlines():
            match = re.match(r"\s*deb\s+(?:\[[^]]*\]\s*)?(\S+)\s+(\S+)\s+(.*)", line)
            if match:
                entries.append((match[1], [match[2]], match[3].split("#")[0].split()))
    for uri, suites, components in entries:
        if "main" in components and any(DEBIAN.match(s) for s in suites) and uri.startswith(("http", "file")):
            sys.exit(print(uri.rstrip("/")))
PYTHON
}

# Debian's archive, and that of its packages with debugging information, which lies beside it.
mirror() {
    local mirror=${TIPSIM_MIRROR:-}
    [ -n "$mirror" ] || mirror=$(host_mirror)
    [ -n "$mirror" ] || fail "no Debian mirror in this machine's apt sources: set TIPSIM_MIRROR"
    echo "$mirror"
}
debug_mirror() {
    local mirror
    [ "${TIPSIM_DEBUG_MIRROR:-}" != none ] || fail "TIPSIM_DEBUG_MIRROR: expected the archive of -dbgsym packages, found none"
    [ -n "${TIPSIM_DEBUG_MIRROR:-}" ] || mirror=$(mirror) || return
    echo "${TIPSIM_DEBUG_MIRROR:-$mirror-debug}"
}

# How the private apt reads an archive. A folder of this machine that was named for debugging information needs no signature.
apt_options() {
    case $1 in
        file:*)
            if [ "$1" = "${TIPSIM_DEBUG_MIRROR:-}" ]; then
                echo "[arch=riscv64 trusted=yes]"
                return
            fi ;;
    esac
    echo "[arch=riscv64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
}

apt=$guest/apt
private_apt() { APT_CONFIG=$apt/apt.conf "$@"; }

configure_private_apt() {
    mkdir -p "$apt"/etc/{apt.conf.d,preferences.d,sources.list.d} "$apt"/state/lists/partial "$apt"/cache/archives/partial
    : > "$apt/status"
    {
        printf '%s\n' "Dir \"$apt\";" "Dir::Etc \"$apt/etc\";" "Dir::State \"$apt/state\";" \
            "Dir::State::status \"$apt/status\";" "Dir::Cache \"$apt/cache\";" \
            'APT::Architecture "riscv64";' 'APT::Architectures { "riscv64"; };' \
            "APT::Sandbox::User \"$(id -un)\";" 'Acquire::Languages "none";'
        # Proxies and certificates of this machine hold for us too.
        apt-config dump | grep -E '^Acquire::https?::' || true
    } > "$apt/apt.conf"
}

# Leaves it with fresh lists.
make_private_apt() {
    local log=$guest/logs/apt.log mirror signed name known archive
    mirror=$(mirror)
    signed=$(apt_options "$mirror")
    configure_private_apt
    for name in $suite_names; do
        echo "deb $signed $mirror $name main" > "$apt/etc/sources.list"
        [ -z "$source_packages" ] || echo "deb-src $signed $mirror $name main" >> "$apt/etc/sources.list"
        private_apt apt-get update > "$log" 2>&1 9>&- || continue
        # apt replaces $(CODENAME), not the shell.
        # shellcheck disable=SC2016
        known=$(private_apt apt-get indextargets --format '$(CODENAME)')
        grep -qx "$suite" <<< "$known" || continue
        wants_debug_archive || return 0
        archive=$(debug_mirror)
        echo "deb $(apt_options "$archive") $archive $suite-debug main" >> "$apt/etc/sources.list"
        private_apt apt-get update -o APT::Update::Error-Mode=any > "$log" 2>&1 9>&- ||
            fail "the mirror has no -dbgsym packages: expected them at $archive ($log); set TIPSIM_DEBUG_MIRROR, or TIPSIM_MIRROR, to use another"
        return 0
    done
    tail -n 20 "$log" >&2
    fail "the mirror has no $suite, nor is its stable release that; set TIPSIM_MIRROR to use another"
}

wants_debug_archive() { grep -q -- '-dbgsym\( \|$\)' <<< "$sysroot_packages"; }

# The names, one a line, of what apt does not know.
unknown_packages() {
    sed -n "s/^E: Unable to locate package //p; s/^E: Package '\([^']*\)' has no installation candidate$/\1/p;
        s/^E: Couldn't find any package by .* '\([^']*\)'$/\1/p" "$1" | sort -u
}

# Writes the lock file: one line per package, "name version sha256 size address".
find_packages() {
    local closure unknown binary="" sources="" log=$guest/logs/apt.log
    if [ -s "$lock" ] && [ "$update" = no ] && [ "$(head -n 1 "$lock")" = "$(lock_head)" ]; then return; fi
    say "looking up packages"
    make_private_apt
    # shellcheck disable=SC2086
    [ -z "$sysroot_packages" ] || {
        closure=$(private_apt apt-get install -y --print-uris --no-install-recommends $sysroot_packages 2> "$log" |
            sed -n "s/^'[^']*' \([^_]*\)_.*/\1/p") || {
            unknown=$(unknown_packages "$log" | paste -sd ' ')
            [ -z "$unknown" ] || fail "no such package in $suite: $unknown"
            grep '^[EW]:\|Depends:' "$log" >&2 || true
            fail "apt finds no way to install: $sysroot_packages"
        }
        [ -n "$closure" ] || fail "apt finds no way to install: $sysroot_packages"
        # shellcheck disable=SC2086
        binary=$(private_apt apt-get download --print-uris $closure $plain_packages 2> "$log" |
            sed -n "s/^'\([^']*\)' \([^_]*\)_\([^_]*\)_[^ ]* \([0-9]*\) SHA256:\([0-9a-f]*\)$/\2 \3 \5 \4 \1/p")
    }
    [ -z "$source_packages" ] || {
        # shellcheck disable=SC2086
        sources=$(private_apt apt-get source --print-uris --download-only $source_packages 2> "$log" | sed -n \
            "s/^'\([^']*\)' \([^_]*\)_\(.*\)\.\(orig\|debian\)\.tar\.[^ ]* \([0-9]*\) SHA256:\([0-9a-f]*\)$/\2.\4 \3 \6 \5 \1/p") ||
            fail "no such source package in $suite: $(sed -n \
            's/^E: Unable to find a source package for //p' "$log" | paste -sd ' ')"
    }
    # A look-up that failed leaves nothing, and one that is interrupted here no half of a file.
    { lock_head; printf '%s\n' "$binary" "$sources" | sed '/^$/d' | sort; } > "$lock.new"
    mv "$lock.new" "$lock"
}

# Lists of packages are texts that are split into words.
# shellcheck disable=SC2086
lock_head() { echo "# $suite" $sysroot_packages $plain_packages $source_packages; }

# "name version sha256": what identifies a package in a key.
package_line() {
    grep "^$1 " "$lock" | cut -d ' ' -f 1-3 | grep . || fail "no package $1 in $suite"
}

# The same of all.
package_lines() { grep -v '^#' "$lock" | cut -d ' ' -f 1-3; }

sysroot_lines() {
    local plain
    plain=$(echo "$plain_packages" | tr -s ' \n' '\n' | grep -v libc6-dbg)
    package_lines | grep -vE "^($(echo "$plain" | paste -sd '|')|[^ ]*\.(orig|debian)) "
}

# Prints the path of the package's file, which is downloaded if need be.
deb() {
    local name version sum size address file
    read -r name version sum size address < <(grep "^$1 " "$lock")
    file=$guest/debs/${name}_$sum.${address##*.}
    if [ ! -e "$file" ]; then
        echo "downloading $name ${version//%3a/:} ($((size / 1024)) KiB)" >&2
        # The download helper of apt: it knows this machine's proxies.
        private_apt /usr/lib/apt/apt-helper download-file "$address" "$file.part" "SHA256:$sum" >&2 ||
            fail "cannot download $name $version: it may have been replaced, try --update"
        mv "$file.part" "$file"
    fi
    echo "$file"
}

# unpack PACKAGE DIRECTORY
unpack() {
    local file
    file=$(deb "$1")
    dpkg-deb -x "$file" "$2"
}

# link_packages FOLDER TARGET: tipsim finds what was made of packages by their names, in that folder of the cache.
link_packages() {
    local link
    link=$guest/$1/$(printf '%s\n' "${packages[@]}" | sort -u | sha256sum | cut -c 1-16)
    mkdir -p "$guest/$1"
    ln -sfn "$2" "$link.new"
    mv -T "$link.new" "$link"
}

build_firmware() {
    unpack opensbi unpacked
    mv unpacked/usr/lib/riscv64-linux-gnu/opensbi/generic/fw_* .
    rm -r unpacked
}

build_sysroot() {
    local name
    # Debian's base-files makes this link; the linker script of libc.so relies on it.
    mkdir -p root/usr/lib
    ln -sfn usr/lib root/lib
    for name in $(sysroot_lines | cut -d ' ' -f 1); do
        echo "$name"
        unpack "$name" root
    done
    # Absolute links would lead to the host's files.
    find root -type l -lname '/*' | while read -r link; do
        ln -sfn "$(realpath -m --relative-to "$(dirname "$link")" "root$(readlink "$link")")" "$link"
    done
}
