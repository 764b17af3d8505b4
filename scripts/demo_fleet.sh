#!/bin/sh
# `make demo-fleet`: three pairs of test hosts on this machine, one study on all of them at once, and the power cut of one
# pair in the middle: it is set aside, and its blocks go to the others. The hosts are removed whatever happens; the store
# stays.
set -eu
cd "$(dirname "$0")/.."
store=demo-fleet-store

scripts/timed.sh "virtual environment" scripts/venv.sh dev
scripts/timed.sh "packages" scripts/packages.sh hosts
cutter=
# shellcheck disable=SC2329  # the trap calls it
remove() {
    [ -z "$cutter" ] || kill "$cutter" 2>/dev/null || true  # it has cut, and ended
    .venv/bin/python -m tools.hosts down
}
trap remove EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
scripts/timed.sh "test hosts" .venv/bin/python -m tools.hosts up --engines --pairs 3
sites=$(.venv/bin/python -m tools.hosts where)
.venv/bin/python -m tools.chaos.power "$store" --after 6 --site pair-2 &
cutter=$!
code=0
scripts/timed.sh "study" .venv/bin/tare run docs/examples/fleet --sites "$sites" --store "$store" || code=$?
[ "$code" -le 1 ] || exit "$code"  # 1: a run failed for good, and the report says which and why
wait "$cutter" || { echo "demo-fleet: the power of pair-2 was not cut" >&2; exit 1; }
cutter=
.venv/bin/tare report "$store" --format html --output "$store/report.html"
cat <<END

Report: $PWD/$store/report.html
Start over: rm -r $store && make demo-fleet
END
exit "$code"
