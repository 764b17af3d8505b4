#!/bin/sh
# A cluster of one node, this machine: kube.sh build | built | run COMMAND... | up | down
#   build  Kubernetes' programs from their source, as Go modules, kept in ~/.cache/tare/kube (first time: half an hour)
#   built  whether they are there
#   run    start the cluster, run COMMAND with KUBECONFIG, remove the cluster and all that it made
#   up     start it and print the path of its kubeconfig; `down` removes it
# Everything listens on 127.0.0.1 or on the address of a bridge without a wire. Nothing is shared with an engine.
set -eu
cd "$(dirname "$0")/.."
PATH="$PATH:/usr/local/go/bin:/usr/local/sbin:/usr/sbin:/sbin"

version=1.34.4
cache=${TARE_KUBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tare/kube}
bin=$cache/$version
state=/run/tare-kube
node=${TARE_KUBE_NODE:-tare-node}
bridge=tarekube0
node_ip=10.231.248.1
pods=10.231.249.0/24
services=10.231.250.0/24
deadline_s=240
programs='kube-apiserver kubelet kube-scheduler kube-controller-manager kube-proxy'
# What kubelet and kube-proxy set on the machine, put back by `down`.
sysctls='vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys
kernel/keys/root_maxbytes net/ipv4/ip_forward net/ipv4/conf/all/route_localnet net/ipv4/vs/conntrack
net/netfilter/nf_conntrack_max net/netfilter/nf_conntrack_tcp_timeout_established
net/netfilter/nf_conntrack_tcp_timeout_close_wait net/netfilter/nf_conntrack_tcp_be_liberal
net/bridge/bridge-nf-call-iptables'

say() { echo "tare: $*" >&2; }
refuse() {
    say "$1"
    exit 3
}

built() {
    for program in $programs; do [ -x "$bin/$program" ] || return 1; done
}

build() {
    mkdir -p "$bin" "$cache/module"
    missing=''
    for program in $programs; do [ -x "$bin/$program" ] || missing="$missing $program"; done
    [ -n "$missing" ] || return 0
    command -v go >/dev/null || refuse "Kubernetes is built with Go 1.24 or later: install it, or put its programs into $bin"
    say "building Kubernetes $version into $bin:$missing"
    (
        cd "$cache/module"
        go mod download "k8s.io/kubernetes@v$version"
        source=$(go env GOMODCACHE)/k8s.io/kubernetes@v$version
        # Its own go.mod, with published modules in place of the folders that a checkout has.
        sed -E "s|^module .*|module tare.invalid/kube|
            s|(k8s.io/[a-z-]+) => ./staging/src/.*|\1 => \1 v0.${version#*.}|" "$source/go.mod" >go.mod
        cat "$source/go.sum" >go.sum
        go mod edit -require="k8s.io/kubernetes@v$version"
        named=k8s.io/component-base/version
        minor=${version%.*}
        named="-X $named.gitVersion=v$version -X $named.gitMajor=1 -X $named.gitMinor=${minor#*.}"
        export CGO_ENABLED=0 GOFLAGS='-mod=mod -buildvcs=false -trimpath'
        for program in $missing; do
            say "building $program"
            nice go build -ldflags "-s -w $named" -o "$bin/$program.part" "k8s.io/kubernetes/cmd/$program"
            mv "$bin/$program.part" "$bin/$program"
        done
    )
}

# start NAME COMMAND... : in a session of its own, its output in a log.
start() {
    name=$1
    shift
    setsid "$@" >"$state/log/$name" 2>&1 </dev/null &
    echo $! >"$state/pid/$name"
}

alive() { [ -f "$state/pid/$1" ] && [ -d "/proc/$(cat "$state/pid/$1")" ]; }

# until WHAT COMMAND... : succeeds; else the last words of WHAT's log, and all is taken down.
until_ready() {
    what=$1 waited=0
    shift
    until "$@" >/dev/null 2>&1; do
        waited=$((waited + 1))
        if ! alive "$what" || [ "$waited" -gt "$deadline_s" ]; then
            tail -n 15 "$state/log/$what" >&2
            down
            refuse "$what does not come up: see above"
        fi
        sleep 1
    done
}

ask() { curl --silent --fail --cacert "$state/pki/ca.crt" -H "Authorization: Bearer $(cat "$state/pki/admin")" "$server$1"; }

node_is_ready() {
    ask "/api/v1/nodes/$node" | python3 -c 'import json, sys
node = json.load(sys.stdin)
ready = any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"]["conditions"])
sys.exit(not ready or bool(node["spec"].get("taints")))'
}

has_account() { ask /api/v1/namespaces/default/serviceaccounts/default; }

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

certificate() {  # NAME SUBJECT EXTENSIONS
    openssl req -new -newkey rsa:2048 -nodes -keyout "$state/pki/$1.key" -out "$state/pki/$1.csr" -subj "$2" 2>/dev/null
    printf '%s\n' "$3" >"$state/pki/$1.ext"
    openssl x509 -req -in "$state/pki/$1.csr" -CA "$state/pki/ca.crt" -CAkey "$state/pki/ca.key" -CAcreateserial \
        -days 30 -extfile "$state/pki/$1.ext" -out "$state/pki/$1.crt" 2>/dev/null
}

credentials() {
    mkdir -m 700 "$state/pki"
    openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=tare-kube -keyout "$state/pki/ca.key" \
        -out "$state/pki/ca.crt" 2>/dev/null
    certificate server /CN=kube-apiserver 'subjectAltName=IP:127.0.0.1,DNS:localhost'
    certificate to-kubelet /O=system:masters/CN=kube-apiserver-kubelet-client 'extendedKeyUsage=clientAuth'
    certificate kubelet "/O=system:nodes/CN=system:node:$node" "subjectAltName=IP:$node_ip,DNS:$node"
    openssl genrsa -out "$state/pki/accounts.key" 2048 2>/dev/null
    : >"$state/pki/tokens.csv"
    for who in "admin admin system:masters" "kubelet system:node:$node system:nodes" \
        "kube-scheduler system:kube-scheduler" "kube-controller-manager system:kube-controller-manager" \
        "kube-proxy system:kube-proxy" "stranger stranger"; do
        # shellcheck disable=SC2086  # words on purpose
        set -- $who
        token=$(openssl rand -hex 16)
        echo "$token" >"$state/pki/$1"
        echo "$token,$2,$2${3:+,\"$3\"}" >>"$state/pki/tokens.csv"
        cat >"$state/$1.kubeconfig" <<END
apiVersion: v1
kind: Config
clusters: [{name: tare, cluster: {server: "$server", certificate-authority: "$state/pki/ca.crt"}}]
users: [{name: $1, user: {token: "$token"}}]
contexts: [{name: tare, context: {cluster: tare, user: $1}}]
current-context: tare
END
        chmod 600 "$state/$1.kubeconfig"
    done
}

network() {
    ip link add "$bridge" type bridge
    ip address add "$node_ip/24" dev "$bridge"
    ip link set "$bridge" up
    cat >"$state/cni/10-tare.conflist" <<END
{"cniVersion": "0.4.0", "name": "tare-kube", "plugins": [
  {"type": "bridge", "bridge": "tarekube1", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$pods"}]], "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": "$state/addresses"}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
}

# Pods reach each other through the bridge of CNI, whose packets the kernel shows to the chain FORWARD: Docker leaves it with
# the policy DROP, and only so can an answer from behind a Service be given back the address of the Service.
let_pods_through() {
    between=/proc/sys/net/bridge/bridge-nf-call-iptables
    [ ! -f "$between" ] || echo 1 >"$between"
    iptables -w 30 -N KUBE-TARE-PODS
    iptables -w 30 -A KUBE-TARE-PODS -s "$pods" -j ACCEPT
    iptables -w 30 -A KUBE-TARE-PODS -d "$pods" -j ACCEPT
    iptables -w 30 -I FORWARD -j KUBE-TARE-PODS
}

containerd_config() {
    plugins=/usr/lib/cni
    [ ! -x /opt/cni/bin/portmap ] || plugins=/opt/cni/bin
    restricted=false
    .venv/bin/python -c 'import sys; from tare.deployments.rlimits import ceilings; from tare.sites.local import LocalHost
sys.exit(not ceilings(LocalHost()))' && restricted=true
    cat >"$state/containerd.toml" <<END
version = 2
root = "$disk/containerd"
state = "$state/containerd"
oom_score = 0
[grpc]
  address = "$state/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "tare.invalid/pause:1"
  restrict_oom_score_adj = $restricted
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$plugins"
    conf_dir = "$state/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
[plugins."io.containerd.internal.v1.opt"]
  path = "$disk/opt"
END
}

kubelet_config() {
    cat >"$state/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $node_ip
port: 10250
healthzPort: 0
containerRuntimeEndpoint: unix://$state/containerd.sock
podLogsDir: $disk/logs
volumePluginDir: $disk/volume-plugins
cgroupDriver: cgroupfs
cgroupRoot: /tare-kube
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
enforceNodeAllocatable: [pods]
cpuManagerPolicy: ${TARE_KUBE_CPU_MANAGER:-none}
reservedSystemCPUs: "${TARE_KUBE_RESERVED_CPUS:-}"
localStorageCapacityIsolation: false
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
tlsCertFile: $state/pki/kubelet.crt
tlsPrivateKeyFile: $state/pki/kubelet.key
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $state/pki/ca.crt}}
authorization: {mode: Webhook}
shutdownGracePeriod: 0s
nodeStatusUpdateFrequency: 5s
END
}

controllers() { awk '$3 == "cgroup" { print $2 } $3 == "cgroup2" { print $2 }' /proc/mounts; }

none_there() {
    [ ! -e "$state" ] || refuse "a cluster is there already, or its remains: scripts/kube.sh down"
    ! iptables-save -t nat 2>/dev/null | grep -q '^:KUBE-' || refuse "this machine is a node already: it has kube-proxy's rules"
}

up() {
    [ "$(id -u)" -eq 0 ] || refuse "a node takes root"
    none_there
    for program in etcd containerd runc ctr iptables conntrack curl openssl; do
        command -v "$program" >/dev/null || refuse "$program is missing: scripts/packages.sh kube"
    done
    build
    mkdir -p "$state/log" "$state/pid" "$state/cni"
    disk=$(mktemp -d "$cache/cluster.XXXXXX")
    echo "$disk" >"$state/disk"
    for key in $sysctls; do
        [ ! -f "/proc/sys/$key" ] || echo "$key $(tr '\t' ' ' <"/proc/sys/$key")" >>"$state/sysctls"
    done
    ! iptables-save -t nat 2>/dev/null | grep -q '^:CNI-' || : >"$state/others-have-ports"
    for place in $(controllers); do mkdir -p "$place/tare-kube"; done
    for file in cpuset.cpus cpuset.mems; do
        place=/sys/fs/cgroup/cpuset
        [ ! -f "$place/$file" ] || cat "$place/$file" >"$place/tare-kube/$file"
    done
    etcd_port=$(free_port) peer_port=$(free_port) api_port=$(free_port)
    server=https://127.0.0.1:$api_port
    credentials
    network
    let_pods_through
    containerd_config
    kubelet_config
    start etcd etcd --name tare --data-dir "$disk/etcd" --unsafe-no-fsync --logger zap \
        --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
        --listen-peer-urls "http://127.0.0.1:$peer_port" --initial-advertise-peer-urls "http://127.0.0.1:$peer_port" \
        --initial-cluster "tare=http://127.0.0.1:$peer_port"
    start containerd containerd --config "$state/containerd.toml"
    until_ready etcd curl --silent --fail "http://127.0.0.1:$etcd_port/health"
    start kube-apiserver "$bin/kube-apiserver" --bind-address 127.0.0.1 --secure-port "$api_port" \
        --advertise-address "$node_ip" --etcd-servers "http://127.0.0.1:$etcd_port" \
        --tls-cert-file "$state/pki/server.crt" --tls-private-key-file "$state/pki/server.key" \
        --cert-dir "$state/pki" --token-auth-file "$state/pki/tokens.csv" --authorization-mode Node,RBAC \
        --kubelet-client-certificate "$state/pki/to-kubelet.crt" --kubelet-client-key "$state/pki/to-kubelet.key" \
        --kubelet-certificate-authority "$state/pki/ca.crt" --kubelet-preferred-address-types InternalIP \
        --service-account-issuer https://tare.invalid --service-account-key-file "$state/pki/accounts.key" \
        --service-account-signing-key-file "$state/pki/accounts.key" --service-cluster-ip-range "$services" \
        --enable-admission-plugins NodeRestriction --profiling=false
    until_ready kube-apiserver ask /readyz
    start kube-controller-manager "$bin/kube-controller-manager" --bind-address 127.0.0.1 --secure-port "$(free_port)" \
        --kubeconfig "$state/kube-controller-manager.kubeconfig" --root-ca-file "$state/pki/ca.crt" \
        --service-account-private-key-file "$state/pki/accounts.key" --leader-elect=false --cert-dir "$state/pki" \
        --use-service-account-credentials \
        --node-monitor-grace-period 20s --profiling=false
    start kube-scheduler "$bin/kube-scheduler" --bind-address 127.0.0.1 --secure-port "$(free_port)" \
        --kubeconfig "$state/kube-scheduler.kubeconfig" --leader-elect=false --cert-dir "$state/pki" --profiling=false
    until_ready containerd ctr --address "$state/containerd.sock" version
    .venv/bin/python -m tools.pause_image | ctr --address "$state/containerd.sock" -n k8s.io images import - >/dev/null
    start kubelet "$bin/kubelet" --config "$state/kubelet.yaml" --kubeconfig "$state/kubelet.kubeconfig" \
        --hostname-override "$node" --node-ip "$node_ip" --root-dir "$disk/kubelet" --cert-dir "$state/pki" \
        --runtime-cgroups / --kubelet-cgroups ""
    start kube-proxy "$bin/kube-proxy" --kubeconfig "$state/kube-proxy.kubeconfig" --hostname-override "$node" \
        --proxy-mode "${TARE_KUBE_PROXY:-iptables}" --cluster-cidr "$pods" --healthz-bind-address "127.0.0.1:$(free_port)" \
        --metrics-bind-address "127.0.0.1:$(free_port)" --conntrack-max-per-core 0 --iptables-localhost-nodeports=false \
        --nodeport-addresses "$node_ip/32" --oom-score-adj 0
    until_ready kubelet node_is_ready
    until_ready kube-controller-manager has_account
    echo "$state/admin.kubeconfig"
}

# stop NAME: by its own id, which the pid file has; SIGKILL where SIGTERM takes too long.
stop() {
    alive "$1" || return 0
    pid=$(cat "$state/pid/$1")
    kill -TERM "$pid" 2>/dev/null || true  # ended meanwhile
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ -d "/proc/$pid" ] || return 0
        sleep 0.5
    done
    kill -KILL "$pid" 2>/dev/null || true  # ended meanwhile
}

remove_tasks() {
    sock=$state/containerd.sock
    ctr --address "$sock" -n k8s.io tasks ls -q 2>/dev/null | while read -r task; do
        ctr --address "$sock" -n k8s.io tasks kill -s KILL "$task" 2>/dev/null || true  # ended meanwhile
        ctr --address "$sock" -n k8s.io tasks delete -f "$task" >/dev/null 2>&1 || true  # kubelet did it
    done
    ctr --address "$sock" -n k8s.io containers ls -q 2>/dev/null | while read -r each; do
        ctr --address "$sock" -n k8s.io containers delete "$each" >/dev/null 2>&1 || true  # kubelet did it
    done
}

down() {
    [ -e "$state" ] || return 0
    disk=$(cat "$state/disk" 2>/dev/null || echo "")
    for name in kube-scheduler kube-controller-manager kubelet; do stop "$name"; done
    [ ! -S "$state/containerd.sock" ] || remove_tasks
    stop kube-proxy
    [ ! -x "$bin/kube-proxy" ] || "$bin/kube-proxy" --cleanup >/dev/null 2>&1 || true  # it tries IPVS too, which few kernels have
    for name in kube-apiserver etcd containerd; do stop "$name"; done
    awk -v state="$state" -v disk="${disk:-/nowhere}" 'index($2, state "/") == 1 || index($2, disk "/") == 1 { print $2 }' \
        /proc/mounts | sort -r | while read -r mount; do umount -l "$mount" || say "could not unmount $mount"; done
    for link in tarekube1 "$bridge"; do
        ip link delete "$link" 2>/dev/null || true  # without a pod there was no bridge of pods
    done
    drop_chains
    controllers | while read -r place; do
        find "$place/tare-kube" -depth -type d -exec rmdir {} + 2>/dev/null || true  # not made in every hierarchy
    done
    while read -r key value; do
        [ "$(tr '\t' ' ' <"/proc/sys/$key")" = "$value" ] || echo "$value" >"/proc/sys/$key" || true  # some may only grow
    done <"$state/sysctls"
    rm -rf --one-file-system "$state" "${disk:-$state}"
}

# kubelet's own chains, which kube-proxy's cleanup leaves, and portmap's where nobody else had any.
drop_chains() {
    ours='KUBE|CNI'
    [ ! -f "$state/others-have-ports" ] || ours=KUBE
    for command in iptables ip6tables; do
        for table in nat filter mangle; do
            "$command-save" -t "$table" 2>/dev/null | awk -v table="$table" -v ours="$ours" '
                BEGIN { print "*" table }
                $0 ~ "^:(" ours ")-" { chains[substr($1, 2)]; print $1 " - [0:0]" }
                $0 ~ "^-A .*-j (" ours ")-" && $0 !~ "^-A (" ours ")-" { sub(/^-A/, "-D"); print }
                END { for (name in chains) print "-X " name; print "COMMIT" }' |
                "$command-restore" --noflush -w 30 2>/dev/null || true  # a table that the kernel has not
        done
    done
}

run() {
    none_there
    trap down EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    KUBECONFIG=$(up)
    export KUBECONFIG
    "$@"
}

action=${1:-}
case $action in
    build | built | up | down) "$action" ;;
    run) shift; run "$@" ;;
    *) echo "usage: scripts/kube.sh build | built | run COMMAND... | up | down" >&2; exit 2 ;;
esac
