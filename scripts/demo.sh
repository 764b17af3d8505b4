#!/bin/sh
# `make demo`: set up, run percona-2016 at demo scale, show what came out. A store that was begun is resumed,
# a finished one is only reported again.
set -eu
cd "$(dirname "$0")/.."
store=demo-store

scripts/timed.sh "virtual environment" scripts/venv.sh run
scripts/timed.sh "packages" scripts/packages.sh demo
scripts/timed.sh "engine" scripts/engine.sh up
scripts/timed.sh "study" .venv/bin/tare run percona-2016 --scale demo --store "$store"
scripts/timed.sh "HTML report" .venv/bin/tare report "$store" --format html --output "$store/report.html"
.venv/bin/tare report "$store"
cat <<END

Report: $PWD/$store/report.html
Anew:   rm -r $store && make demo
Engine: left running for your own studies; \`make engine-stop\` stops it if make started it
Your own study: .venv/bin/tare init, then plan, run and report
END
