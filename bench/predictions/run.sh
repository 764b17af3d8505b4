#!/usr/bin/env bash
# Are predictions right? Weigh this machine, run each workload on every path, storage and load level, and hold what bare
# runs and unit costs predict against what was measured; 45 minutes on an idle machine, beside making images. Stores and
# unit costs are kept; what is there is gone on with. SCALE=tiny tries it out in minutes. Stopped in between, it can still tell
# what it has: python -m bench.predictions build/predictions/full/*-store
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD tare=$PWD/.venv/bin/tare scale=${SCALE:-full}
place=$here/build/predictions/$scale
mkdir -p "$place"
began=$(date +%s)

# A study that fails says why, and the others go on; an interruption ends everything.
tried() { "$@" || { code=$?; [ "$code" -lt 128 ] || exit "$code"; echo "ended with $code: $*" >&2; }; }

studies=${STUDIES:-redis mariadb postgresql cassandra ferretdb}
declare -A image=([redis]=redis-7 [mariadb]=mariadb [postgresql]=postgresql-15 [cassandra]=cassandra-3.11 [ferretdb]=ferretdb-2)

# Images are made before anything is measured, so that making them does not disturb.
"$tare" images build images/echo.yaml images/tare-load.yaml >/dev/null
for name in $studies; do "$tare" images build "images/${image[$name]}.yaml" >/dev/null; done

stores=()
cd "$place"
if [ "$scale" != tiny ] || ! "$tare" weigh --show >/dev/null 2>&1; then
    # Anew, unless an interrupted call is gone on with.
    again=--again
    ! compgen -G "$place/*-store" >/dev/null || again=
    tried "$tare" weigh ${again:+"$again"}
fi
for name in $studies; do
    tried "$tare" run "$here/bench/predictions/predict-$name.yaml" --scale "$scale" --quiet >"predict-$name.txt"
    [ ! -d "predict-$name-$scale-store" ] || stores+=("$place/predict-$name-$scale-store")
    echo "predict-$name: $(($(date +%s) - began)) s since the start" >&2
done
cd "$here"
.venv/bin/python -m bench.predictions "${stores[@]}" --markdown build/bench-predictions.md --json build/bench-predictions.json
