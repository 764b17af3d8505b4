#!/bin/sh
# Lint, build and test all crates in one build: cargo_test.sh [ARGUMENTS OF THE TESTS]. The caller has cargo in PATH.
#
# `cargo clippy` sets these two variables for `cargo check`, which reads every dependency and crate once more without
# making anything. clippy-driver also compiles, as rustc does, and the build of the tests has each library, program and
# test. A warning ends the build. Without clippy-driver cargo fails, so nothing is left unchecked.
set -eu
cd "$(dirname "$0")/.."
export RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
exec cargo test --workspace --locked --quiet -- "$@"
