#!/bin/sh
# Starts and stops of a server in every deployment, BLOCKS (5) times; goes on with a store that was begun.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p build
# 1: a run failed for good, and the table lacks it.
code=0
.venv/bin/tare run bench/start/study.yaml --blocks "${BLOCKS:-5}" --store build/bench-start || code=$?
[ "$code" -le 1 ] || exit "$code"
.venv/bin/python -m bench.start.table build/bench-start --markdown build/bench-start.md
exit "$code"
