#!/bin/sh
# Make .venv, or renew it when what it is made from has changed: venv.sh run (to use tare) | dev (to work on it).
# Versions are those of constraints.txt.
set -eu
cd "$(dirname "$0")/.."

kind=${1:-dev}
case $kind in
    run) extras=. ;;
    dev) extras='.[dev]' ;;
    *) echo "usage: scripts/venv.sh [run|dev]" >&2; exit 2 ;;
esac

# An environment cannot be moved, so the place counts too.
state=$({ pwd; cat pyproject.toml constraints.txt scripts/venv.sh; } | sha256sum)
fresh() {
    [ -f ".venv/tare-$1.stamp" ] && [ "$(cat ".venv/tare-$1.stamp")" = "$state" ] && .venv/bin/python -c '' 2>/dev/null
}
if fresh "$kind" || { [ "$kind" = run ] && fresh dev; }; then
    exit 0
fi

if ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$(scripts/python.sh)
    "$python" -m venv --clear .venv
fi
echo "tare: setting up .venv (a minute or two the first time)" >&2
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --retries 10 \
    --constraint constraints.txt --editable "$extras" || {
    echo "tare: pip could not install tare into .venv: see above, then run this again" >&2
    exit 3
}
echo "$state" >".venv/tare-$kind.stamp"
