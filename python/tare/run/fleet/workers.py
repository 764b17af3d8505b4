"""A fleet of tare's own: a Dask scheduler in this process, and one process for each site, on this machine only."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, Protocol

from tare.errors import EnvironmentLacks
from tare.run.fleet.fork_server import Forked, ForkServer, last_line
from tare.run.fleet.site_process import Orders, quiet
from tare.sites.file import SiteSpec

if TYPE_CHECKING:
    from distributed import Client

SITE_PROCESS = (sys.executable, "-m", "tare.run.fleet.site_process")
_END_S = 120.0


class Workers(Protocol):
    """The workers of the sites."""

    @property
    def client(self) -> Client:
        """Client of the scheduler."""
        ...

    @property
    def shares_disk(self) -> bool:
        """Whether the processes of the sites see this machine's directories."""
        ...

    def ready(self, site: str) -> bool:
        """Whether the site can receive a block."""
        ...

    def bring(self, site: str, task: str, spool: Path) -> None:
        """Copy what a task has handed over to `spool`; may take long, so it runs in its own thread."""
        ...

    def lost(self) -> Mapping[str, str]:
        """Sites whose process has disappeared since the last call, with the reason.

        Raises `EnvironmentLacks` if the scheduler has disappeared.
        """
        ...

    def dismiss(self, site: str) -> None:
        """Stop using the site."""
        ...

    def close(self) -> None:
        """End all workers, with teardown of blocks in progress."""
        ...


@dataclass
class _Member:
    spec: SiteSpec
    process: Forked
    stderr: IO[bytes]


class OwnWorkers:
    """Communicates over TLS with keys made for this study only: whoever may submit a task acts as this user."""

    def __init__(self, sites: Sequence[SiteSpec], command: Sequence[str] = SITE_PROCESS) -> None:
        from dask import config
        from distributed import Client, LocalCluster
        from distributed.security import Security

        quiet()
        self._command = tuple(command)
        self._security = Security.temporary()
        with config.set({"distributed.admin.low-level-log-length": 100}):
            self._cluster = LocalCluster(
                n_workers=0,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # without one, Dask listens at 0.0.0.0:8787 all the same
                security=self._security,
                scheduler_kwargs={"allowed_failures": 0, "dashboard": False},
                silence_logs=logging.CRITICAL,
            )
        self.client = Client(self._cluster, set_as_default=False)
        self._fork_server = ForkServer(self._command)
        self._members: dict[str, _Member] = {}
        self._dismissed: list[_Member] = []
        try:
            for spec in sites:
                self._members[spec.name] = self._started(spec)
        except BaseException:
            self.close()
            raise

    @property
    def shares_disk(self) -> bool:
        """Always: all run on this machine."""
        return True

    def ready(self, site: str) -> bool:
        """Whether the site is in use; a process that is still starting receives the block when it is ready."""
        return site in self._members

    def bring(self, site: str, task: str, spool: Path) -> None:
        """Nothing to do: the files are already there."""

    @property
    def pids(self) -> Mapping[str, int]:
        """Site → id of its process."""
        return {name: member.process.pid for name, member in self._members.items()}

    def lost(self) -> Mapping[str, str]:
        """Sites whose process ended; each process is restarted at once."""
        addresses: dict[str, str] = {}
        for name, member in list(self._members.items()):
            code = member.process.poll()
            if code is None:
                continue
            last = last_line(member.stderr) or "it printed nothing"
            addresses[name] = f"its process ended with {code}: {last}"
            _close(member)
            self._members[name] = self._started(member.spec)
        return addresses

    def dismiss(self, site: str) -> None:
        """End the process, which tears down what it made while other sites continue."""
        if (member := self._members.pop(site, None)) is not None:
            member.process.terminate()
            self._dismissed.append(member)

    def close(self) -> None:
        """End all processes and the scheduler."""
        _end([*self._members.values(), *self._dismissed])
        self._members, self._dismissed = {}, []
        self._fork_server.close()
        self.client.close()
        self._cluster.close()

    def _started(self, spec: SiteSpec) -> _Member:
        stderr = TemporaryFile()  # noqa: SIM115 - closed with the process
        if not self._fork_server.alive:
            self._fork_server.close()
            self._fork_server = ForkServer(self._command)
        try:
            process = self._fork_server.start(stderr)
        except EnvironmentLacks:
            stderr.close()
            raise
        orders = Orders(self._cluster.scheduler_address, spec.model_dump(mode="json"), _keys(self._security))
        with suppress(BrokenPipeError):  # `lost` reports it
            process.stdin.write(json.dumps(vars(orders)).encode() + b"\n")
            process.stdin.flush()
        return _Member(spec, process, stderr)


def _keys(security: Any) -> Mapping[str, Any]:
    names = ("tls_ca_file", "tls_worker_key", "tls_worker_cert", "tls_client_key", "tls_client_cert")
    return {"require_encryption": True, **{name: getattr(security, name) for name in names}}


def _end(members: Sequence[_Member]) -> None:
    for member in members:
        member.process.terminate()
    for member in members:
        try:
            member.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            member.process.kill()
            member.process.wait(_END_S)
        _close(member)


def _close(member: _Member) -> None:
    member.stderr.close()
