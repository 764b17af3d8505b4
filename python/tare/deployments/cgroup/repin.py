"""Moving a running task to other CPUs, the same way whatever its deployment: by its control group.

An engine's own call (`docker update --cpuset-cpus`) ends in the same write, but starts the OCI runtime for it, some
50 ms of CPU that a bare task would be spared. docs/decisions/0012-two-attempts-at-once.md.
"""

from __future__ import annotations

from tare.deployments import Instance
from tare.deployments.cgroup.hierarchy import parse_cgroups, parse_proc_cgroup
from tare.deployments.observe import parse_status
from tare.errors import RunFailed
from tare.sites import Host
from tare.sites.reading import cpu_list


def repin(host: Host, instance: Instance, cpus: str) -> None:
    """Put all processes of a task on the CPUs of a list, and see that they are. Raises `RunFailed` if not."""
    pid, name = instance.process.pid, instance.task.name
    cgroups = parse_cgroups(_text(host, "/proc/self/mountinfo"))
    paths = parse_proc_cgroup(_text(host, f"/proc/{pid}/cgroup"))
    path = next((path for names, path in paths.items() if "cpuset" in names.split(",")), paths.get(""))
    mount = cgroups.mount_of("cpuset")
    if mount is None or path is None or instance.task.cgroup_parent.rpartition("/")[2] not in path:
        raise RunFailed(
            f"{name} has no cpuset control group of its own, so it cannot be moved to CPUs {cpus}",
            hint="limit it by tare (cgroup: run), on a kernel with the cpuset controller",
        )
    host.put(cpus.encode(), f"{mount}/{path.strip('/')}/cpuset.cpus")
    allowed = parse_status(_text(host, f"/proc/{pid}/status")).get("Cpus_allowed_list")
    if allowed is None:
        raise RunFailed(f"{name} ended before it was moved to CPUs {cpus}")
    if set(cpu_list(allowed) or ()) != set(cpu_list(cpus) or ()):
        raise RunFailed(f"{name} was to be moved to CPUs {cpus} and stands on {allowed}")


def _text(host: Host, path: str) -> str:
    return (host.read(path) or b"").decode(errors="replace")
