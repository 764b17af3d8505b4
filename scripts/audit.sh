#!/bin/sh
# Look up every pinned package in the databases of known vulnerabilities: constraints.txt by pip-audit, Cargo.lock by
# cargo-deny. Needs PyPI's JSON API and the RustSec database. Arguments go to pip-audit, such as `--vulnerability-service osv`.
# A package that cannot be looked up is a failure, never "no vulnerability".
set -eu
cd "$(dirname "$0")/.."

say() { echo "tare: $*" >&2; }

auditor=build/audit
if [ ! -x "$auditor/bin/pip-audit" ]; then
    .venv/bin/python -m venv --clear "$auditor"
    "$auditor/bin/python" -m pip install --quiet --disable-pip-version-check --retries 10 'pip-audit==2.10.*' || {
        say "pip-audit could not be installed: see above, then run this again"
        exit 3
    }
fi

code=0
timeout 900 "$auditor/bin/pip-audit" --strict --disable-pip --progress-spinner off --requirement constraints.txt "$@" || {
    code=1
    say "pip-audit found vulnerabilities, or could not look up a package: see above"
}

cargo=$(scripts/rust.sh build)
PATH="$cargo:$PATH"
if ! command -v cargo-deny >/dev/null 2>&1; then
    say "cargo-deny is missing (cargo install --locked cargo-deny), so crates were not looked up"
    exit 1
fi
timeout 600 cargo deny --log-level error check || {
    code=1
    say "cargo-deny found fault with a crate, or could not get its database: see above"
}
exit "$code"
