#!/usr/bin/env bash
# Network paths on an idle machine: redis-paths at scale demo, and two generators on the same arms; some 30 minutes,
# beside making images. Stores, reports and the table of agreement go to build/paths; a store that is there is gone on
# with. STUDIES: which of those below, or others as FOLDER:SCALE.
set -euo pipefail
cd "$(dirname "$0")/../.."
tare=$PWD/.venv/bin/tare here=$PWD
mkdir -p build/paths

# A study with a failed run or a control that differs ends with 1: its report says so, and the others go on.
told() { "$@" || [ $? -eq 1 ]; }

pairs=()
for asked in ${STUDIES:-studies/redis-paths docs/examples/generators-redis docs/examples/generators-postgresql docs/examples/generators-mariadb}; do
    study=${asked%%:*} scale=demo
    [ "$study" = "$asked" ] || scale=${asked#*:}
    name=$(basename "$study")
    (
        cd build/paths
        told "$tare" run "$here/$study" --scale "$scale"
        for format in md html; do
            told "$tare" report "$name-$scale-store" --format "$format" --output "$name-$scale.$format"
        done
    )
    case $name in generators-*) pairs+=("build/paths/$name-$scale-store") ;; esac
done
[ "${#pairs[@]}" -eq 0 ] || .venv/bin/python -m bench.paths "${pairs[@]}" --markdown build/bench-paths.md
