#!/bin/sh
# What must be installed beside Python: packages.sh demo (to run studies) | storage (on every file system too) |
# test (to run every test).
set -eu
cd "$(dirname "$0")"

purpose=${1:-demo}
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

# mmdebstrap builds the images of studies; on Ubuntu Debian's keys come in a package of their own. pgrep finds the
# engine's proxies. Integration tests make their smallest image of a busybox that needs no library, run the monitors
# of sysstat, start virtual machines, build YCSB with its bindings, make each file system that a SUT's data may lie on, ask a Prometheus for what
# the dashboard shows, and look at pages in Chromium.
set -- mmdebstrap:mmdebstrap pgrep:procps
[ "$purpose" != storage ] || set -- "$@" mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs
[ "$purpose" != test ] || set -- "$@" busybox:busybox-static mpstat:sysstat prometheus:prometheus \
    qemu-system-x86_64:qemu-system-x86 mke2fs:e2fsprogs ip:iproute2 \
    mvn:maven javac:default-jdk-headless mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs chromium:chromium
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || set -- "$@" debian-archive-keyring
# The engine itself. A `docker` client alone is none, and one that answers by DOCKER_HOST is enough.
if ! ../scripts/engine.sh answers; then
    if ! command -v podman >/dev/null 2>&1; then
        set -- "$@" dockerd:docker.io
    fi
    # With AppArmor in the kernel, dockerd refuses to start without its tools.
    [ "$(cat /sys/module/apparmor/parameters/enabled 2>/dev/null)" != Y ] || set -- "$@" apparmor_parser:apparmor
fi
had_prometheus=$(command -v prometheus || true)
./apt_install.sh "needed to $purpose" "$@"
# Its package starts a service on every address, of which tests make no use: they start one of their own.
if [ -z "$had_prometheus" ] && command -v prometheus >/dev/null 2>&1 && [ -d /run/systemd/system ]; then
    systemctl disable --quiet --now prometheus
fi
