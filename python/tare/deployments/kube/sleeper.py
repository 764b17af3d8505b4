"""A task whose program only sleeps, in a pod with everything that the cluster gives to pods."""

from __future__ import annotations

import hashlib

from tare.deployments import Task
from tare.deployments.pod.pause import PATH, pause_program
from tare.images import Image, ImageConfig
from tare.sites import Host, Output

_CALL_S = 30.0


def sleeper(host: Host, place: str, name: str) -> Task:
    """Make the task, on its node's network; its image lies below `place`, a directory of the host."""
    root = f"{place}/rootfs"
    host.run(["install", "-d", "-m", "0755", "--", root], timeout_s=_CALL_S)
    program = pause_program(host.run(["uname", "-m"], timeout_s=_CALL_S).text.strip())
    host.put(program, f"{root}{PATH}", mode=0o755)
    image = Image("sleeper", hashlib.sha256(program).hexdigest(), root, None, ImageConfig())
    return Task(name, image, (PATH,), Output(f"{place}/out", f"{place}/err"), f"tare/{name}")
