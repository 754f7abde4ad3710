# Stages: what is built once per key, with its log and its progress.
# Sourced by guest-sw/build. Uses: guest, jobs.
# shellcheck shell=bash
# The script that sources this file sets the variables that are only read here.
# shellcheck disable=SC2154

say() { echo "guest: $*" >&2; }
fail() { say "error: $*"; exit 1; }
elapsed() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# A key of its arguments: a readable file stands for its content, all else for itself.
key() {
    local part
    for part in "$@"; do
        if [ -f "$part" ]; then sha256sum < "$part"; else printf '%s\n' "$part"; fi
    done | sha256sum | cut -c 1-16
}

# Where a finished stage's files are.
stage_dir() { echo "$guest/stages/$1-$2"; }

# Shows how far a stage is: how many lines of its log begin as make's own do, or the last line if none does.
watch_progress() {
    local name=$1 log=$2 started=$SECONDS now seen
    while sleep 1; do
        now=$((SECONDS - started))
        [ -t 2 ] || [ $((now % 60)) = 0 ] || continue
        seen=$(grep -cE '^ +(CC|AS|LD|AR|HOSTCC|GEN|HOSTLD) ' "$log" || true)
        if [ "$seen" = 0 ]; then
            seen=$(tail -n 1 "$log" | tr -cd '[:print:]' | cut -c 1-60)
        else
            seen="$seen files"
        fi
        if [ -t 2 ]; then
            printf '\r\033[Kguest: %-9s %s  %s ' "$name" "$(elapsed $now)" "$seen" >&2
        else
            say "$(printf '%-9s %s  %s' "$name" "$(elapsed $now)" "$seen")"
        fi
    done
}

# stage NAME KEY FUNCTION: runs FUNCTION in a directory of its own unless that was done before.
# A stage that was interrupted finds what it left behind, so make can go on.
stage() {
    local name=$1 key=$2 function=$3 dir part log started watcher status=0
    dir=$(stage_dir "$name" "$key")
    if [ -d "$dir" ]; then
        say "$(printf '%-9s unchanged' "$name")"
        return
    fi
    part=$dir.part
    log=$guest/logs/$name.log
    started=$SECONDS
    mkdir -p "$part"
    : > "$log"
    [ -t 2 ] || say "$(printf '%-9s started' "$name")"
    watch_progress "$name" "$log" 9>&- &
    watcher=$!
    # Not "if ( … )": set -e would be ignored inside.
    set +e
    (set -e; cd "$part"; $function 9>&-) >> "$log" 2>&1
    status=$?
    set -e
    kill "$watcher" 2> /dev/null || true
    wait "$watcher" 2> /dev/null || true
    [ ! -t 2 ] || printf '\r\033[K' >&2
    if [ "$status" != 0 ]; then
        tail -n 30 "$log" >&2
        fail "stage $name failed; the whole log: $log"
    fi
    mv "$part" "$dir"
    say "$(printf '%-9s %s' "$name" "$(elapsed $((SECONDS - started)))")"
}
