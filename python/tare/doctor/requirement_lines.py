"""Lines on the requirements of everything that is installed; what is not missing may be tried further."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from tare.deployments.containerd.requirement import CONTAINERD_SERVICE
from tare.deployments.kube.requirement import CLUSTER
from tare.deployments.network.requirements import PASTA
from tare.deployments.pod.requirement import PODS
from tare.deployments.vm.accelerator import MACHINE
from tare.doctor import Line, cannot, missing, ok
from tare.doctor.clusters import cluster_lines
from tare.doctor.cpu import cpu_count_line
from tare.doctor.pods import pod_lines
from tare.doctor.resources import disk_line, memory_line
from tare.doctor.rights import rights_lines
from tare.doctor.runtimes import containerd_line, named_engine_lines, pasta_line, runtime_lines
from tare.doctor.sampling import sampling_lines
from tare.doctor.trials import builder_line, kvm_line
from tare.images.requirement import IMAGES
from tare.monitors.profile.profile import STACKS
from tare.record.engine_facts import EngineFacts
from tare.record.host_facts import HostFacts
from tare.requirements import HostPlan, Lack, Requirement
from tare.requirements.cpus import CPUS
from tare.requirements.engines import ENGINE, NAMED, RUNTIMES
from tare.requirements.resources import DISK, MEMORY
from tare.requirements.rights import ROOT
from tare.run.requirements import PlugIns
from tare.sites.file import SshSpec
from tare.sites.ledger import Ledger


@dataclass(frozen=True)
class Examined:
    """A host under examination. `spec`: of a host over SSH; `facts`, `engine`: as recorded of each run."""

    there: HostPlan
    ledger: Ledger
    facts: HostFacts
    engine: EngineFacts | None
    spec: SshSpec | None = None


Trial = Callable[[Examined], Iterable[Line]]


def requirement_lines(examined: Examined) -> Iterator[Line]:
    """Ask the host for each requirement; what is not missing is tried further if something can be started for it.

    Engines are looked for by name on the machine that tare runs on only.
    """
    named = frozenset() if examined.there.engines is not None else frozenset(NAMED.values())
    for requirement in PlugIns().installed():
        if requirement in named or (requirement.between_hosts and not examined.there.in_sites):
            continue
        lacks = tuple(requirement.ask(examined.there))
        trials = _WHERE_MISSING if lacks else _TRIALS
        generic = _missing(requirement, lacks) if lacks else ok(requirement.name, f"there: {requirement.tried_how}")
        lines = trials[requirement](examined) if requirement in trials else (generic,)
        yield from (replace(line, needed_by=requirement.needed_by) for line in lines)


def _missing(requirement: Requirement, lacks: tuple[Lack, ...]) -> Line:
    why = "; ".join(lack.why for lack in lacks)
    hints = "; ".join(dict.fromkeys(lack.hint for lack in lacks if lack.hint is not None))
    if requirement.essential:
        return cannot(requirement.name, why, hints or requirement.hint)
    only = f"only needed by {requirement.needed_by}"
    return missing(requirement.name, why, f"{only}: {hints}" if hints else only)


def _engine(examined: Examined) -> Iterator[Line]:
    if (facts := examined.engine) is not None:
        named = str(facts.engine).capitalize()
        yield ok(ENGINE.name, f"{named} {facts.engine_version}, API {facts.engine_api_version}")


def _named_engine(name: str, examined: Examined) -> Iterator[Line]:
    return named_engine_lines(examined.there.host, name)


def _machine(examined: Examined) -> Iterator[Line]:
    yield ok(MACHINE.name, f"there: {MACHINE.tried_how}")
    if examined.there.layout is not None:
        yield kvm_line(examined.there.host, examined.there.layout)


def _rights(examined: Examined) -> Iterator[Line]:
    return rights_lines(examined.there.host, examined.spec)


def _builder(examined: Examined) -> Iterator[Line]:
    """Hosts over SSH get finished images."""
    if examined.spec is None:
        yield builder_line(examined.there.host)


_WHERE_MISSING: Mapping[Requirement, Trial] = {ROOT: _rights, IMAGES: _builder}
"""Requirement → lines that say more than what is missing."""
_TRIALS: Mapping[Requirement, Trial] = {
    ROOT: _rights,
    IMAGES: _builder,
    ENGINE: _engine,
    CPUS: lambda examined: [cpu_count_line(examined.facts)],
    MEMORY: lambda examined: [memory_line(examined.facts)],
    DISK: lambda examined: [disk_line(examined.facts)],
    RUNTIMES: lambda examined: runtime_lines(examined.there.host),
    CONTAINERD_SERVICE: lambda examined: [containerd_line(examined.there.host)],
    PODS: lambda examined: pod_lines(examined.there.host),
    CLUSTER: lambda examined: cluster_lines(examined.there.host, examined.ledger),
    PASTA: lambda examined: [pasta_line(examined.there.host)],
    MACHINE: _machine,
    STACKS: lambda examined: sampling_lines(examined.there.host),
    **{requirement: partial(_named_engine, name) for name, requirement in NAMED.items()},
}
"""Requirement → a trial of what is not missing, which may start something and removes it again."""
