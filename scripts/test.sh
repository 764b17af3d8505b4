#!/bin/sh
# All tests but the slow ones, with arguments those of pytest, or those that need neither root nor an engine:
# test.sh [ARGUMENTS OF PYTEST | unit]
set -u
cd "$(dirname "$0")/.." || exit
# Python and pytest keep what they compiled, whatever the caller's environment says: without it each worker, and each
# tare that a test starts, compiles everything again.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX="$PWD/build/pycache"
# Matrices here are small: with threads of their own the workers only wait for each other's.
export OPENBLAS_NUM_THREADS=1
# Many tests wait for the programs that they start: with one worker more than CPUs, these were idle for a quarter of the time.
workers=$(($(nproc) + 2))
# share ARGUMENTS OF PYTEST: workers share the tests by the groups of tests/conftest.py, those of the engine first.
# The place is short, as workers add to it, and sockets and Podman take no long path.
share() {
    place=$(mktemp -d /tmp/pytest-of-XXXX)
    .venv/bin/python -m pytest -n "$workers" --dist loadscope --no-loadscope-reorder --durations=40 \
        --basetemp="$place" "$@" || return
    rm -rf --one-file-system "$place"
}

if [ "$*" = unit ]; then
    share -m "not slow and not engine" tests/unit
    exit
fi
if [ $# -gt 0 ]; then
    exec .venv/bin/python -m pytest -m "not slow" "$@"
fi
# The probe's tests mostly wait, so they run beside the others. Whoever interrupts this ends them too.
probe_output=$(mktemp)
setsid scripts/test_probe_root.sh >"$probe_output" 2>&1 &
probe=$!
trap 'rm -f "$probe_output"' EXIT
trap 'kill -s TERM -- "-$probe"; exit 130' INT TERM
# CI runs `make check` before, which has these.
checked=
[ "${CI:-}" != true ] || checked="--ignore=tests/unit/test_architecture.py --ignore=tests/unit/test_architecture_crates.py"
code=0
# shellcheck disable=SC2086  # none or two words
share -m "not slow" $checked tests/integration tests/e2e tests/unit || code=$?
wait "$probe" || { code=$?; echo "FAILED  tests of tare-probe as root" >&2; }
cat "$probe_output"
exit "$code"
