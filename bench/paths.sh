#!/usr/bin/env bash
# Network paths on an idle machine: redis-paths at scale demo, and each pair of generators on the same arms.
# Stores and reports go to build/paths. STUDIES: which of them, of those below.
set -euo pipefail
cd "$(dirname "$0")/.."
tare=$PWD/.venv/bin/tare here=$PWD
mkdir -p build/paths
for study in ${STUDIES:-studies/redis-paths docs/examples/generators-redis docs/examples/generators-postgresql docs/examples/generators-mariadb}; do
    name=$(basename "$study")
    (
        cd build/paths
        "$tare" run "$here/$study" --scale demo
        for format in markdown html; do
            "$tare" report "$name-demo-store" --format "$format" --output "$name.${format/markdown/md}"
        done
    )
done
