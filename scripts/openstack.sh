#!/bin/sh
# A Keystone for the tests of machines from OpenStack: openstack.sh build. Prints the directory of its programs.
# From PyPI, in an environment of its own that is kept in ~/.cache/tare/openstack (first time: a minute).
set -eu
cd "$(dirname "$0")/.."

version=30.0.0
cache=${TARE_OPENSTACK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tare/openstack}
venv=$cache/keystone-$version

[ "${1:-}" = build ] || {
    echo "usage: openstack.sh build" >&2
    exit 2
}
if [ ! -x "$venv/bin/keystone-manage" ]; then
    echo "tare: installing Keystone $version" >&2
    rm -rf "$venv"
    mkdir -p "$cache"
    "$(scripts/python.sh)" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --retries 10 "keystone==$version" || {
        rm -rf "$venv"
        echo "tare: pip could not install Keystone: see above, then run this again" >&2
        exit 3
    }
fi
echo "$venv/bin"
