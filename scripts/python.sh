#!/bin/sh
# Print a Python of at least 3.11 that can make virtual environments, installing one where root may.
set -eu
cd "$(dirname "$0")"

find_python() {
    for candidate in "${PYTHON:-python3}" python3 python3.11 python3.12 python3.13 python3.14; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    return 1
}

# Ubuntu 22.04's python3 is 3.10, with 3.11 beside it.
python=$(find_python) || {
    ./apt_install.sh "Python 3.11 or newer is needed" python3.11:python3.11
    python=$(find_python)
}
# Debian and Ubuntu ship the module `venv` without the `ensurepip` that it needs.
if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    ./apt_install.sh "$python cannot make virtual environments yet" "python$version-venv"
fi
echo "$python"
