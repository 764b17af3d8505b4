#!/bin/sh
# What must be installed beside Python: packages.sh demo (to run studies) | storage (on every file system too) |
# hosts (on test hosts of tools/hosts.py too) | kube (on the cluster of scripts/kube.sh too) | test (to run every test) |
# slow (the slow ones too: a Slurm).
set -eu
cd "$(dirname "$0")"

purpose=${1:-demo}
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

# mmdebstrap builds the images of studies; on Ubuntu Debian's keys come in a package of their own. pgrep finds the
# engine's proxies. Integration tests make their smallest image of a busybox that needs no library, run the monitors
# of sysstat, start virtual machines, build YCSB with its bindings, make each file system that a SUT's data may lie on,
# ask a Prometheus for what the dashboard shows, and look at pages in Chromium. The NFS server that tare starts is a
# Ganesha; tests speak to it by libnfs, which needs no client in the kernel. tare-load
# is tried on PostgreSQL, MariaDB and Redis, beside sysbench, and over TLS. Podman is tried with and without root, with
# each program that may carry its network; pods are made by CNI's plug-ins, which no PATH has.
cni=/usr/lib/cni
[ ! -x /opt/cni/bin/portmap ] || cni=/opt/cni/bin  # upstream's place, as on a Kubernetes node
set -- mmdebstrap:mmdebstrap pgrep:procps
[ "$purpose" != storage ] || set -- "$@" mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs ganesha.nfsd:nfs-ganesha-vfs
[ "$purpose" != hosts ] || set -- "$@" sshd:openssh-server ssh:openssh-client ip:iproute2 dockerd:docker.io
[ "$purpose" != kube ] || set -- "$@" etcd:etcd-server containerd:containerd runc:runc "$cni/portmap:containernetworking-plugins" \
    iptables:iptables conntrack:conntrack ip:iproute2 curl:curl openssl:openssl
[ "$purpose" != slow ] || set -- "$@" slurmctld:slurmctld slurmd:slurmd sbatch:slurm-client munged:munge
case $purpose in test | slow) set -- "$@" busybox:busybox-static mpstat:sysstat prometheus:prometheus \
    qemu-system-x86_64:qemu-system-x86 mke2fs:e2fsprogs ip:iproute2 podman:podman iptables:iptables nft:nftables \
    slirp4netns:slirp4netns pasta:passt fuse-overlayfs:fuse-overlayfs newuidmap:uidmap \
    runc:runc catatonit:catatonit "$cni/portmap:containernetworking-plugins" \
    mvn:maven javac:default-jdk-headless mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs chromium:chromium \
    ganesha.nfsd:nfs-ganesha-vfs nfs-ls:libnfs-utils \
    sshd:openssh-server ssh:openssh-client strace:strace \
    pg_lsclusters:postgresql mariadbd:mariadb-server sysbench:sysbench \
    redis-server:redis-server openssl:openssl ;;
esac
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || set -- "$@" debian-archive-keyring
# The engine itself. A `docker` client alone is none, and one that answers by DOCKER_HOST is enough.
if ! ../scripts/engine.sh answers; then
    if ! command -v podman >/dev/null 2>&1; then
        set -- "$@" dockerd:docker.io
    fi
    # With AppArmor in the kernel, dockerd refuses to start without its tools.
    [ "$(cat /sys/module/apparmor/parameters/enabled 2>/dev/null)" != Y ] || set -- "$@" apparmor_parser:apparmor
fi
# Empty where it is not installed yet.
had_prometheus=$(command -v prometheus || true)
had_ganesha=$(command -v ganesha.nfsd || true)
# Empty too.
had_sshd=$(command -v sshd || true)
had_rpcbind=$(command -v rpcbind || true)
# Likewise, for the servers that tare-load is tried on.
had_postgresql=$(command -v pg_lsclusters || true)
had_mariadb=$(command -v mariadbd || true)
had_redis=$(command -v redis-server || true)
# And for the parts of a cluster.
had_etcd=$(command -v etcd || true)
had_containerd=$(command -v containerd || true)
# And for the queue that workers are started from.
had_slurmctld=$(command -v slurmctld || true)
had_slurmd=$(command -v slurmd || true)
had_munge=$(command -v munged || true)
./apt_install.sh "needed to $purpose" "$@"

# These packages start services on every address, of which tare makes no use: it starts its own.
unserved() {  # HAD COMMAND UNIT...
    had=$1 command=$2
    shift 2
    if [ -z "$had" ] && command -v "$command" >/dev/null 2>&1 && [ -d /run/systemd/system ]; then
        systemctl disable --quiet --now "$@"
    fi
}
unserved "$had_prometheus" prometheus prometheus
unserved "$had_ganesha" ganesha.nfsd nfs-ganesha nfs-ganesha-lock
unserved "$had_sshd" sshd ssh
unserved "$had_rpcbind" rpcbind rpcbind.service rpcbind.socket
unserved "$had_postgresql" pg_lsclusters postgresql
unserved "$had_mariadb" mariadbd mariadb
unserved "$had_redis" redis-server redis-server
unserved "$had_etcd" etcd etcd
[ "$purpose" != kube ] || unserved "$had_containerd" containerd containerd
unserved "$had_slurmctld" slurmctld slurmctld
unserved "$had_slurmd" slurmd slurmd
unserved "$had_munge" munged munge
