"""`tare inspect`: look at a server that runs, and say what would cost it."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tare.errors import EnvironmentLacks, StudyError, TareError

if TYPE_CHECKING:
    from docker import DockerClient

    from tare.inspection.subject import Subject
    from tare.inspection.verdict import Verdict
    from tare.knowledge.claim import ClaimFile
    from tare.knowledge.unit_costs import UnitCosts
    from tare.sites import Host

_SECONDS = re.compile(r"^(\d+(?:\.\d+)?)(s|m)?$")
_LONGEST_S = 3600.0
_TIMEOUT_S = 10.0


def inspect(  # noqa: PLR0913, PLR0917 - one argument an option
    target: Annotated[
        list[str] | None,
        typer.Argument(
            help="Container, process ID, NAME.service, or NAMESPACE/POD; several at once.", metavar="TARGET"
        ),
    ] = None,
    engine: Annotated[str | None, typer.Option(help="Ask only docker, podman or podman-rootless.")] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="Cluster of NAMESPACE/POD (default: as kubectl).")] = None,
    every: Annotated[bool, typer.Option("--all", help="All running containers of the engines.")] = False,  # noqa: FBT002 - an option, given by name
    watch: Annotated[
        str | None, typer.Option(help="Look twice, this long apart (30s, 2m): what load shows.")
    ] = None,
    study: Annotated[
        Path | None, typer.Option(help="Write the study that would measure the first trap here.")
    ] = None,
    trap: Annotated[str | None, typer.Option(help="The trap of --study.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with every fact that was read.")] = False,  # noqa: FBT002 - an option, given by name
) -> None:
    """Look at a running database, and name each known trap that it meets, with evidence, cost and remedy.

    Takes seconds; reads only, starts no benchmark and changes nothing. Exit code 1: a trap is met.
    """
    seconds = None if watch is None else parse_seconds(watch)
    if bool(target) is every:
        raise StudyError("nothing to look at", hint="name a container, process or pod, or give --all, not both")
    from tare.report.write import refuse_place
    from tare.sites.local import LocalHost

    refuse_place(study)
    host = LocalHost()
    silent: list[EnvironmentLacks] = []
    with _engines(engine, silent) as engines:
        subjects = list(_subjects(host, target or [], engines, kubeconfig, silent, every=every))
        verdicts = _verdicts(host, subjects, seconds, _weighed(host, engines))
    if study is not None:
        _write_study(verdicts, study, trap)
    _show(verdicts, as_json=as_json)
    if any(each.met for each in verdicts):
        raise typer.Exit(1)


def parse_seconds(text: str) -> float:
    """Parse `30s`, `2m` or `30`. Raises `StudyError` for anything else, or more than an hour."""
    found = _SECONDS.match(text.strip())
    seconds = float(found[1]) * (60 if found[2] == "m" else 1) if found else 0.0
    if not 0 < seconds <= _LONGEST_S:
        raise StudyError(f"--watch {text[:40]!r} is no time", hint="give 30s or 2m; at most an hour")
    return seconds


@contextmanager
def _engines(name: str | None, silent: list[EnvironmentLacks]) -> Iterator[Mapping[str, DockerClient]]:
    """Clients of the engines that answer; of the named one alone, which must. `silent` gets why others do not."""
    from tare.sites.engines import ENGINES, connect_to
    from tare.study.suggest import did_you_mean

    if name is not None and name not in ENGINES:
        raise StudyError(f"no engine {name[:40]!r}", hint=did_you_mean(name, ENGINES, kind="engines"))
    with ExitStack() as stack:
        clients: dict[str, DockerClient] = {}
        for each in ENGINES if name is None else (name,):
            try:
                clients[each] = stack.enter_context(closing(connect_to(each, timeout_s=_TIMEOUT_S)))
            except EnvironmentLacks as error:
                if name is not None:
                    raise
                silent.append(error)
        yield clients


def _subjects(  # noqa: PLR0913 - what a target may be found by
    host: Host,
    targets: list[str],
    engines: Mapping[str, DockerClient],
    kubeconfig: Path | None,
    silent: list[EnvironmentLacks],
    *,
    every: bool,
) -> Iterator[Subject]:
    from tare.inspection.subject import every_container, of_pod, subjects_of

    if every:
        if not engines:
            raise silent[0]
        yield from every_container(host, engines)
        return
    for target in targets:
        if "/" not in target:
            try:
                yield from subjects_of(host, target, engines)
            except StudyError as error:
                if engines or not silent or target.isdecimal() or target.endswith(".service"):
                    raise
                raise silent[0] from error
            continue
        from tare.deployments.kube.api import connect

        namespace, _, name = target.partition("/")
        cluster = connect(None if kubeconfig is None else str(kubeconfig))
        pod = cluster.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        if pod is None:
            raise StudyError(f"no pod {target!r} in the cluster at {cluster.server}")
        inside = list(of_pod(host, pod))
        if not inside:
            node = (pod.get("spec") or {}).get("nodeName")
            raise EnvironmentLacks(
                f"pod {target!r} has no process on this host", hint=f"run this on its node, {node}"
            )
        yield from inside


def _weighed(host: Host, engines: Mapping[str, DockerClient]) -> UnitCosts | None:
    """Unit costs of this machine under its kernel and engine; `None` if it was not weighed or they are damaged."""
    from tare.calibrate.summary import identity_of
    from tare.knowledge.kept_costs import read_costs
    from tare.sites.engine import engine_facts
    from tare.sites.facts import host_facts
    from tare.sites.layout import default_layout

    layout = default_layout()
    if not layout.unit_costs.is_dir():
        return None
    seen = host_facts(host)
    try:
        found = (read_costs(layout, identity_of(seen, engine_facts(engine))) for engine in engines.values())
        return next((each for each in found if each is not None), None)
    except TareError as error:
        typer.echo(f"no unit costs: {error}", err=True)
        return None


def _verdicts(
    host: Host, subjects: list[Subject], watch_s: float | None, weighed: UnitCosts | None
) -> list[Verdict]:
    from tare.inspection.gather import gather
    from tare.inspection.verdict import verdict
    from tare.inspection.watch import between, counters
    from tare.traps.trap import load_traps

    traps = load_traps()
    claims = _claims({name for known in traps for name in known.trap.cost.claims})
    before = [] if watch_s is None else [counters(host, each) for each in subjects]
    if watch_s is not None:
        time.sleep(watch_s)
    looked = []
    for number, subject in enumerate(subjects):
        try:
            readings = gather(host, subject)
            if watch_s is not None:
                between(before[number], counters(host, subject), readings)
        except TareError as error:
            if len(subjects) == 1:
                raise
            typer.echo(f"{subject.name}: {error}", err=True)
            continue
        looked.append(verdict(subject, readings, traps, claims, weighed=weighed, watched=watch_s is not None))
    return looked


def _claims(names: set[str]) -> list[ClaimFile]:
    """The claims of these names alone: to read them all would take longer than to look at the server."""
    from tare.knowledge.claim import load_claim
    from tare.study.catalogue import claims_folder

    return [load_claim(path) for path in sorted(claims_folder().glob("*/*.yaml")) if path.stem in names]


def _write_study(verdicts: list[Verdict], place: Path, trap: str | None) -> None:
    from tare.inspection.study import study_of
    from tare.report.write import write
    from tare.study.suggest import did_you_mean
    from tare.traps.trap import load_traps

    database = verdicts[0].subject.database if verdicts else ""
    if trap is not None:
        known = next((each for each in load_traps() if each.id == trap), None)
        if known is None:
            raise StudyError(
                f"no trap {trap[:60]!r}", hint=did_you_mean(trap, [t.id for t in load_traps()], kind="traps")
            )
    else:
        measurable = (met.known for each in verdicts for met in each.met if met.known.trap.study)
        known = next(measurable, None)
        if known is None:
            raise StudyError("no trap is met that a study can measure", hint="choose one with --trap")
    write(study_of(known, database), place)
    typer.echo(f"{place}: measures {known.id}; `tare plan {place}` shows it.", err=True)


def _show(verdicts: list[Verdict], *, as_json: bool) -> None:
    from tare.inspection.text import as_tree, lines

    if as_json:
        text = json.dumps(as_tree(verdicts), indent=2, ensure_ascii=False) + "\n"
    else:
        width = max(40, min(Console().width, 100))
        text = "\n".join("\n".join(lines(each, width)) + "\n" for each in verdicts)
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))
