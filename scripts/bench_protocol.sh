#!/bin/sh
# Benchmarks the protocols for MINUTES (25), adding to what was measured before: bench_protocol.sh [OPTIONS OF bench_protocol.py]
set -eu
cd "$(dirname "$0")/.."
mkdir -p build
exec .venv/bin/python scripts/bench_protocol.py --minutes "${MINUTES:-25}" "$@"
