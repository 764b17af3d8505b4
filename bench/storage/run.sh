#!/bin/sh
# fio on every storage against the host's file system, BLOCKS (5) times; goes on with a store that was begun.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p build
# 1: a run failed for good, and the table lacks it.
code=0
.venv/bin/tare run bench/storage/study.yaml --blocks "${BLOCKS:-5}" --store build/bench-storage || code=$?
[ "$code" -le 1 ] || exit "$code"
.venv/bin/python -m bench.storage.table build/bench-storage --markdown build/bench-storage.md
exit "$code"
