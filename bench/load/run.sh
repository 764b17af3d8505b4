#!/bin/sh
# Builds the static tare-load and measures what it costs: bench/load/run.sh [OPTIONS OF bench.load]
# With musl where rustup has that target, else with glibc.
set -eu
cd "$(dirname "$0")/../.."
PATH="$PATH:${HOME:-/root}/.cargo/bin"

# Debian's packages start services, of which the benchmark makes no use: it starts servers of its own. Empty where
# one is not installed yet.
had_redis=$(command -v redis-server || true)
had_mariadb=$(command -v mariadbd || true)
had_postgresql=$(command -v pg_lsclusters || true)
scripts/apt_install.sh "needed to compare generators" redis-server:redis-server redis-benchmark:redis-tools \
    taskset:util-linux mariadbd:mariadb-server sysbench:sysbench pg_lsclusters:postgresql pgbench:postgresql-contrib
if [ -d /run/systemd/system ]; then
    [ -n "$had_redis" ] || systemctl disable --quiet --now redis-server
    [ -n "$had_mariadb" ] || systemctl disable --quiet --now mariadb
    [ -n "$had_postgresql" ] || systemctl disable --quiet --now postgresql
fi

if rustup target list --installed 2>/dev/null | grep -qx x86_64-unknown-linux-musl; then
    triple=x86_64-unknown-linux-musl
    cargo static --locked --quiet
else
    triple=x86_64-unknown-linux-gnu
    cargo static-gnu --locked --quiet
fi
# Two cases need Cassandra, of which the registries have an image's parts.
if [ "$(id -u)" -eq 0 ] && [ ! -d build/bench-cassandra/opt/cassandra/tools ]; then
    .venv/bin/tare images build cassandra-3.11 >/dev/null || echo "bench.load: without Cassandra" >&2
fi
exec .venv/bin/python -m bench.load --load "${CARGO_TARGET_DIR:-target}/$triple/release/tare-load" "$@"
