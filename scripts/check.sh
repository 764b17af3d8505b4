#!/bin/sh
# `make check`, and so what CI checks before the tests. All parts run; the exit code is 1 if any failed.
set -u
cd "$(dirname "$0")/.." || exit
bin=.venv/bin
failed=
# Many short programs in Python: they keep what they compiled, for the tests too, whatever the caller's environment says.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX="$PWD/build/pycache"

check() {
    label=$1
    shift
    began_s=$(date +%s)
    output=$("$@" 2>&1)
    show $?
}
# show CODE: how the part `label` ended, which began at `began_s`, ended at `ended_s` (now) and wrote `output`.
show() {
    if [ "$1" = 0 ]; then
        echo "ok      $label, $((${ended_s:-$(date +%s)} - began_s)) s"
        printf '%s\n' "$output" | grep '^tare: '  # what was left out
    else
        printf '%s\n' "$output"
        echo "FAILED  $label"
        failed="$failed $label"
    fi
}

# Rust takes longest, and not always both CPUs: it runs beside the others. Whoever interrupts this ends it too.
rust_output=$(mktemp)
rust_ended=$(mktemp)
rust_began_s=$(date +%s)
# shellcheck disable=SC2016  # the inner shell expands it
setsid sh -c 'scripts/check_rust.sh; code=$?; date +%s >"$1"; exit "$code"' check "$rust_ended" >"$rust_output" 2>&1 &
rust=$!
trap 'rm -f "$rust_output" "$rust_ended"' EXIT
trap 'kill -s TERM -- "-$rust"; exit 130' INT TERM

check format "$bin/ruff" format --check
check lint "$bin/ruff" check
check types "$bin/mypy"
check study-schema "$bin/python" -m tare.study.schema --check
check findings-schema "$bin/python" -m tare.report.schema --check
check import-schema "$bin/python" -m tare.imports.schema --check
check sites-schema "$bin/python" -m tare.sites.schema --check
check machine-plan-schema "$bin/python" -m tare.sites.cloud.schema --check
check claim-schema "$bin/python" -m tare.knowledge.schema --check
check grafana "$bin/python" -m tools.grafana_dashboard --check
check architecture "$bin/python" -m pytest -q tests/unit/test_architecture.py tests/unit/test_architecture_crates.py
check shell "$bin/shellcheck" scripts/*.sh bench/*/*.sh .ci/run

wait "$rust"
code=$?
label=rust began_s=$rust_began_s ended_s=$(cat "$rust_ended") output=$(cat "$rust_output")
show "$code"

[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
