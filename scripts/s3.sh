#!/bin/sh
# An S3 server for the tests of shared stores: s3.sh build. Prints where it is.
# versitygw, from its source as a Go module, kept in ~/.cache/tare/s3 (first time: some minutes).
set -eu
PATH="$PATH:/usr/local/go/bin"

version=1.8.0
cache=${TARE_S3_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tare/s3}
program=$cache/versitygw-$version

[ "${1:-}" = build ] || {
    echo "usage: s3.sh build" >&2
    exit 2
}
if [ ! -x "$program" ]; then
    command -v go >/dev/null || {
        echo "tare: versitygw is built with Go 1.25 or later: install it" >&2
        exit 3
    }
    echo "tare: building versitygw $version" >&2
    mkdir -p "$cache"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    cd "$scratch"
    printf 'module tare.invalid/s3\n\ngo 1.25\n' >go.mod
    export CGO_ENABLED=0 GOFLAGS='-mod=mod -buildvcs=false -trimpath'
    go get "github.com/versity/versitygw@v$version" 2>/dev/null
    nice go build -ldflags '-s -w' -o "$program.part" github.com/versity/versitygw/cmd/versitygw
    mv "$program.part" "$program"
fi
echo "$program"
