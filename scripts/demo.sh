#!/bin/sh
# `make demo`: set up, run percona-2016 at demo scale with stacks sampled, show what came out and why. A store that was
# begun is resumed, a finished one is only reported again. The link that it prints first shows the study in a browser
# while it runs. PROFILE=0 samples no stacks, as the study itself does not: its source did not either.
set -eu
cd "$(dirname "$0")/.."
store=demo-store
profile=--profile
[ "${PROFILE:-1}" != 0 ] || profile=
# A store goes on as it was begun.
has_profile='import sys; from pathlib import Path; from tare.store import open_store
sys.exit(0 if "profile" in open_store(Path(sys.argv[1])).plan.study.arms[0].settings.monitors else 3)'

scripts/timed.sh "virtual environment" scripts/venv.sh run
scripts/timed.sh "packages" scripts/packages.sh demo
scripts/timed.sh "engine" scripts/engine.sh up
# 1: a run failed for good, and the report says which and why. Anything else is no result, and ends here.
code=0
if [ -e "$store" ]; then
    begun=0
    .venv/bin/python -c "$has_profile" "$store" 2>/dev/null || begun=$?
    case $begun in 0) profile=--profile ;; 3) profile= ;; esac
fi
scripts/timed.sh "study" .venv/bin/tare run percona-2016 --scale demo ${profile:+"$profile"} --store "$store" --serve || code=$?
[ "$code" -le 1 ] || exit "$code"
scripts/timed.sh "HTML report" .venv/bin/tare report "$store" --format html --output "$store/report.html"
cat <<END

Report: $PWD/$store/report.html
Live:   .venv/bin/tare serve $store shows the page of the run again, with this report
Start over: rm -r $store && make demo
Engine: left running for studies of your own; \`make engine-stop\` stops it if make started it
Next:   .venv/bin/tare init, then plan, run and report: see README.md
END
exit "$code"
