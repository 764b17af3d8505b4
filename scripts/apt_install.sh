#!/bin/sh
# Install Debian packages: apt_install.sh WHY [COMMAND:]PACKAGE...; with COMMAND only where that is missing.
# Where that is not possible (no root, no apt) it says in one sentence what to install and exits 3.
set -eu

PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
why=$1
shift

packages=
for wanted in "$@"; do
    case $wanted in
        *:*) command -v "${wanted%%:*}" >/dev/null 2>&1 || packages="$packages ${wanted#*:}" ;;
        *) packages="$packages $wanted" ;;
    esac
done
packages=${packages# }
[ -n "$packages" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "tare: $why: please install what Debian calls: $packages" >&2
    exit 3
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "tare: $why: please have root run: apt-get install $packages" >&2
    exit 3
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

apt() {
    DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l timeout --kill-after=30 1200 apt-get --yes \
        -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Acquire::http::Timeout=60 \
        -o Dpkg::Options::=--force-confold --no-install-recommends "$@" </dev/null >>"$log" 2>&1
}

echo "tare: installing $packages: $why" >&2
# Package lists may be absent or old; they are renewed only when installing without that fails.
# shellcheck disable=SC2086  # one word a package
apt install $packages || { apt update && apt install $packages; } || {
    tail -n 15 "$log" >&2
    echo "tare: apt-get could not install $packages: see above, then run this again" >&2
    exit 3
}
