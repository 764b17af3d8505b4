"""Run a program in the namespaces and control groups of a running container, through the launcher of bare tasks."""

from __future__ import annotations

from collections.abc import Sequence

from tare.deployments import Instance
from tare.deployments.bare.bare import launcher_input, launcher_source
from tare.deployments.cgroup.hierarchy import Cgroups
from tare.deployments.defaults import environment
from tare.deployments.defaults import user as user_of
from tare.deployments.rlimits import ceilings, rlimits
from tare.sites import Completed, Host


def run_inside(  # noqa: PLR0913 - arguments of `Deployment.exec`, and the place
    host: Host,
    cgroups: Cgroups,
    instance: Instance,
    argv: Sequence[str],
    *,
    launcher: str | None,
    own_users: bool = False,
    timeout_s: float,
    user: str = "",
    stdin: bytes = b"",
) -> Completed:
    """Run as the task's user or as `user`, under the task's limits.

    `launcher`: path of launcher.py on the host; `None` passes its source to Python. `own_users`: also enter the
    container's user namespace.
    """
    task, pid = instance.task, instance.process.pid
    cgroup = (host.read(f"/proc/{pid}/cgroup") or b"").decode()
    limits = rlimits(task.limits, ceilings(host))
    spec = {
        "argv": list(argv),
        "env": dict(environment(task)),
        "user": user or user_of(task),
        "workdir": task.workdir,
        "rlimits": {name: (limit.soft, limit.hard) for name, limit in limits.items()},
        "enter": pid,
        "own_output": False,
        "cgroup_procs": list(cgroups.procs_files(cgroup)),
        "network_of": pid,
        "pod_of": pid,
        "own_users": own_users,
    }
    program = launcher_source() if launcher is None else (launcher,)
    command = ["python3", "-I", "-S", *program, "exec"]
    done = host.run(command, timeout_s=timeout_s, stdin=launcher_input(spec) + stdin, check=False)
    return Completed(tuple(argv), done.code, done.stdout, done.stderr)
