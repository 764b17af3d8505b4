"""An existing Dask cluster: its scheduler, and the workers that `tare worker` started next to sites."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tare.errors import EnvironmentLacks, StudyError
from tare.run.fleet.delivery import Delivery, WorkerLink
from tare.run.fleet.site_process import quiet, resource_of

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

WAIT_S = 600.0
_FAILURES = 3
"""After each third of `WAIT_S`, a worker's absence counts as a failure: three in a row set its site aside."""
_LOOK_S = 1.0
_GONE_S = 5.0
_CONNECT_S = 15


@dataclass(frozen=True)
class Scheduler:
    """Address of a scheduler, and the TLS files; without files, Dask's own configuration applies.

    `wait_s`: how long a site's worker may be away before the site is set aside.
    """

    address: str
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    wait_s: float = WAIT_S

    def __post_init__(self) -> None:
        url = urlsplit(self.address)
        if url.scheme not in ("tcp", "tls") or not url.hostname or not re.search(r":\d+\Z", url.netloc):
            what = f"{self.address} is not an address of a scheduler"
            raise StudyError(what, hint="write tcp://HOST:PORT or tls://HOST:PORT, as the scheduler printed it")
        given = [path for path in (self.ca, self.cert, self.key) if path is not None]
        if given and (len(given) < 3 or url.scheme != "tls"):
            what = "--tls-ca, --tls-cert and --tls-key must be given together, with a tls:// address"
            raise StudyError(what, hint="give all three, or leave them to Dask's configuration")
        for path in given:
            if not path.is_file():
                raise StudyError(
                    f"there is no file {path}", hint="give --tls-ca, --tls-cert and --tls-key as PEM files"
                )

    @property
    def security(self) -> Mapping[str, Any]:
        """TLS settings for Dask's `Security`, for a client and for a worker."""
        if urlsplit(self.address).scheme == "tcp":
            return {}
        files = (
            {} if self.ca is None else {"tls_ca_file": str(self.ca), **self._own("client"), **self._own("worker")}
        )
        return {"require_encryption": True, **files}

    def _own(self, role: str) -> Mapping[str, str]:
        return {f"tls_{role}_cert": str(self.cert), f"tls_{role}_key": str(self.key)}


@dataclass
class _SiteWorker:
    """A site's worker: its address, and since when it has been away."""

    worker: str | None = None
    line: WorkerLink | None = None
    away_since: float = field(default_factory=time.monotonic)


class ClusterWorkers:
    """Sites whose workers tare did not start: tare does not end them and shares no disk with them."""

    def __init__(self, sites: Sequence[str], scheduler: Scheduler) -> None:
        quiet()
        self._scheduler = scheduler
        self.client = connected_client(scheduler)
        self._workers = {site: _SiteWorker() for site in sites}
        self._looked_at, self._running_at = 0.0, time.monotonic()
        self._look()

    @property
    def shares_disk(self) -> bool:
        """Never: workers may run on other machines."""
        return False

    def ready(self, site: str) -> bool:
        """Whether the scheduler knows a worker of the site."""
        site_worker = self._workers.get(site)
        return site_worker is not None and site_worker.worker is not None

    def bring(self, site: str, task: str, spool: Path) -> None:
        """Fetch from the worker. Raises `EnvironmentLacks` if it is unavailable."""
        site_worker = self._workers.get(site)
        if site_worker is None or site_worker.line is None:
            raise EnvironmentLacks(f"the worker of {site} has disappeared")
        Delivery(task, spool, site_worker.line.ask).fetch()

    def lost(self) -> Mapping[str, str]:
        """Sites whose worker disappeared, and again each third of the time it may be away."""
        now = time.monotonic()
        if self.client.status == "running":
            self._running_at = now
        elif self.client.status == "closed" or now - self._running_at > _GONE_S:
            raise self._scheduler_gone()
        else:
            return {}
        if now - self._looked_at < _LOOK_S:
            return {}
        return self._look()

    def dismiss(self, site: str) -> None:
        """Stop using the site; its worker stays, for other studies."""
        self._workers.pop(site, None)

    def close(self) -> None:
        """Release blocks in progress, which makes their workers interrupt them."""
        self.client.close()

    def _look(self) -> dict[str, str]:
        try:
            workers = _workers_of(self.client)
        except OSError:
            return {}  # `lost` sees at its next call whether the scheduler has disappeared
        self._looked_at = now = time.monotonic()
        lost: dict[str, str] = {}
        for site, site_worker in self._workers.items():
            worker = workers.get(site)
            if worker is None and site_worker.worker is not None:
                lost[site] = f"its worker at {site_worker.worker} has disappeared"
                site_worker.away_since = now
            elif worker is None and now - site_worker.away_since > self._scheduler.wait_s / _FAILURES:
                lost[site] = f"it has no worker at {self._scheduler.address}: start one with `tare worker`"
                site_worker.away_since = now
            elif worker is not None and site_worker.worker not in (None, worker):
                lost[site] = f"its worker at {site_worker.worker} has disappeared; another one is at {worker}"
            if worker != site_worker.worker:
                site_worker.worker = worker
                site_worker.line = None if worker is None else WorkerLink(self.client, worker)
        return lost

    def _scheduler_gone(self) -> EnvironmentLacks:
        what = f"the scheduler at {self._scheduler.address} has disappeared"
        return EnvironmentLacks(what, hint="start it and the workers again, then repeat the command to resume")


def connected_client(scheduler: Scheduler) -> Client:
    """Connect to the scheduler. Raises `EnvironmentLacks` if there is none or it refuses the connection."""
    from distributed import Client

    try:
        return Client(scheduler.address, security=security_of(scheduler), set_as_default=False, timeout=_CONNECT_S)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        what = f"the scheduler at {scheduler.address} cannot be reached: {error}"
        raise EnvironmentLacks(what, hint="is it running, and is this the address that it printed?") from error


def security_of(scheduler: Scheduler) -> Security | None:
    """Return Dask's `Security`, which reads missing values from its own configuration."""
    from distributed.security import Security

    given = scheduler.security
    return Security(**given) if given else None


def _workers_of(client: Client) -> Mapping[str, str]:
    """Site → address of its worker."""
    addresses: dict[str, str] = {}
    for address, worker in client.scheduler_info()["workers"].items():
        for resource in worker.get("resources", {}):
            if resource.startswith(resource_of("")):
                addresses[resource.removeprefix(resource_of(""))] = address
    return addresses
