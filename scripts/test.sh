#!/bin/sh
# All tests but the slow ones, or with arguments those of pytest: test.sh [ARGUMENTS OF PYTEST]
# What only computes is shared by two workers; whatever starts processes comes one by one, as it is about time.
set -u
cd "$(dirname "$0")/.." || exit

if [ $# -gt 0 ]; then
    exec .venv/bin/python -m pytest -m "not slow" "$@"
fi
computes="tests/unit/analyze tests/unit/knowledge tests/unit/report tests/unit/study"
code=0
# shellcheck disable=SC2086  # words on purpose
.venv/bin/python -m pytest -m "not slow" -n 2 $computes || code=$?
ignored=
for folder in $computes; do
    ignored="$ignored --ignore=$folder"
done
# shellcheck disable=SC2086
.venv/bin/python -m pytest -m "not slow" --durations=25 $ignored || code=$?
exit "$code"
