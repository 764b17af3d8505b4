#!/bin/sh
# All tests but the slow ones, or with arguments those of pytest: test.sh [ARGUMENTS OF PYTEST]
# Unit tests and those in a browser are shared by two workers; on the engine, where what else runs is measured too, one
# comes after the other.
set -u
cd "$(dirname "$0")/.." || exit

if [ $# -gt 0 ]; then
    exec .venv/bin/python -m pytest -m "not slow" "$@"
fi
code=0
scripts/test_probe_root.sh || code=$?
.venv/bin/python -m pytest -m "not slow" -n 2 --durations=25 tests/unit tests/e2e || code=$?
.venv/bin/python -m pytest -m "not slow" --durations=50 tests/integration || code=$?
exit "$code"
