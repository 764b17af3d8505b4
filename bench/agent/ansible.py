"""The same ten commands by Ansible, which keeps its SSH connection and sends its modules over it."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

from tare.sites.file import SshSpec

_LIMIT_S = 600.0


def playbook(commands: int) -> str:
    """A play of that many tasks, each of which runs `true`."""
    tasks = '    - ansible.builtin.command: "true"\n' * commands
    return f"- hosts: all\n  gather_facts: false\n  tasks:\n{tasks}"


def inventory(spec: SshSpec) -> str:
    """The one host, reached as tare reaches it."""
    config = "" if spec.ssh_config is None else f" ansible_ssh_common_args='-F {spec.ssh_config}'"
    return f"{spec.ssh}{config} ansible_python_interpreter=/usr/bin/python3\n"


def seconds_of(program: Path, spec: SshSpec, commands: int) -> float:
    """Of one `ansible-playbook` from its start to its end, with pipelining, as its users are told to have it."""
    with tempfile.TemporaryDirectory(prefix="tare-bench-ansible-") as place:
        play, hosts = Path(place, "play.yaml"), Path(place, "hosts")
        play.write_text(playbook(commands))
        hosts.write_text(inventory(spec))
        env = {**os.environ, "ANSIBLE_PIPELINING": "True", "ANSIBLE_HOME": place, "ANSIBLE_NOCOLOR": "1"}
        began = time.perf_counter()
        subprocess.run(
            [str(program), "-i", str(hosts), str(play)],
            check=True, timeout=_LIMIT_S, env=env, stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip
        return time.perf_counter() - began
