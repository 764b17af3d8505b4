#!/bin/sh
# Write constraints.txt anew: the newest versions that pyproject.toml allows, resolved in an empty environment.
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$(scripts/python.sh)" -m venv "$scratch/venv"
PATH="$scratch/venv/bin:$(scripts/rust.sh build):$PATH"
"$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input maturin uv
"$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-build-isolation \
    --editable '.[dev]'
{
    echo "# What \`make setup\` installs: one tried set of versions, for every Python that tare runs on."
    echo "# Renewed by scripts/renew_constraints.sh."
    "$scratch/venv/bin/python" -m pip freeze --exclude-editable
} >"$scratch/constraints.txt"
mv "$scratch/constraints.txt" constraints.txt
