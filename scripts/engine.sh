#!/bin/sh
# The container engine: engine.sh answers | up | down | run COMMAND...
#   answers  exit 0 when an engine answers (DOCKER_HOST, else the default socket)
#   up       start one when none answers, and leave it running
#   down     stop the one that `up` or `run` started, with all that belongs to it
#   run      as `up`, then COMMAND in the caller's directory; an engine that `run` itself started is stopped after it
# Docker's init script is not used: it mounts cgroup v1 hierarchies that it never unmounts again.
set -eu
caller_dir=$PWD
cd "$(dirname "$0")/.."
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

deadline_s=90
state=/run/tare
pid_file=$state/dockerd.pid   # exists while an engine that was started here runs without systemd
units_file=$state/units       # … or with it: what must be stopped
log=$state/dockerd.log
started=''  # whether this very call started the engine

say() { echo "tare: $*" >&2; }

answers() {
    .venv/bin/python -c 'from tare.sites.engine import connect; connect(timeout_s=10).close()' >/dev/null 2>&1
}

# Whether the process of the pid file still is the dockerd that was started here.
alive() {
    [ -f "$pid_file" ] && [ "$(cat "/proc/$(cat "$pid_file")/comm" 2>/dev/null)" = dockerd ]
}

refuse() {
    say "$1"
    exit 3
}

start() {
    [ -z "${DOCKER_HOST:-}" ] || refuse "no engine answers at DOCKER_HOST=$DOCKER_HOST: start it, or unset DOCKER_HOST"
    if ! command -v dockerd >/dev/null; then
        if command -v podman >/dev/null; then
            refuse "Podman's socket does not answer: systemctl start podman.socket, then export DOCKER_HOST=unix:///run/podman/podman.sock"
        fi
        refuse "no container engine is installed: apt-get install docker.io"
    fi
    [ "$(id -u)" -eq 0 ] || refuse "Docker does not answer: have root start it (systemctl start docker), and be in its group docker"
    mkdir -p "$state"
    started=yes
    if [ -d /run/systemd/system ]; then
        say "starting Docker (systemctl start docker)"
        units="docker.socket docker.service"
        systemctl is-active --quiet containerd.service || units="$units containerd.service"
        # Its state is shown as far as there is one: that it did not start is the failure.
        timeout "$deadline_s" systemctl start docker || { systemctl status --no-pager --lines=20 docker >&2 || true; exit 3; }
        echo "$units" >"$units_file"
    else
        say "starting dockerd (log: $log)"
        [ -d /sys/class/net/docker0 ] || : >"$state/bridge-is-ours"
        # Left by a dockerd that was killed; dockerd takes any process with that number for its own kind.
        [ "$(cat "/proc/$(cat /run/docker.pid 2>/dev/null)/comm" 2>/dev/null)" = dockerd ] || rm -f /run/docker.pid
        setsid dockerd >"$log" 2>&1 </dev/null &
        echo $! >"$pid_file"
    fi
    waited_s=0
    until answers; do
        sleep 1
        waited_s=$((waited_s + 1))
        if [ -f "$pid_file" ] && ! alive || [ "$waited_s" -ge "$deadline_s" ]; then
            [ ! -f "$log" ] || tail -n 20 "$log" >&2
            down
            refuse "Docker did not come to answer: see above"
        fi
    done
}

up() {
    answers || start
}

down() {
    if [ -f "$units_file" ]; then
        say "stopping Docker (systemctl stop docker)"
        # shellcheck disable=SC2046  # one word a unit; what does not stop says so, and the rest is stopped too
        timeout "$deadline_s" systemctl stop $(cat "$units_file") || true
        rm -f "$units_file"
    fi
    [ -f "$pid_file" ] || return 0
    if alive; then
        say "stopping dockerd"
        stop_process "$(cat "$pid_file")"
    fi
    rm -f "$pid_file"
    # dockerd leaves its bridge, its namespaces' directory and, when it was killed, its mounts.
    awk '$2 ~ "^/(var/lib|run|var/run)/docker(/|$)" { print $2 }' /proc/mounts | sort -r | while read -r mount; do
        umount "$mount" || say "could not unmount $mount"
    done
    if [ -f "$state/bridge-is-ours" ]; then
        ip link delete docker0 2>/dev/null || true  # it may have taken it along
        rm -f "$state/bridge-is-ours"
    fi
}

# SIGTERM ends containers, containerd and dockerd in this order; SIGKILL only when that takes too long.
stop_process() {
    kill -TERM "$1" 2>/dev/null || return 0
    waited_s=0
    while alive; do
        [ "$waited_s" -lt 60 ] || kill -KILL "$1" 2>/dev/null || true  # ended meanwhile
        sleep 1
        waited_s=$((waited_s + 1))
    done
}

# The exit code is the command's; Ctrl-C reaches the command too, and the engine is stopped after it.
run() {
    if answers; then
        cd "$caller_dir"
        exec "$@"
    fi
    trap '[ -z "$started" ] || down' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    start
    cd "$caller_dir"
    "$@"
}

action=${1:-}
case $action in
    answers | up | down) "$action" ;;
    run) shift; run "$@" ;;
    *) echo "usage: scripts/engine.sh answers | up | down | run COMMAND..." >&2; exit 2 ;;
esac
