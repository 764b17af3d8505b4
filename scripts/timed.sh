#!/bin/sh
# Run a command and say on stderr how long it took: timed.sh LABEL COMMAND...
set -u
label=$1
shift
began=$(date +%s)
"$@"
code=$?
echo "tare: $label: $(($(date +%s) - began)) s" >&2
exit "$code"
