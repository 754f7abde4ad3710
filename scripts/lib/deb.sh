# The Debian package of the simulator. Sourced by scripts/dev after crates.sh. Uses: repo, target.
# shellcheck shell=bash
# The script that sources this file sets the variables that are only read here.
# shellcheck disable=SC2154

# build_deb PROFILE: prints the path of the package. What goes where is in emulator/Cargo.toml.
build_deb() {
    local profile=$1 made=$target/$1/package tipsim=$target/$1/tipsim shell deb
    need_packages dpkg-dev python3
    need_cargo_deb
    cargo build --locked --profile "$profile" --package tipsim
    rm -rf "$made"
    mkdir -p "$made/completions"
    "$tipsim" man "$made/man"
    gzip -9n "$made"/man/*
    for shell in bash zsh fish; do
        "$tipsim" completions "$shell" > "$made/completions/tipsim.$shell"
    done
    python3 scripts/lib/third_party.py | gzip -9n > "$made/crates.gz"
    gzip -9n > "$made/changelog.Debian.gz" <<CHANGELOG
tipsim ($("$tipsim" --version | cut -d ' ' -f 2)-1) unstable; urgency=medium

  * Commit $(git rev-parse --short HEAD). What changed for users is in CHANGELOG.md beside this file.

 -- The tipsim authors <tipsim@localhost>  $(git log -1 --format=%cD)
CHANGELOG
    deb=$("$CARGO_DEB" --package tipsim --profile "$profile" --no-build --locked --quiet --output "$target/debian/")
    holds_what_builds_a_guest "$deb" >&2
    echo "$deb"
}

# The list of files in Cargo.toml is by folder: a new folder would be forgotten.
holds_what_builds_a_guest() {
    local mode name held missing=0
    # "-rwxr-xr-x ./usr/share/…"
    held=$(dpkg-deb -c "$1" | sed 's/ .* / /')
    while read -r mode name; do
        case $mode in 100755) mode=-rwxr-xr-x ;; *) mode=-rw-r--r-- ;; esac
        grep -qxF -e "$mode ./usr/share/tipsim/$name" <<< "$held" || { echo "not in the package: $mode $name"; missing=1; }
    done < <(git ls-files --format='%(objectmode) %(path)' guest-sw linux-patches workloads/quickstart workloads/storm)
    [ "$missing" = 0 ]
}
