#!/bin/sh
# `make demo`: set up, run percona-2016 at demo scale, show what came out. With PROFILE=1 its report says where the
# time goes, too. A store that was begun is resumed,
# a finished one is only reported again. The link that it prints first shows the study in a browser while it runs.
set -eu
cd "$(dirname "$0")/.."
store=demo-store

scripts/timed.sh "virtual environment" scripts/venv.sh run
scripts/timed.sh "packages" scripts/packages.sh demo
scripts/timed.sh "engine" scripts/engine.sh up
# 1: a run failed for good, and the report says which and why. Anything else is no result, and ends here.
code=0
scripts/timed.sh "study" .venv/bin/tare run percona-2016 --scale demo ${PROFILE:+--profile} --store "$store" --serve || code=$?
[ "$code" -le 1 ] || exit "$code"
scripts/timed.sh "HTML report" .venv/bin/tare report "$store" --format html --output "$store/report.html"
cat <<END

Report: $PWD/$store/report.html
Live:   .venv/bin/tare serve $store shows the page of the run again, with this report
Anew:   rm -r $store && make demo
Engine: left running for studies of your own; \`make engine-stop\` stops it if make started it
Yours:  .venv/bin/tare init, then plan, run and report: see README.md
END
exit "$code"
