"""The complete examination of one machine."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import docker
from docker.errors import DockerException
from requests.exceptions import RequestException

from tare.doctor import Line, Verdict, ok, warning
from tare.doctor.cpu import cpu_lines
from tare.doctor.engine import engine_lines
from tare.doctor.plugins import plugin_lines
from tare.doctor.requirement_lines import Examined, requirement_lines
from tare.doctor.resources import resource_lines
from tare.doctor.trials import noise_line
from tare.errors import TareError
from tare.record.engine_facts import EngineFacts
from tare.record.host_facts import HostFacts
from tare.requirements import HostPlan
from tare.sites import Host
from tare.sites.engine import engine_facts
from tare.sites.engines import Engines
from tare.sites.facts import host_facts
from tare.sites.file import SshSpec
from tare.sites.layout import Layout
from tare.sites.ledger import Ledger
from tare.sites.local import own_process
from tare.sites.process import boot_id
from tare.sites.sqlite_ledger import SqliteLedger


@dataclass(frozen=True)
class Examination:
    """All lines, and the facts behind them.

    `engine`: `None` if no engine answers. `bare`: bare arms may run, too.
    """

    lines: tuple[Line, ...]
    host: HostFacts
    engine: EngineFacts | None
    bare: bool = True

    @property
    def able(self) -> bool:
        """Whether a study can run here."""
        return all(line.verdict is not Verdict.CANNOT for line in self.lines)


def examine(  # noqa: PLR0913 - what a host is asked about
    host: Host,
    engine: docker.DockerClient | TareError,
    layout: Layout,
    ledger: Ledger | None,
    spec: SshSpec | None = None,
    *,
    address: str | None = None,
) -> Examination:
    """Run all checks. `engine`: a client, or why there is none. `ledger`: `None` before tare has made anything.

    `spec`: of a host over SSH; `None` for this machine. `address`: at which the site's other hosts reach it.
    """
    noise = noise_line(host)  # before anything else of tare's runs
    facts = host_facts(host, data_path=str(layout.home))
    of_engine, why_none = _engine(engine, host)
    with closing(Engines(host)) as engines:
        there = HostPlan(
            host,
            layout,
            engine=None if isinstance(engine, TareError) else engine,
            no_engine=why_none,
            engines=engines if _is_here(host) else None,
            in_sites=spec is not None or address is not None,
            address=address,
        )
        examined = Examined(there, ledger or SqliteLedger(layout.ledger), facts, of_engine, spec)
        needed = tuple(requirement_lines(examined))
    lines = (
        *needed,
        noise,
        *(() if of_engine is None else engine_lines(of_engine)),
        *resource_lines(facts),
        *cpu_lines(facts),
        _leftovers(ledger),
        *plugin_lines(),
    )
    return Examination(lines, facts, of_engine, bare=there.is_root)


def _is_here(host: Host) -> bool:
    """Whether tare itself runs on the host: engines are found by name there only."""
    return not host.is_remote and boot_id(host) == own_process().boot_id


def _engine(engine: docker.DockerClient | TareError, host: Host) -> tuple[EngineFacts | None, str | None]:
    """The engine's facts, or why there are none."""
    if isinstance(engine, TareError):
        return None, str(engine)
    try:
        return engine_facts(engine, host), None
    except (DockerException, RequestException) as error:
        return None, f"it answers, then fails: {error} (look at the engine's log)"


def _leftovers(ledger: Ledger | None) -> Line:
    left = ledger.abandoned() if ledger is not None else ()
    if left:
        kinds = ", ".join(sorted({entry.kind.value for entry in left}))
        return warning("leftovers", f"{len(left)} of runs that died: {kinds}", "tare clean removes them")
    return ok("leftovers", "none")
