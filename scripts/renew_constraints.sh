#!/bin/sh
# Write constraints.txt anew: the newest versions that pyproject.toml allows, for every Python that tare runs on, with
# the digests of all their files. `scripts/renew_constraints.sh keep` keeps the versions and adds what is new.
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$(scripts/python.sh)" -m venv "$scratch/venv"
"$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input uv

lock=$scratch/constraints.txt
[ "${1:-}" != keep ] || cp constraints.txt "$lock"
printf 'maturin\nuv\n' | "$scratch/venv/bin/uv" pip compile --quiet --no-header --no-annotate --universal \
    --python-version 3.11 --all-extras --generate-hashes --output-file "$lock" pyproject.toml - >"$scratch/out"
{
    echo "# What \`make setup\` installs: one tried set of versions, for every Python that tare runs on, with the sha256"
    echo "# digests of their files, which are checked. Renewed by scripts/renew_constraints.sh."
    cat "$lock"
} >"$scratch/renewed"
mv "$scratch/renewed" constraints.txt
