#!/bin/sh
# Known causes and the cost of sampling: bench/explain/run.sh [OPTIONS OF bench.explain]
set -eu
cd "$(dirname "$0")/../.."

# Debian's package starts a service, of which the benchmark makes no use: it starts servers of its own.
had_redis=$(command -v redis-server || true)
scripts/apt_install.sh "needed for known causes" redis-server:redis-server redis-benchmark:redis-tools \
    iptables:iptables ip:iproute2 docker-proxy:docker.io
if [ -z "$had_redis" ] && [ -d /run/systemd/system ]; then
    systemctl disable --quiet --now redis-server
fi
exec .venv/bin/python -m bench.explain "$@"
