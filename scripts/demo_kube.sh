#!/bin/sh
# `make demo-kube`: a cluster of one node, this machine, and on it the study kube-2026 with its pods. The cluster is
# removed whatever happens; the store stays. Arguments go to `tare run`, as --blocks 2 does.
set -eu
cd "$(dirname "$0")/.."
store=demo-kube-store

scripts/timed.sh "virtual environment" scripts/venv.sh dev
scripts/timed.sh "packages" scripts/packages.sh demo
scripts/timed.sh "packages of a cluster" scripts/packages.sh kube
scripts/timed.sh "Kubernetes" scripts/kube.sh build
code=0
scripts/timed.sh "study" scripts/engine.sh run scripts/kube.sh run .venv/bin/tare run kube-2026 --scale demo-kube \
    --store "$store" "$@" || code=$?
[ "$code" -le 1 ] || exit "$code"  # 1: a run failed for good, and the report says which and why
.venv/bin/tare report "$store" --format html --output "$store/report.html"
cat <<END

Report: $PWD/$store/report.html
Start over: rm -r $store && make demo-kube
END
exit "$code"
