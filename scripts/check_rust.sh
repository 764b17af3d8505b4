#!/bin/sh
# The Rust part of `make check`.
set -eu
cd "$(dirname "$0")/.."
PATH="$PATH:${HOME:-/root}/.cargo/bin"
cargo=$(scripts/rust.sh check)
PATH="$cargo:$PATH"

cargo fmt --all --check
scripts/cargo_test.sh
# Building cargo-deny takes longer than all other checks together, so it is run where it is installed.
if [ ! -f deny.toml ]; then
    echo "tare: there is no deny.toml, so licences and advisories of crates are not checked" >&2
elif command -v cargo-deny >/dev/null 2>&1; then
    cargo deny --log-level error check
else
    echo "tare: cargo-deny is not installed (cargo install --locked cargo-deny), so licences and advisories are not checked" >&2
fi
