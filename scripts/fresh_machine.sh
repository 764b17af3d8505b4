#!/bin/sh
# Try the README as a newcomer would: a minimal Debian with python3, git, make and CA certificates, no venv, no
# engine, no init, in mount, process, network and UTS namespaces of its own; the last commit is cloned into it.
#
#   scripts/fresh_machine.sh [--suite SUITE] [--hand-in PATH]... [--env NAME]... [COMMAND...]
#
# COMMAND is a shell command line for the clone's root; default: make demo && make test.
# --hand-in copies a file of this machine to the same place there (a CA bundle, pip.conf), --env passes a variable
# (HTTPS_PROXY, PIP_INDEX_URL). Needs root, mmdebstrap and slirp4netns, which carries its network without touching
# this machine's firewall or bridges. Nothing remains but the log on the terminal.
set -eu

inside() {
    root=$1
    # Wait for slirp4netns to have set up the network.
    until ip link show tap0 >/dev/null 2>&1; do sleep 0.1; done
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs sysfs "$root/sys"
    mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=0755 tmpfs "$root/run"
    hostname fresh
    cd "$root"
    mkdir -p .outside
    pivot_root . .outside
    umount -l /.outside
    rmdir /.outside
    cd /root/tare
    exec sh -c "$FRESH_COMMAND"
}

outside() {
    suite=bookworm
    files=
    variables=
    while [ $# -gt 0 ]; do
        case $1 in
            --suite) suite=$2; shift 2 ;;
            --hand-in) files="$files $2"; shift 2 ;;
            --env) variables="$variables $2"; shift 2 ;;
            *) break ;;
        esac
    done
    here=$(cd "$(dirname "$0")/.." && pwd)
    root=$(mktemp -d "${TMPDIR:-/var/tmp}/tare-fresh.XXXXXX")
    machine=''
    network=''
    trap 'clean_up' EXIT
    trap 'exit 130' INT TERM

    mmdebstrap --quiet --variant=minbase --include=python3,git,make,ca-certificates,iproute2 "$suite" "$root"
    for file in $files; do
        mkdir -p "$root/$(dirname "$file")"
        cp -L "$file" "$root/$file"
    done
    echo "nameserver 10.0.2.3" >"$root/etc/resolv.conf"
    echo "127.0.0.1 localhost fresh" >"$root/etc/hosts"
    git clone --quiet "$here" "$root/root/tare"

    set -- "FRESH_COMMAND=${*:-make demo && make test}"
    for name in $variables; do
        if value=$(printenv "$name"); then
            set -- "$name=$value" "$@"
        fi
    done
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "TERM=${TERM:-dumb}" "$@" \
        unshare --mount --propagation private --pid --fork --kill-child --net --uts \
        "$here/scripts/fresh_machine.sh" --inside "$root" </dev/null &
    machine=$!
    until first=$(pgrep -P "$machine"); do sleep 0.1; done
    slirp4netns --configure --mtu=65520 --disable-host-loopback "$first" tap0 >/dev/null 2>&1 &
    network=$!
    wait "$machine"
}

clean_up() {
    for process in $machine $network; do
        kill "$process" 2>/dev/null || true  # ended meanwhile
    done
    wait
    rm -rf --one-file-system "$root"
}

if [ "${1:-}" = --inside ]; then
    shift
    inside "$@"
else
    outside "$@"
fi
