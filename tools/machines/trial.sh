#!/bin/sh
# One trial inside a machine: trial.sh install | images | facts | doctor | init | study FILE | setting NAME | resume FILE | clean.
# Its last line says what was seen.
set -eu
plain=$(id -u plain)
export PATH="/opt/tare/bin:$PATH" TARE_HOME="$HOME/tare-home" TARE_PODMAN_ROOTLESS="unix:///run/user/$plain/podman/podman.sock"
cd "$HOME"

# good STORE: JSON object of each arm: "works", or the reason of its last run.
good() {
    python3 - "$1" <<'PYTHON'
import collections, json, sqlite3, sys
store = sqlite3.connect(f"{sys.argv[1]}/store.sqlite")
arms = collections.defaultdict(list)
for arm, ok, reason in store.execute("SELECT arm, ok, reason FROM runs ORDER BY run_index, attempt"):
    arms[arm].append("works" if ok else reason)
print(json.dumps({arm: ends[-1] for arm, ends in arms.items()}))
PYTHON
}

# study FILE: run it, report it, and say what became of each arm.
study() {
    rm -rf store
    tare run "/srv/$1" --store store --quiet >run.txt 2>&1 || true  # the store tells of each arm
    ! grep -q Traceback run.txt || { grep -A1 Traceback run.txt; exit 1; }
    [ -e store ] || { sed -n 's/^  - //p' run.txt | grep -m 1 . || tail -n 1 run.txt; exit 1; }  # the first reason of several
    tare report store >report.txt
    good store
}

# restart: Docker with the settings that it has now; it counts starts, and these are meant.
restart() {
    systemctl reset-failed docker.service docker.socket
    systemctl restart docker
}

case $1 in
    install)
        python3 -m venv /opt/tare
        /opt/tare/bin/pip install --quiet /srv/*.whl
        mkdir -p "$TARE_HOME"
        chmod o+x "$HOME" "$TARE_HOME"
        tar --numeric-owner -C "$TARE_HOME" -xf /srv/images.tar
        stat -c %i "$TARE_HOME" >"$TARE_HOME/.tare"
        su plain -c "XDG_RUNTIME_DIR=/run/user/$plain systemctl --user start podman.socket"
        tare --version
        ;;
    images)  # users take them from their engine: those that root's tare imported
        for image in redis-7 tare-load; do
            tare images build "$image" >/dev/null
            docker tag "$(docker images --quiet "tare/*$image*" | head -n 1)" "tried/$image"
            docker save "tried/$image" | su plain -c "XDG_RUNTIME_DIR=/run/user/$plain podman load --quiet" >/dev/null
        done
        ;;
    facts)
        version() { "$@" 2>/dev/null | grep -o '[0-9][0-9.]*[0-9]' | head -n 1; }
        printf '{"kernel": "%s", "systemd": "%s", "python": "%s", "docker": "%s", "podman": "%s", "containerd": "%s", "crun": "%s", "driver": "%s"}\n' \
            "$(uname -r)" "$(version systemctl --version)" "$(version python3 --version)" "$(version docker version --format '{{.Server.Version}}')" \
            "$(version podman --version)" "$(version containerd --version)" "$(version crun --version)" \
            "$(docker info --format 'v{{.CgroupVersion}}, {{.CgroupDriver}}' 2>/dev/null)"
        ;;
    doctor)
        tare doctor >doctor.txt 2>&1 && code=0 || code=$?
        [ "$code" = 0 ] || [ "$code" = 3 ]
        ! grep -q Traceback doctor.txt
        tail -n 2 doctor.txt | tr '\n' ' '
        ;;
    init)
        rm -rf my-study
        tare init my-study >/dev/null
        tare plan my-study >plan.txt 2>&1 || [ $? = 3 ]  # its bare arm needs root, which the plan says
        ;;
    study) study "$2" ;;
    setting)
        case $2 in
            image-store) settings='{"features": {"containerd-snapshotter": true}}' ;;
            userns-remap) settings='{"userns-remap": "default"}' ;;
            live-restore) settings='{"live-restore": true}' ;;
            data-root) settings='{"data-root": "/srv/docker"}' ;;
            log-driver) settings='{"log-driver": "local"}' ;;
            ulimits) settings='{"default-ulimits": {"nofile": {"Name": "nofile", "Soft": 1024, "Hard": 2048}}}' ;;
            no-proxy) settings='{"userland-proxy": false}' ;;
            cgroupfs) settings='{"exec-opts": ["native.cgroupdriver=cgroupfs"]}' ;;
            *) echo "no setting $2"; exit 1 ;;
        esac
        trap 'rm /etc/docker/daemon.json; restart' EXIT
        mkdir -p /etc/docker
        echo "$settings" >/etc/docker/daemon.json
        restart || { journalctl --unit docker --lines 1 --output cat; exit 1; }
        study setting.yaml
        ;;
    resume)
        rm -rf store
        tare run "/srv/$2" --store store --quiet >run.txt 2>&1 &
        # Killed in the middle: the first run is done and the second has begun.
        until [ -n "$(find store/raw -mindepth 1 2>/dev/null | head -n 1)" ] || ! kill -0 $! 2>/dev/null; do sleep 1; done
        sleep 10
        kill -KILL $!
        tare run "/srv/$2" --store store --quiet >run.txt 2>&1 || { tail -n 1 run.txt; exit 1; }
        good store
        ;;
    clean)
        tare clean --yes >/dev/null
        # A user may not stop the empty slices of systemd.
        left=$(systemctl list-units --no-legend 'tare*' | grep -v "$([ "$(id -u)" = 0 ] && echo none || echo slice)" || true)
        left=$left$(docker ps --all --quiet 2>/dev/null)$(pgrep -a 'tare|redis-server' || true)$(grep /tare- /proc/self/mounts || true)
        [ -z "$left" ] || { echo "left: $left"; exit 1; }
        echo "nothing is left"
        ;;
    *) echo "no trial $1"; exit 1 ;;
esac
