#!/bin/sh
# `make demo-pair`: two test hosts on this machine, grambow-2018's setups I to IV between them, and the path of each as
# the sockets of both hosts show it. The hosts are removed whatever happens; the store stays.
set -eu
cd "$(dirname "$0")/.."
store=demo-pair-store

scripts/timed.sh "virtual environment" scripts/venv.sh dev
scripts/timed.sh "packages" scripts/packages.sh hosts
trap '.venv/bin/python -m tools.hosts down' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
scripts/timed.sh "test hosts" .venv/bin/python -m tools.hosts up --engines
sites=$(.venv/bin/python -m tools.hosts where)
code=0
scripts/timed.sh "study" .venv/bin/tare run grambow-2018 --scale pair-demo --sites "$sites" \
    --store "$store" || code=$?
[ "$code" -le 1 ] || exit "$code"  # 1: a run failed for good, and the report says which and why
.venv/bin/python -m tools.paths "$store"
.venv/bin/tare report "$store" --format html --output "$store/report.html"
cat <<END

Report: $PWD/$store/report.html
Start over: rm -r $store && make demo-pair
END
exit "$code"
