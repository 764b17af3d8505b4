"""What network paths require of a host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tare.deployments.pod.requirement import PODS
from tare.requirements import HostPlan, Lack, Requirement
from tare.requirements.rights import SIGHT_OF_LAN
from tare.sites.reading import runs
from tare.study.values import OWN_ADDRESS, POD_NETWORKS, NetworkKind


def _pasta(there: HostPlan) -> Iterator[Lack]:
    if not runs(there.host, ["pasta", "--version"]):
        yield Lack("pasta is not installed", "apt-get install passt")


PASTA = Requirement(
    "pasta",
    needed_by="the network `pasta` of rootless Podman",
    tried_how="`pasta --version`",
    hint="apt-get install passt",
    ask=_pasta,
)
NETWORKS: Mapping[NetworkKind, tuple[Requirement, ...]] = {
    **dict.fromkeys(OWN_ADDRESS, (SIGHT_OF_LAN,)),
    **dict.fromkeys(POD_NETWORKS, (PODS,)),
    NetworkKind.PASTA: (PASTA,),
}
"""Network → its requirements; others need what their deployment needs. A cluster makes its own."""
