#!/bin/sh
# The tests of tare-probe that need root and a kernel with BTF; elsewhere they are left out, which is said.
set -eu
cd "$(dirname "$0")/.."
PATH="$PATH:${HOME:-/root}/.cargo/bin"

if [ "$(id -u)" != 0 ] || [ ! -r /sys/kernel/btf/vmlinux ]; then
    echo "tare: not root, or no /sys/kernel/btf/vmlinux: tare-probe's tests on control groups, a full disk and eBPF are left out" >&2
    exit 0
fi
cargo=$(scripts/rust.sh check)
PATH="$cargo:$PATH"
# As `make check` builds the whole workspace, so that nothing is compiled twice.
exec scripts/cargo_test.sh --ignored
