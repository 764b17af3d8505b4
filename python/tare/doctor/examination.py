"""The complete examination of one machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import docker
from docker.errors import DockerException
from requests.exceptions import RequestException

from tare.doctor import Line, Verdict, cannot, ok, warning
from tare.doctor.clusters import cluster_lines
from tare.doctor.cpu import cpu_lines
from tare.doctor.engine import engine_lines
from tare.doctor.plugins import plugin_lines
from tare.doctor.pods import pod_lines
from tare.doctor.resources import resource_lines
from tare.doctor.rights import local_line, rights_line, socket_line
from tare.doctor.runtimes import runtime_lines
from tare.doctor.sampling import sampling_lines
from tare.doctor.trials import trial_lines
from tare.errors import TareError
from tare.sites import Host
from tare.sites.engine import engine_facts
from tare.sites.facts import host_facts
from tare.sites.file import SshSpec
from tare.sites.layout import ADVICE, Layout, home_on
from tare.sites.ledger import Ledger
from tare.sites.sidecar.host import why_no_sidecar
from tare.sites.sqlite_ledger import SqliteLedger


def home_line(host: Host, home: str) -> Line:
    """Check TARE_HOME."""
    checked = home_on(host, home)
    if checked.fault is not None:
        return cannot("home", checked.fault, ADVICE)
    return ok("home", home if checked.place == home else f"{home}, to be made in {checked.place}")


@dataclass(frozen=True)
class Examination:
    """All lines, and the facts behind them. `engine`: `None` if no engine answers."""

    lines: tuple[Line, ...]
    host: Mapping[str, Any]
    engine: Mapping[str, Any] | None

    @property
    def able(self) -> bool:
        """Whether a study with bare and container arms can run here."""
        return all(line.verdict is not Verdict.CANNOT for line in self.lines)


def examine(
    host: Host,
    engine: docker.DockerClient | TareError,
    layout: Layout,
    ledger: Ledger | None,
    spec: SshSpec | None = None,
) -> Examination:
    """Run all checks. `engine`: a client, or why there is none. `ledger`: `None` before tare has made anything.

    `spec`: of a host over SSH; `None` for this machine.
    """
    builds = spec is None
    client = None if isinstance(engine, TareError) else engine
    no_sidecar, answers = why_no_sidecar(host, client), client is not None
    own = (
        local_line(host, engine=answers, no_sidecar=no_sidecar)
        if spec is None
        else rights_line(host, spec, engine=answers, no_sidecar=no_sidecar)
    )
    socket = None if spec is None else socket_line(host, spec)
    trials = tuple(trial_lines(host, layout, own, builds=builds))  # run before anything else of tare's runs
    facts = host_facts(host, data_path=str(layout.home))
    of_engine, engine_found = _engine(engine, host)
    home = home_line(host, str(layout.home))
    lines = (
        *trials,
        *engine_found,
        *(() if socket is None else (socket,)),
        *runtime_lines(host),
        *pod_lines(host),
        *cluster_lines(host, ledger or SqliteLedger(layout.ledger)),
        home,
        *resource_lines(facts),
        *sampling_lines(host),
        *cpu_lines(facts),
        _leftovers(ledger),
        *plugin_lines(),
    )
    return Examination(lines, facts, of_engine)


def _engine(
    engine: docker.DockerClient | TareError, host: Host
) -> tuple[Mapping[str, Any] | None, tuple[Line, ...]]:
    if isinstance(engine, TareError):
        return None, (cannot("engine", engine.what, engine.hint or "start a container engine"),)
    try:
        facts = engine_facts(engine, host)
    except (DockerException, RequestException) as error:
        return None, (cannot("engine", f"it answers, then fails: {error}", "look at the engine's log"),)
    return facts, tuple(engine_lines(facts))


def _leftovers(ledger: Ledger | None) -> Line:
    left = ledger.abandoned() if ledger is not None else ()
    if left:
        kinds = ", ".join(sorted({entry.kind.value for entry in left}))
        return warning("leftovers", f"{len(left)} of runs that died: {kinds}", "tare clean removes them")
    return ok("leftovers", "none")
