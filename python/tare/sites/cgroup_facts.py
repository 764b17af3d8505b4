"""Which cgroup interface a host has, and which controllers can be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tare.deployments.cgroup.hierarchy import CgroupKind, parse_cgroups
from tare.errors import TareError
from tare.sites import Host
from tare.sites.reading import text


def cgroup_facts(host: Host) -> Mapping[str, Any]:
    """`cgroup_layout`: v1, hybrid or v2. `cgroup_controllers`: those a child cgroup can have here."""
    try:
        cgroups = parse_cgroups(text(host, "/proc/self/mountinfo") or "")
    except TareError:
        return {"cgroup_layout": None, "cgroup_controllers": None}
    if cgroups.kind is CgroupKind.V2:
        available = text(host, f"{cgroups.hierarchies[0].mount}/cgroup.controllers")
        controllers = None if available is None else sorted(available.split())
    else:
        controllers = sorted({name for hierarchy in cgroups.hierarchies for name in hierarchy.controllers})
    return {
        "cgroup_layout": cgroups.kind.value,
        "cgroup_controllers": controllers,
    }
