#!/bin/sh
# The Rust part of `make check`; nothing to do before there are crates.
# Without cargo it is left out with a word on a developer's machine, and fails in CI.
set -eu
cd "$(dirname "$0")/.."
PATH="$PATH:${HOME:-/root}/.cargo/bin"

manifest=
for candidate in Cargo.toml crates/Cargo.toml; do
    [ ! -f "$candidate" ] || manifest=$candidate
done
[ -n "$manifest" ] || exit 0

if ! command -v cargo >/dev/null 2>&1; then
    echo "tare: cargo is not installed, so the Rust crates are not checked" >&2
    [ "${CI:-}" != true ]
    exit
fi
cargo fmt --manifest-path "$manifest" --all --check
cargo clippy --manifest-path "$manifest" --workspace --all-targets --locked --quiet -- -D warnings
cargo test --manifest-path "$manifest" --workspace --locked --quiet
# Building cargo-deny takes longer than all other checks together, so it is run where it is installed.
if [ ! -f deny.toml ]; then
    echo "tare: there is no deny.toml, so licences and advisories of crates are not checked" >&2
elif command -v cargo-deny >/dev/null 2>&1; then
    cargo deny --manifest-path "$manifest" --log-level error check
else
    echo "tare: cargo-deny is not installed (cargo install --locked cargo-deny), so licences and advisories are not checked" >&2
fi
