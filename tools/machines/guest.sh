#!/bin/sh
# A user-mode machine in a network namespace of its own (needs root):
#   guest.sh up DIR NAME           boot a copy of DIR/disk.img with DIR/linux or $KERNEL; returns when ssh answers
#   guest.sh run DIR NAME USER CMD run a command in it
#   guest.sh put DIR NAME FILE...  copy files to /srv
#   guest.sh down DIR NAME         end it, remove the namespace and the copy
set -eu
verb=$1 dir=$(realpath "$2") name=$3
shift 3
ssh="-q -i $dir/key -o ConnectTimeout=5 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
address=10.0.2.15

# shellcheck disable=SC2086  # one word an option
run() { user=$1; shift; ip netns exec "$name" ssh $ssh "$user@$address" "$@"; }

network() {
    ip netns add "$name"
    ip -n "$name" link set lo up
    setsid slirp4netns --mtu=1500 --disable-host-loopback --netns-type=path "/run/netns/$name" sl0 >"$dir/$name.slirp" 2>&1 &
    echo $! >"$dir/$name.slirp.pid"
    until ip -n "$name" link show sl0 >/dev/null 2>&1; do
        kill -0 "$(cat "$dir/$name.slirp.pid")" 2>/dev/null || { cat "$dir/$name.slirp" >&2; exit 1; }
        sleep 0.2
    done
    ip -n "$name" link add br0 type bridge
    # A raw socket on a veth: the SMP kernel faults with a tap.
    ip -n "$name" link add guest type veth peer name port
    for each in sl0 port; do ip -n "$name" link set "$each" master br0; done
    for each in sl0 port guest br0; do ip -n "$name" link set "$each" up; done
    # Without offloads, as the socket gets packets without checksums else; not every device has all.
    for each in port guest br0; do ip netns exec "$name" ethtool -K "$each" tx off rx off tso off gso off gro off >/dev/null 2>&1 || true; done
    ip -n "$name" addr add 10.0.2.50/24 dev br0
}

up() {
    network
    cp --sparse=always "$dir/disk.img" "$dir/$name.img"
    setsid ip netns exec "$name" "${KERNEL:-$dir/linux}" mem="${MEMORY:-5G}" seccomp=on ncpus=2 ubd0="$dir/$name.img" root=/dev/ubda rw \
        vec0:transport=raw,ifname=guest,depth=128,mac=02:00:00:00:00:01 con=null con0=null,null umid="$name" \
        >"$dir/$name.console" 2>&1 </dev/null &
    echo $! >"$dir/$name.pid"
    waited=0
    until run root true 2>/dev/null; do
        kill -0 "$(cat "$dir/$name.pid")" 2>/dev/null || { tail -n 20 "$dir/$name.console" >&2; exit 1; }
        [ $((waited += 1)) -lt 180 ] || { echo "no ssh after three minutes: $dir/$name.console" >&2; exit 1; }
        sleep 1
    done
}

# Whatever of it has ended already is no failure.
down() {
    for file in "$dir/$name.pid" "$dir/$name.slirp.pid"; do
        [ ! -e "$file" ] || kill -TERM "$(cat "$file")" 2>/dev/null || true
    done
    sleep 1
    # What ended meanwhile, too.
    for pid in $(ip netns pids "$name" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null || true; done
    ip netns delete "$name" 2>/dev/null || true
    rm -f "$dir/$name.img" "$dir/$name.pid" "$dir/$name.slirp" "$dir/$name.slirp.pid" "$dir/$name.console"
}

# shellcheck disable=SC2086
put() { ip netns exec "$name" scp $ssh "$@" "root@$address:/srv/"; }

case $verb in
    up) up ;;
    run) run "$@" ;;
    put) put "$@" ;;
    down) down ;;
    *) echo "guest.sh: up, run, put or down" >&2; exit 2 ;;
esac
