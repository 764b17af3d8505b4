#!/bin/sh
# One test host of tools/hosts.py, on this machine's kernel: test_host.sh NAME ADDRESS STATE ROOT [engine]
# ADDRESS is where its sshd listens, STATE holds keys, ROOT its own /var/lib, /root and /tmp. It runs in the foreground,
# and all that was ever started in the host ends with it, as it is process 1 there.
set -eu
PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

name=$1 address=$2 state=$3 root=$4 engine=${5:-}

# Control groups below one of its own, so that two hosts' groups of one name are two. On v2 a group with members may
# not give controllers to its children, so its first process stands in a child (cgroups(7), "no internal processes").
enter_cgroups() {
    for top in /sys/fs/cgroup/* /sys/fs/cgroup; do
        [ -f "$top/cgroup.procs" ] || continue
        own=$top/tare-hosts/$name
        mkdir -p "$own"
        for group in "$top/tare-hosts" "$own"; do
            for setting in cpuset.cpus cpuset.mems; do  # v1: empty in a new group, and then nothing may enter
                [ ! -f "$group/$setting" ] || cat "$(dirname "$group")/$setting" >"$group/$setting"
            done
            [ ! -f "$group/cgroup.clone_children" ] || [ ! -f "$group/cpuset.cpus" ] || echo 1 >"$group/cgroup.clone_children"
        done
        for group in "$top" "$top/tare-hosts"; do
            delegate "$group"
        done
        echo $$ >"$own/cgroup.procs"
    done
}

delegate() {
    [ -f "$1/cgroup.controllers" ] || return 0
    tr ' ' '\n' <"$1/cgroup.controllers" | while read -r controller; do
        echo "+$controller" >"$1/cgroup.subtree_control" 2>/dev/null || true  # one that v1 has
    done
}

# own DIRECTORY MODE: one of its own in that place, in which the test host's files and this clone still are where they were.
own() {
    mine=$root/$(echo "${1#/}" | tr / -)
    mkdir -p "$mine"
    chmod "$2" "$mine"
    for seen in "$(dirname "$root")" "$(dirname "$(dirname "$(readlink -f "$0")")")"; do
        case $seen in "$1"/*) mkdir -p "$mine/${seen#"$1/"}" && mount --rbind "$seen" "$mine/${seen#"$1/"}" ;; esac
    done
    mount --rbind "$mine" "$1"
}

mount_own() {
    mount -t tmpfs -o mode=0755 tmpfs /run
    mkdir -p /run/lock /run/sshd
    own /var/lib 0755
    own /root 0700
    own /tmp 1777
    # Its own name is known on it, as on every machine; Cassandra asks for it, bare and in containers.
    { cat /etc/hosts; echo "127.0.1.1 $name"; } >"$root/hosts"
    mount --bind "$root/hosts" /etc/hosts
    mount_sys
}

# /sys shows the network devices of the namespace that it was mounted in, and the groups below their namespace's root.
mount_sys() {
    hierarchies=$(awk '$3 == "cgroup" { print $2, $3, $4 } $3 == "cgroup2" { print $2, $3, "rw" }' /proc/mounts)
    umount --recursive --lazy /sys
    mount -t sysfs sysfs /sys
    mount -t tmpfs -o mode=0755 tmpfs /sys/fs/cgroup 2>/dev/null || return 0
    echo "$hierarchies" | while read -r place kind options; do
        mkdir -p "$place"
        options=$(echo "$options" | tr , '\n' | grep -vx -e rw -e relatime -e nosuid -e nodev -e noexec | tr '\n' , | sed 's/,$//')
        mount -t "$kind" ${options:+-o "$options"} "$kind" "$place"
    done
    if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
        mkdir -p /sys/fs/cgroup/init
        echo $$ >/sys/fs/cgroup/init/cgroup.procs
        delegate /sys/fs/cgroup
    fi
}

serve() {
    hostname "$name"
    "$(command -v sshd)" -f "$state/sshd_config" -E /run/sshd.log -o "ListenAddress=$address" -h "$state/$name.key"
    if [ -n "$engine" ]; then
        setsid dockerd >/run/dockerd.log 2>&1 </dev/null &
    fi
    # Process 1 inherits what lost its parent, and a shell that waits reaps that too.
    while :; do
        sleep 3600 &
        wait $! || true
    done
}

if [ "${TARE_TEST_HOST:-}" != inside ]; then
    enter_cgroups
    export TARE_TEST_HOST=inside
    exec nsenter --net="/run/netns/$name" \
        unshare --mount --pid --uts --ipc --cgroup --fork --kill-child=KILL --mount-proc "$0" "$@"
fi
mount_own
serve
