#!/bin/sh
# Print the directory of a cargo that can build the crates, installing one where root may: rust.sh build | check
# `check` asks for cargo fmt and cargo clippy too.
set -eu
cd "$(dirname "$0")/.."

purpose=${1:-build}
needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

# at_least VERSION: whether it is the needed one or newer.
at_least() { [ "$(printf '%s\n%s\n' "$needed" "$1" | sort -V | head -n 1)" = "$needed" ]; }

# A rustup without a toolchain has a cargo, which fails. Ubuntu keeps its newer ones in /usr/lib/rust-1.NN.
find_cargo() {
    for directory in $(command -v cargo | xargs -r dirname) "${HOME:-/root}/.cargo/bin" /usr/lib/rust-1.*/bin; do
        version=$(PATH="$directory:$PATH" "$directory/rustc" --version 2>/dev/null | cut -d ' ' -f 2) || continue
        [ -n "$version" ] && at_least "$version" && [ -x "$directory/cargo" ] || continue
        if [ "$purpose" = build ] || { has "$directory" fmt && has "$directory" clippy; }; then
            echo "$directory"
            return
        fi
    done
    return 1
}
has() { PATH="$1:$PATH" "$1/cargo" "$2" --version >/dev/null 2>&1; }

# offer PACKAGES...: whether apt has the first one, new enough; PACKAGES is then what to install.
offer() {
    version=$(apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: \([0-9.]*\).*/\1/p')
    [ -n "$version" ] && at_least "$version" || return 1
    packages=$*
}
offers() {
    newest=$(apt-cache pkgnames rustc-1. 2>/dev/null | sort -V | tail -n 1)
    offer rustc cargo rustfmt rust-clippy || offer rustc-web cargo-web rustfmt-web rust-web-clippy ||
        offer "${newest:-none}" "cargo${newest#rustc}" "rustfmt${newest#rustc}" "rust${newest#rustc}-clippy"
}

if ! find_cargo; then
    why="tare-probe is built with Rust $needed or newer"
    # A list of packages may be absent or old.
    offers || { [ "$(id -u)" -eq 0 ] && apt-get update >/dev/null 2>&1 && offers; } || {
        echo "tare: $why, which this system does not offer: please install it as https://rustup.rs tells" >&2
        exit 3
    }
    # shellcheck disable=SC2086  # one word a package
    set -- $packages
    [ "$purpose" = check ] || set -- "$1" "$2"
    scripts/apt_install.sh "$why" "$@"
    find_cargo || {
        echo "tare: $why, and what was installed ($*) is not found in PATH: please report this" >&2
        exit 3
    }
fi
