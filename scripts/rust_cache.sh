#!/bin/sh
# Share what cargo built between clones on one machine, so that only the first one waits for it.
#
#   scripts/rust_cache.sh restore CARGO_DIRECTORY   fill a missing target/; print a key if there is something to save
#   scripts/rust_cache.sh save KEY                  keep target/ under the key that `restore` printed
#
# Archives are in ${XDG_CACHE_HOME:-~/.cache}/tare/rust; the newest three are kept. An archive of the same sources is
# used whole, one of other sources for its dependencies only. Cargo checks what it finds, but judges sources by their
# times. The key therefore has a digest of all sources, and what is restored is dated before that digest was taken.
# Whatever fails here only costs a build.
set -eu
cd "$(dirname "$0")/.."

caches=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
cache=$caches/tare/rust
kept=3

# digest FILES AND FOLDERS...: of their names and contents.
digest() { find "$@" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-16; }
sources() { digest Cargo.toml Cargo.lock crates; }

restore() {
    # A target/ that is there is the developer's, and CARGO_TARGET_DIR is already shared.
    [ -n "$caches" ] && [ ! -e target ] && [ -z "${CARGO_TARGET_DIR:-}" ] || return 0
    mkdir -p build
    scratch=$(mktemp -d build/rust-cache.XXXXXX)
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 130' INT TERM
    touch "$scratch/before"
    built_by=$({ "$1/rustc" --version --verbose; cat Cargo.toml Cargo.lock .cargo/config.toml
        sed -n '/^\[tool.maturin\]/,/^\[/p' pyproject.toml; echo "${RUSTFLAGS:-}"; } | sha256sum | cut -c 1-16)
    key=$built_by-$(sources)
    unpack "$cache/$key.tar" && return 0
    # shellcheck disable=SC2012  # names are ours
    newest=$(ls -t "$cache/$built_by"-*.tar 2>/dev/null | head -n 1)
    [ -z "$newest" ] || unpack "$newest" --exclude='*tare*' || true
    echo "$key"
}

# unpack ARCHIVE OPTIONS...: make target/ of it, or nothing at all.
unpack() {
    archive=$1
    shift
    [ -f "$archive" ] || return 1
    mkdir "$scratch/target"
    if tar --extract --no-same-owner --file "$archive" --directory "$scratch/target" "$@" 2>/dev/null &&
        find "$scratch/target" -exec touch -h -r "$scratch/before" {} +; then
        touch -c "$archive" 2>/dev/null || true  # the newest three are those used last
        mv -T "$scratch/target" target
    else
        rm -rf "$scratch/target"
        rm -f "$archive" 2>/dev/null || true  # in a cache that is only read it stays
        return 1
    fi
}

save() {
    key=$1
    # Sources that changed while they were built are not those of the key.
    [ "${key#*-}" = "$(sources)" ] && [ -d target ] && mkdir -p "$cache" 2>/dev/null || return 0
    scratch=$(mktemp "$cache/new.XXXXXX" 2>/dev/null) || return 0
    trap 'rm -f "$scratch"' EXIT
    trap 'exit 130' INT TERM
    tar --create --exclude=incremental --file "$scratch" --directory target . 2>/dev/null || return 0
    mv "$scratch" "$cache/$key.tar"
    # shellcheck disable=SC2012
    ls -t "$cache"/*.tar | tail -n "+$((kept + 1))" | xargs -r rm -f
    find "$cache" -name 'new.*' -mmin +60 -delete  # of one that was killed
}

case "${1:-} $#" in
    'restore 2') restore "$2" ;;
    'save 2') save "$2" ;;
    *) echo "usage: scripts/rust_cache.sh restore CARGO_DIRECTORY | save KEY" >&2; exit 2 ;;
esac
