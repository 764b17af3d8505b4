"""Make the host of a non-root user, whose engine is connected to when it is first needed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docker import DockerClient

from tare.errors import RunFailed
from tare.sites.engine import connect
from tare.sites.layout import Layout
from tare.sites.ledger import Ledger
from tare.sites.local import LocalHost
from tare.sites.sidecar.container import Sidecar
from tare.sites.sidecar.host import SshUserHost, UserHost
from tare.sites.ssh.host import SshHost
from tare.sites.ssh.ledger import AgentLedger
from tare.sites.ssh.link import Link, Refused

_ENGINE_S = 60.0


def host_of_user(link: Link, url: Callable[[], str], stack: ExitStack) -> SshUserHost:
    """A host with an agent that is not root: its engine, forwarded when needed, accesses what belongs to others."""
    own, layout = SshHost(link), Layout(Path(link.agent.home))
    client = _OneClient(url, stack)
    sidecar = Sidecar(
        own,
        client.get,
        layout.home,
        AgentLedger(link),
        before=lambda wanted: _tell(link, wanted),
        back=own.lost_for_good,
    )
    client.users.append(sidecar.close)
    return SshUserHost(link, sidecar, layout)


def host_of_user_here(name: str, layout: Layout, ledger: Ledger, stack: ExitStack) -> UserHost:
    """The machine that tare runs on as a host of a site, for a non-root user."""
    client = _OneClient(lambda: None, stack)
    sidecar = Sidecar(LocalHost(name), client.get, layout.home, ledger)
    client.users.append(sidecar.close)
    return UserHost(sidecar, layout, name)


@dataclass
class _OneClient:
    """An engine's client, connected when it is needed. `users`: closed before the client and its socket."""

    url: Callable[[], str | None]
    stack: ExitStack
    users: list[Callable[[], None]] = field(default_factory=list)
    _client: DockerClient | None = None

    def get(self) -> DockerClient:
        """Return the client. Raises `EnvironmentLacks` if no engine answers."""
        if self._client is None:
            self._client = connect(self.url(), timeout_s=_ENGINE_S)
            self.stack.callback(self._client.close)
            for end in self.users:
                self.stack.callback(end)
        return self._client


def _tell(link: Link, wanted: Mapping[str, Any]) -> None:
    """Give the agent the configuration of a container like the sidecar.

    If its tare is lost, the agent clears up by such a container.
    """
    try:
        link.ask("sidecar", json.dumps(wanted).encode())
    except Refused as refused:
        raise RunFailed(f"cannot set the engine of the agent on {link.name}: {refused.what}") from refused
