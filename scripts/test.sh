#!/bin/sh
# All tests but the slow ones, with arguments those of pytest, or those that need neither root nor an engine:
# test.sh [ARGUMENTS OF PYTEST | unit]
# Unit tests and those in a browser are shared by several workers; on the engine, where what else runs is measured too, one
# comes after the other.
set -u
cd "$(dirname "$0")/.." || exit
# Python and pytest keep what they compiled, whatever the caller's environment says: without it each worker, and each
# tare that a test starts, compiles everything again.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX="$PWD/build/pycache"
# Many unit tests wait for the programs that they start, so one worker more than there are CPUs.
workers=$(($(nproc) + 1))

if [ "$*" = unit ]; then
    exec .venv/bin/python -m pytest -m "not slow and not engine" -n "$workers" --durations=10 tests/unit
fi
if [ $# -gt 0 ]; then
    exec .venv/bin/python -m pytest -m "not slow" "$@"
fi
code=0
scripts/test_probe_root.sh || code=$?
.venv/bin/python -m pytest -m "not slow" -n "$workers" --durations=25 tests/unit tests/e2e || code=$?
.venv/bin/python -m pytest -m "not slow" --durations=50 tests/integration || code=$?
exit "$code"
