"""Every deployment by name, and the factories that make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from tare.deployments import CONTAINERD, POD, Deployment
from tare.deployments.bare.bare import Bare
from tare.deployments.container.container import Container
from tare.deployments.containerd.containerd import Containerd
from tare.deployments.fake import FakeDeployment, FakeEmulated
from tare.deployments.kube.cluster_pod import ClusterPod
from tare.deployments.vm.vm import Vm
from tare.deployments.vm_container.vm_container import VmContainer
from tare.plugins import Implementations, breach_of_factory
from tare.requirements import Requirement
from tare.sites import Host
from tare.sites.ledger import Ledger

if TYPE_CHECKING:
    from docker import DockerClient


class DeploymentFactory(Protocol):
    """Makes a deployment.

    `engine` is the host's container engine. Pass it to `bare` too if there is one: its cgroup driver decides where
    the cgroup of a bare task lies, so that both have the same parent.
    """

    @property
    def needs(self) -> tuple[Requirement, ...]:
        """`Deployment.needs`, known before a deployment is made."""
        ...

    @property
    def isolates_network(self) -> bool:
        """`Deployment.isolates_network`, known before a deployment is made."""
        ...

    @property
    def own_root(self) -> bool:
        """`Deployment.own_root`, known before a deployment is made."""
        ...

    def __call__(self, host: Host, ledger: Ledger, engine: DockerClient | None = None) -> Deployment:
        """Make a deployment on `host` that notes everything it makes in `ledger`."""
        ...


BUILT_IN: Mapping[str, DeploymentFactory] = {
    "bare": Bare,
    "container": Container,
    CONTAINERD: Containerd,
    "fake": FakeDeployment,
    "fake-emulated": FakeEmulated(),
    POD: ClusterPod,
    "vm": Vm,
    "vm-container": VmContainer(),
}
"""Name → factory, of the deployments that come with tare."""

DEPLOYMENTS: Implementations[DeploymentFactory] = Implementations(
    "deployment", BUILT_IN, breach_of_factory(Deployment)
)
"""Name → factory, including deployments of other packages: docs/guides/plugins.md."""
