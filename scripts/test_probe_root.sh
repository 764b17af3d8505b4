#!/bin/sh
# The tests of tare-probe that need root and a kernel with BTF; elsewhere they are left out, which is said.
set -eu
cd "$(dirname "$0")/.."
PATH="$PATH:${HOME:-/root}/.cargo/bin"

if [ "$(id -u)" != 0 ] || [ ! -r /sys/kernel/btf/vmlinux ]; then
    echo "tare: not root, or no /sys/kernel/btf/vmlinux: tare-probe's tests on control groups, a full disk and eBPF are left out" >&2
    exit 0
fi
cargo=$(scripts/rust.sh build)
PATH="$cargo:$PATH"
# The whole workspace, as `make check` builds it, so that nothing is compiled twice.
exec cargo test --workspace --locked --quiet -- --ignored
