#!/bin/sh
# In the guest: storm under perf record, once per line of standard input, each the arguments for perf. Says for
# each what came of it; the last line is "all N over" if every one ended well. usage: storm.sh ROUNDS
# Not where it lies: what timeout leaves behind for a moment must not keep that directory busy.
cp "$(dirname "$0")/storm" /tmp && cd /tmp || exit 1
data=/tmp/storm.data
runs=0
bad=0
while read -r arguments; do
    runs=$((runs + 1))
    # shellcheck disable=SC2086
    timeout 120 perf record -q -o $data $arguments -- ./storm "$1" > /tmp/storm.said 2>&1 < /dev/null
    status=$?
    grep -q '^storm: over$' /tmp/storm.said || status="$status, not over: $(tail -n 2 /tmp/storm.said)"
    events=$(perf report -q -i $data --stats 2> /dev/null | awk '/^Aggregated/ { all = 1 } /stats:$/ { all = 0 }
        $1 ~ /^(SAMPLE|LOST|LOST_SAMPLES|THROTTLE|UNTHROTTLE)$/ && !seen[$1]++ { printf " %s %s", $1, $3 }')
    echo "$arguments: status $status,$events"
    case $events in *"SAMPLE "*) ;; *) status="$status, no samples" ;; esac
    [ "$status" = 0 ] || bad=$((bad + 1))
    rm -f $data
done
echo "stood still: $(cat /sys/bus/event_source/devices/tip/frozen_cycles) cycles"
[ $bad = 0 ] && echo "all $runs over"
