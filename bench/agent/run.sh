#!/bin/sh
# Calls through the agent on a test host, beside plain SSH and Ansible, which gets an environment of its own.
set -eu
cd "$(dirname "$0")/../.."
ansible=build/ansible
if [ ! -x "$ansible/bin/ansible-playbook" ]; then
    python3 -m venv "$ansible"
    "$ansible/bin/python" -m pip install --quiet --disable-pip-version-check --no-input 'ansible-core>=2.18,<3'
fi
exec .venv/bin/python -m bench.agent --test-host --ansible "$ansible/bin/ansible-playbook" "$@"
