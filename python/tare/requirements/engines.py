"""Container engines: the default one, those that arms select by name, and their OCI runtimes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from tare.errors import EnvironmentLacks
from tare.requirements import HostPlan, Lack, Requirement
from tare.sites.engine import engine_facts
from tare.sites.engines import ENGINES, ROOTLESS, why_no_user_ranges
from tare.sites.sidecar.host import why_no_sidecar

_CALL_S = 30.0
_JOURNAL = "/run/systemd/journal/socket"
_EVERYWHERE = frozenset({"json-file", "none"})
"""Log drivers of every engine; Docker does not list `none`, nor Podman its own name for json-file."""


def _engine(there: HostPlan) -> Iterator[Lack]:
    if there.no_engine is not None:
        yield Lack(there.no_engine)


def _sidecar(there: HostPlan) -> Iterator[Lack]:
    if (why := why_no_sidecar(there.host, there.engine)) is not None:
        yield Lack(why)


def _runtimes(there: HostPlan) -> Iterator[Lack]:
    """Engines selected by name are not asked: they report themselves what they lack.

    A name with a dot is containerd's own form for a program, which engines need not list.
    """
    default = (placed for placed in there.placements if placed.engine is None)
    named = {placed.runtime for placed in default if placed.runtime and "." not in placed.runtime}
    if not named or there.engine is None:
        return
    known = engine_facts(there.engine).engine_runtimes
    for name in sorted(named - set(known)):
        yield Lack(
            f"the engine has no runtime `{name}`, but {', '.join(sorted(known))} "
            f"(name it in /etc/docker/daemon.json, or by dockerd --add-runtime {name}=PATH)"
        )


def _log_drivers(there: HostPlan) -> Iterator[Lack]:
    """Engines selected by name are not asked: they report themselves what they lack."""
    asked = {each.sut.log_driver for each in there.served if each.sut.engine is None} - _EVERYWHERE
    if asked and there.engine is not None:
        known = (there.engine.info().get("Plugins") or {}).get("Log") or sorted(asked)
        for name in sorted(asked - set(known)):
            yield Lack(f"the engine has no log driver `{name}`, but {', '.join(sorted(known))}")
    found = ["test", "-S", _JOURNAL]
    if "journald" in asked and there.host.run(found, timeout_s=_CALL_S, check=False).code != 0:
        yield Lack(f"there is no journal for the log driver `journald` ({_JOURNAL})")


def _named(name: str, there: HostPlan) -> Iterator[Lack]:
    if there.engines is None:
        yield Lack(
            "it cannot be selected by name there",
            "leave `engine` out of the study, and give the host the socket as `engine` in sites.yaml",
        )
        return
    try:
        there.engines.client(name)
    except EnvironmentLacks as error:
        yield Lack(str(error))
        return
    if name == ROOTLESS and (why := why_no_user_ranges(there.engines.facts(name))) is not None:
        yield Lack(why)


ENGINE = Requirement(
    "engine",
    needed_by="containers",
    tried_how="GET /version at $DOCKER_HOST, else at /var/run/docker.sock; on another host at its `engine`",
    hint="start a container engine",
    ask=_engine,
    essential=True,
)
SIDECAR = Requirement(
    "files of containers",
    needed_by="containers of a user who is not root",
    tried_how="a container of the engine, which reads what belongs to others",
    hint="run tare with sudo",
    ask=_sidecar,
    essential=True,
)
RUNTIMES = Requirement(
    "OCI runtimes",
    needed_by="arms with `runtime`",
    tried_how="the engine's own list (GET /info)",
    hint="name them in /etc/docker/daemon.json",
    ask=_runtimes,
)
LOG_DRIVERS = Requirement(
    "log drivers",
    needed_by="arms with `log_driver`",
    tried_how="the engine's own list (GET /info), and the journal's socket",
    hint="leave `log_driver` out, or use json-file",
    ask=_log_drivers,
)
NAMED: Mapping[str, Requirement] = {
    name: Requirement(
        f"engine {name}",
        needed_by=f"arms with `engine: {name}`",
        tried_how=f"GET /version at ${known.variable}, else at its usual socket",
        hint=f"{known.start}, or set {known.variable} to its address",
        ask=partial(_named, name),
    )
    for name, known in ENGINES.items()
}
"""Name in a study → requirement."""
