#!/bin/sh
# Make .venv, or renew what has changed of it: venv.sh run (to use tare) | dev (to work on it) | docs (to build its site, too).
# Versions and digests are those of constraints.txt. tare-probe is built by cargo in target/, or in $CARGO_TARGET_DIR; a new clone
# takes what another one on this machine built (scripts/rust_cache.sh).
set -eu
cd "$(dirname "$0")/.."

kind=${1:-dev}
# What serves the kind: its own environment, or one with more in it.
case $kind in
    run) serving="run dev docs" ;;
    dev) serving="dev docs" ;;
    docs) serving=docs ;;
    *) echo "usage: scripts/venv.sh [run|dev|docs]" >&2; exit 2 ;;
esac

# An environment cannot be moved, so the place counts too.
state=$({ pwd; cat pyproject.toml constraints.txt scripts/venv.sh wheel.data/scripts/*; } | sha256sum)
crates=$(find Cargo.toml Cargo.lock crates -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum)

# is STAMP CONTENT: whether that is what was installed.
is() { [ -f ".venv/tare-$1.stamp" ] && [ "$(cat ".venv/tare-$1.stamp")" = "$2" ]; }
fresh() {
    for each in $serving; do
        is "$each" "$state" && .venv/bin/python -c '' 2>/dev/null && return
    done
    return 1
}
pip() { .venv/bin/python -m pip "$@"; }
quiet() { pip install --quiet --disable-pip-version-check --no-input --retries 10 "$@"; }
install() {
    quiet "$@" || {
        echo "tare: pip could not install tare into .venv: see above, then run this again" >&2
        exit 3
    }
}
# locked NAME: its lines of constraints.txt, a requirement with the digests of its files.
locked() { awk -v name="$1==" 'index($0, name) == 1 { on = 1 } on { print } on && !/\\$/ { exit }' constraints.txt; }

# What tare depends on, by uv: pip takes several times as long. uv reads neither pip's files nor its variables.
by_uv() (
    wanted=$(mktemp)
    trap 'rm -f "$wanted"' EXIT
    locked uv >"$wanted"
    quiet --only-binary :all: --require-hashes --requirement "$wanted" || exit 1
    settings=$(pip config list)
    for pair in UV_DEFAULT_INDEX=index-url UV_INDEX=extra-index-url UV_FIND_LINKS=find-links SSL_CERT_FILE=cert; do
        value=$(echo "$settings" | sed -n "s/^\(:env:\|global\|install\)\.${pair#*=}='\(.*\)'\$/\2/p" | head -n 1)
        [ -z "$value" ] || export "${pair%%=*}=$value"
    done
    set -- --requirements pyproject.toml maturin
    [ "$kind" = run ] || set -- "$@" --extra dev
    [ "$kind" != docs ] || set -- "$@" --extra docs
    UV_HTTP_TIMEOUT=180 .venv/bin/uv pip install --quiet --no-progress --python .venv/bin/python \
        --constraints constraints.txt "$@"
)
# Where uv fails, pip installs everything, the developers' packages too: it takes digests only of a whole list.
dependencies() {
    by_uv && return 0
    echo "tare: uv could not install (see above), so pip does" >&2
    install --require-hashes --requirement constraints.txt
}

changed=
if ! fresh; then
    changed=all
elif ! is crates "$crates" || [ ! -x .venv/bin/tare-probe ]; then
    changed=crates
fi
[ -n "$changed" ] || exit 0

cargo=$(scripts/rust.sh build)
PATH="$PWD/.venv/bin:$cargo:$PATH"
key=$(scripts/rust_cache.sh restore "$cargo") || key=
if [ "$changed" = all ]; then
    if ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$(scripts/python.sh)
        "$python" -m venv --clear .venv
    fi
    echo "tare: setting up .venv (some minutes the first time on a machine, most of them to build tare-probe)" >&2
    dependencies
    # In the environment itself rather than in one of the build's own, so that constraints.txt holds for maturin too.
    install --no-build-isolation --no-deps --editable .
    echo "$state" >".venv/tare-$kind.stamp"
else
    echo "tare: building tare-probe anew, as its sources have changed" >&2
    install --no-build-isolation --no-deps --editable .
fi
echo "$crates" >.venv/tare-crates.stamp
[ -z "$key" ] || scripts/rust_cache.sh save "$key" || true  # without it the next clone builds
