#!/bin/sh
# apt-get that waits up to ten minutes for another apt to end: apt's own option waits for dpkg's lock, but not for that of
# the package lists. Takes apt-get's arguments.
set -u
log=$(mktemp)
trap 'rm -f "$log"' EXIT
end=$(($(date +%s) + 600))
told=

while :; do
    status=0
    LC_ALL=C apt-get -o DPkg::Lock::Timeout=600 "$@" 2>"$log" || status=$?
    { [ $status -ne 0 ] && grep -q '^E: Could not get lock' "$log" && [ "$(date +%s)" -lt $end ]; } || break
    [ -n "$told" ] || echo "waiting for another apt to end" >&2
    told=yes
    sleep 5
done
cat "$log" >&2
exit $status
