#!/bin/sh
# Build wheel, source archive and tare-load alone of a commit so that everybody gets the same bytes: release.sh [DIR (dist) | twice]
#   DIR    write them there, with SHA256SUMS
#   twice  build in two clones, in two places, with another umask, time zone, locale and home, and compare
# What a build could take from the machine is fixed: times are the commit's, paths are replaced, and cargo takes Cargo.lock alone.
# The compiler is part of the result: SHA256SUMS names it.
set -eu
cd "$(dirname "$0")/.."

say() { echo "tare: $*" >&2; }

# epoch: the seconds of the commit that is built.
epoch() { git log -1 --format=%ct; }

# flags: for rustc, separated as CARGO_ENCODED_RUSTFLAGS wants it.
flags() {
    crates=${CARGO_HOME:-$HOME/.cargo}
    printf '%s\037%s\037%s' "--remap-path-prefix=$PWD=/tare" "--remap-path-prefix=$crates=/cargo" \
        "--remap-path-prefix=$(rustc --print sysroot)=/rust"
}

# alone MACHINE OUT: tare-load without everything else, static by musl, if rustup has that target and a C compiler makes it.
alone() {
    triple=$1-unknown-linux-musl
    [ -d "$(rustc --print sysroot)/lib/rustlib/$triple" ] || {
        say "without tare-load for $1: rustup target add $triple"
        return 0
    }
    [ "$1" = x86_64 ] || command -v "$1-linux-gnu-gcc" >/dev/null || {
        say "without tare-load for $1: install gcc-$1-linux-gnu, as ring has parts in C"
        return 0
    }
    cargo build --quiet --release --locked --package tare-bin --bin tare-load --target "$triple" >&2
    program=$2/tare-load-$1-linux
    cp "${CARGO_TARGET_DIR:-target}/$triple/release/tare-load" "$program"
    ! readelf --program-headers "$program" | grep -q INTERP || { say "$program is not static"; exit 1; }
    [ "$(stat -c %s "$program")" -le 6000000 ] || { say "$program has more than 6 MB"; exit 1; }
}

build() {
    out=$1
    [ -z "$(git status --porcelain)" ] || {
        say "files differ from the commit: commit or remove them, as a release is built from a commit (git status)"
        exit 2
    }
    case ${CARGO_HOME:-$HOME/.cargo} in
        *' '*) say "the C compiler takes no path with a space: set CARGO_HOME to one without"; exit 2 ;;
    esac
    cargo=$(scripts/rust.sh build)
    PATH="$cargo:$PATH"
    mkdir -p "$out"
    out=$(cd "$out" && pwd)
    python=${RELEASE_PYTHON:-$PWD/.venv/bin/python}
    maturin=${python%/*}/maturin
    (
        unset RUSTFLAGS CARGO_BUILD_RUSTFLAGS MAKEFLAGS
        umask 022
        SOURCE_DATE_EPOCH=$(epoch)
        CARGO_ENCODED_RUSTFLAGS=$(flags)
        CFLAGS="-ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=/cargo" # all C is that of crates
        export SOURCE_DATE_EPOCH CARGO_ENCODED_RUSTFLAGS CFLAGS CARGO_INCREMENTAL=0 TZ=UTC LC_ALL=C
        "$maturin" sdist --out "$out" >&2
        "$maturin" build --release --locked --out "$out" >&2 # of this checkout, not of the archive in a directory of any name
        alone x86_64 "$out"
        alone aarch64 "$out"
        for wheel in "$out"/*.whl; do "$python" -m tools.relocate_sbom "$wheel" "$PWD" >/dev/null; done
    )
    {
        echo "# $(git rev-parse HEAD), $(rustc --version), $("$maturin" --version)"
        (cd "$out" && find . -maxdepth 1 -type f \( -name '*.whl' -o -name '*.tar.gz' -o -name 'tare-load-*' \) -printf '%P\n' |
            sort | xargs sha256sum --)
    } >"$out/SHA256SUMS"
    cat "$out/SHA256SUMS"
}

# differing FIRST SECOND: the members of two archives that are not the same.
differing() {
    .venv/bin/python - "$1" "$2" <<'PYTHON'
import sys, tarfile, zipfile
def members(path):
    if path.endswith(".whl"):
        with zipfile.ZipFile(path) as wheel:
            return {each.filename: (each.date_time, each.external_attr, wheel.read(each)) for each in wheel.infolist()}
    with tarfile.open(path) as archive:
        return {each.name: (each.mtime, each.mode, archive.extractfile(each).read() if each.isfile() else b"") for each in archive}
first, second = map(members, sys.argv[1:])
print(*sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name)), sep="\n")
PYTHON
}

twice() {
    place=$(mktemp -d)
    trap 'rm -rf --one-file-system "$place"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    for clone in first "second clone"; do
        git clone --quiet . "$place/$clone"
    done
    RELEASE_PYTHON=$PWD/.venv/bin/python
    export RELEASE_PYTHON
    say "building in a first clone"
    (cd "$place/first" && CARGO_TARGET_DIR=$place/target scripts/release.sh "$place/one") >/dev/null
    say "building in a second one, elsewhere"
    (cd "$place/second clone" && umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 \
        CARGO_TARGET_DIR="$place/another target" scripts/release.sh "$place/two") >/dev/null
    cat "$place/one/SHA256SUMS"
    cmp -s "$place/one/SHA256SUMS" "$place/two/SHA256SUMS" && { say "both builds gave the same bytes"; return; }
    cat "$place/two/SHA256SUMS"
    for first in "$place"/one/*.whl "$place"/one/*.tar.gz; do
        differing "$first" "$place/two/${first##*/}"
    done
    say "the two builds differ, in what is listed above"
    exit 1
}

case ${1:-dist} in
    twice) twice ;;
    *) build "${1:-dist}" ;;
esac
