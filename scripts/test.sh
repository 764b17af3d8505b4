#!/bin/sh
# All tests but the slow ones, or with arguments those of pytest: test.sh [ARGUMENTS OF PYTEST]
# What mostly computes is shared by two workers; where processes and time are what is tested, one comes after the other.
set -u
cd "$(dirname "$0")/.." || exit

if [ $# -gt 0 ]; then
    exec .venv/bin/python -m pytest -m "not slow" "$@"
fi
shared='' ignored=''
for folder in analyze calibrate cli databases imports knowledge live protocols report store study workloads; do
    shared="$shared tests/unit/$folder"
    ignored="$ignored --ignore=tests/unit/$folder"
done
for file in architecture notebook; do
    shared="$shared tests/unit/test_$file.py"
    ignored="$ignored --ignore=tests/unit/test_$file.py"
done
code=0
scripts/test_probe_root.sh || code=$?
# shellcheck disable=SC2086  # words on purpose
.venv/bin/python -m pytest -m "not slow" -n 2 $shared || code=$?
# shellcheck disable=SC2086  # words on purpose
.venv/bin/python -m pytest -m "not slow" --durations=25 $ignored || code=$?
exit "$code"
