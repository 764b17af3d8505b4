"""Plan → records: block by block until the protocol has enough, each run until it is good or out of retries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tare.errors import EnvironmentLacks, RunFailed
from tare.images import Image
from tare.plan.model import Plan, PlannedRun
from tare.protocols.registry import PROTOCOLS
from tare.record.pilot import Choice, TurnChoice
from tare.record.run_record import RunRecord
from tare.run.attempt.attempt import attempt
from tare.run.attempt.context import Images
from tare.run.attempt.job import Job
from tare.run.attempt.loading import contents_of, ensure_snapshot, loader_of, shelf_of
from tare.run.attempt.server import nodes_of
from tare.run.attempt.stages import attempt_stages
from tare.run.claims import Claims, Turns
from tare.run.clock import Clock, Deadline
from tare.run.duet.attempt import attempt_duet
from tare.run.events import BlockEnded, MeasureChosen, Notice, Observer, Preparing, RunEnded, RunStarted
from tare.run.limits_of_user import lowered_limits, missing_without_root
from tare.run.machine import Machine
from tare.run.resume import StudyState, choice_of, decision, plan_of, remaining
from tare.run.rotation.attempt import attempt_generation
from tare.run.rotation.pilot import choose_turns
from tare.sites import Host
from tare.sites.layout import close_caches
from tare.study.model import ArmSettings, Placement
from tare.study.protocol_spec import RotateSpec
from tare.study.rules.repetition import instances

_BACK_S, _POLL_S = 30.0, 0.5
"""How long to wait for an engine, or for an exhausted resource of a host, and how often to look."""


@dataclass(frozen=True)
class Destination:
    """Where the records go: the store's id, the state it holds already, and its staging directory.

    `claims`: claims on blocks, for a store that several tare processes write.
    """

    store_id: str
    done: StudyState
    staging: Path
    claims: Claims | None = None


@dataclass(frozen=True)
class _Session:
    plan: Plan
    machine: Machine
    destination: Destination
    observer: Observer

    def settings(self, run: PlannedRun) -> ArmSettings:
        return self.plan.arm(run.arm).settings

    def machine_of(self, run: PlannedRun) -> Machine:
        return self.machine.of_block(run.block)


Ready = Mapping[tuple[str, str], Images]
"""(Arm, name of the SUT's host) → the arm's images there."""
Kept = tuple[RunRecord, ...]
"""Records that are committed together: of one attempt, of both runs of a duet, or of all stages of an instance."""


def execute(plan: Plan, machine: Machine, destination: Destination, observer: Observer) -> Iterator[Kept]:
    """Yield the records of each attempt when it ends; the next attempt starts when the caller resumes the iterator.

    After each block, the protocol decides from all records, earlier calls included, whether another block starts.
    The caller commits the records, as a whole, before it asks for the next. Raises `Interrupted` between or within
    attempts, with everything torn down, and `EnvironmentLacks` before the first attempt if an image is unavailable.
    """
    runs = remaining(plan, destination.done)
    if not runs:
        return
    try:
        images = prepare(plan, machine, destination, observer, runs)
        yield from _until_enough(_Session(plan, machine, destination, observer), images)
    finally:
        for line in machine.leave_clusters():
            observer(Notice(line))


def prepare(
    plan: Plan, machine: Machine, destination: Destination, observer: Observer, runs: Sequence[PlannedRun]
) -> Ready:
    """Prepare a machine for these runs: remove what dead runs left, prepare images and load data."""
    session = _Session(plan, machine, destination, observer)
    machine.tell_losses(lambda text: observer(Notice(text)))
    with machine.interrupts.allowed():
        for line in machine.sweep():
            observer(Notice(line))
    machines = {each.site.sut.name: each for each in map(session.machine_of, runs)}
    for host in (host for each in machines.values() for host in each.site.sut_hosts):
        for line in lowered_limits(plan.study, host):
            observer(Notice(f"{line} ({host.name})" if machine.site.nodes else line))
    every = {host.name: host for each in machines.values() for host in each.site.hosts}
    for name, host in every.items():
        close_caches(host, machine.layout_on(host))
        for line in missing_without_root(host):
            observer(Notice(f"{line} ({name})" if len(every) > 1 else line))
    images = _prepare_images(session, runs)
    _prepare_data(session, runs, images)
    if any(session.settings(run).client is not None for run in runs):
        for each in machines.values():
            _prepare_wire(session, each)
    return images


def image_key(machine: Machine, run: PlannedRun) -> tuple[str, str]:
    """Key of a run's images in `Ready`."""
    return run.arm, machine.of_block(run.block).site.sut.name


def execute_block(  # noqa: PLR0913, PLR0917 - all that a block is made of
    plan: Plan,
    machine: Machine,
    destination: Destination,
    observer: Observer,
    images: Ready,
    choice: Choice | None,
) -> Iterator[Kept]:
    """Do what `execute` does for a plan that holds the runs of one block only; skip runs with a good attempt.

    `choice`: the measure phase chosen from the whole study's pilot.
    """
    session, tried = _Session(plan, machine, destination, observer), set(destination.done.good)
    machine.tell_losses(lambda text: observer(Notice(text)))
    try:
        for run in plan.runs:
            if run.id not in tried:
                together = _together(plan, run)
                tried |= {each.id for each in together}
                yield from _until_good(session, together, images, choice)
    finally:
        for line in machine.leave_clusters():
            observer(Notice(line))


def _until_enough(session: _Session, images: Ready) -> Iterator[Kept]:
    """Attempt each remaining run once; recompute what remains after each, since the protocol may have enough."""
    plan, done = session.plan, session.destination.done
    tried: set[str] = set()
    blocks, announced = 0, False
    turns_chosen: TurnChoice | None = None
    turns = _block_turns(session)
    while True:
        if turns is None:
            left = [run for run in remaining(plan, done) if run.id not in tried]
        else:
            done, left = turns.next(done, tried)
            session = replace(session, destination=replace(session.destination, done=done))
        if not left:
            break
        decided = decision(plan, done)
        if decided.blocks > blocks:
            blocks = decided.blocks
            session.observer(BlockEnded(decided))
        together = _together(plan, left[0])
        tried |= {run.id for run in together}
        choice: Choice | TurnChoice | None = choice_of(plan, done)
        if isinstance(plan.study.protocol, RotateSpec) and plan.study.protocol.turn_ms is None:
            choice = turns_chosen = turns_chosen or _turns(session, done, together, images)
        if choice is not None and not announced:
            announced = True
            session.observer(MeasureChosen(choice))
        for records in _until_good(session, together, images, choice):
            done = done.plus(*records)
            yield records
    session.observer(BlockEnded(decision(plan, done)))
    for line in session.machine.sweep_own():
        session.observer(Notice(line))


def _block_turns(session: _Session) -> Turns | None:
    machine, claims = session.machine, session.destination.claims
    if claims is None:
        return None
    site = machine.site.labels.get("site")
    return Turns(session.plan, claims, site, machine.clock, machine.interrupts, session.observer)


def _prepare_images(session: _Session, runs: Sequence[PlannedRun]) -> Ready:
    """Prepare the images of every arm that is still to run, once on every host where it runs."""
    places = {image_key(session.machine, run): run for run in runs}
    ready: dict[tuple[str, str, str | None], Image] = {}

    def on(machine: Machine, host: Host, placed: Placement) -> Image:
        wanted = (host.name, placed.image, placed.engine)
        if wanted not in ready:
            inside = f" in {placed.engine}" if placed.engine else ""
            where = f" on {host.name}" if machine.parts else ""
            session.observer(Preparing(f"image {placed.image}{inside}{where}"))
            with machine.interrupts.allowed():
                ready[wanted] = machine.image_on(host, placed)
        return ready[wanted]

    def images_of(run: PlannedRun) -> Images:
        machine, settings = session.machine_of(run), session.settings(run)
        return Images(
            sut=on(machine, machine.site.sut, settings.sut),
            client=None if settings.client is None else on(machine, machine.site.client, settings.client),
            nodes=tuple(on(machine, host, settings.sut) for host in machine.site.nodes),
        )

    return {place: images_of(run) for place, run in places.items()}


def _prepare_data(session: _Session, runs: Sequence[PlannedRun], images: Ready) -> None:
    """Load every data set before the first run, so that no run follows directly on a load.

    A failed load is repeated by the runs that need the data, which report the failure.
    """
    tried = set()
    first_stages = {arms[0].name for arms in instances(session.plan.study)}
    for run in (run for run in runs if run.arm in first_stages):
        machine, place = session.machine_of(run), image_key(session.machine, run)
        settings = loader_of(session.plan, session.settings(run))
        contents = contents_of(machine, settings, images[place])
        wanted = (contents.key, machine.site.sut.name)
        if not contents.dataset or wanted in tried or shelf_of(machine).find(contents):
            continue
        tried.add(wanted)
        of = "" if settings.sut.database is None else f" of {settings.sut.database}"
        session.observer(Preparing(f"data{of} for {settings.workload_name}"))
        try:
            with machine.interrupts.allowed():
                ensure_snapshot(machine, settings, images[place])
        except (RunFailed, OSError) as error:
            session.observer(Notice(f"the data could not be loaded yet: {error}"))


def _prepare_wire(session: _Session, machine: Machine) -> None:
    """Measure the throughput between the hosts, once per call of tare. On failure, the runs try again."""
    if machine.wire is None:
        return
    session.observer(Preparing(f"throughput between {' and '.join(host.name for host in machine.site.hosts)}"))
    try:
        with machine.interrupts.allowed():
            machine.wire.fill()
    except (RunFailed, OSError) as error:
        session.observer(Notice(f"the throughput could not be measured yet: {error}"))


def _together(plan: Plan, run: PlannedRun) -> Sequence[PlannedRun]:
    """Return the runs that are kept or discarded together: one, those that share time, or all stages."""
    in_block = [each for each in plan.runs if each.block == run.block]
    if PROTOCOLS[plan.study.protocol.name].as_one:
        return in_block
    arms = next(arms for arms in instances(plan.study) if run.arm in {arm.name for arm in arms})
    return [each for each in in_block if each.arm in {arm.name for arm in arms}]


def _until_good(
    session: _Session, together: Sequence[PlannedRun], images: Ready, choice: Choice | TurnChoice | None
) -> Iterator[Kept]:
    destination, plan = session.destination, plan_of(session.plan, together[0], choice)
    by = choice if isinstance(choice, TurnChoice) or plan is not session.plan else None
    first = 1 + max(destination.done.attempts[run.id] for run in together)
    for number in range(first, first + 1 + session.plan.study.protocol.retries):
        jobs = _jobs(session, plan, together, number, images, by)
        for job in jobs:
            hosts = _hosts(session.machine_of(job.run), session.settings(job.run))
            session.observer(RunStarted(job.run, number, hosts))
        records = _attempt(jobs, session)
        yield records
        for record in records:
            session.observer(RunEnded(record))
        if all(record.outcome.ok for record in records):
            return
        for run in together:
            _refuse_without_hosts(session, run)
            _refuse_without_engine(session, run)
            _refuse_without_means(session, run)


def _jobs(  # noqa: PLR0913, PLR0917 - all that jobs are made of
    session: _Session,
    plan: Plan,
    together: Sequence[PlannedRun],
    number: int,
    images: Ready,
    by: Choice | TurnChoice | None,
) -> list[Job]:
    to = session.destination
    return [
        Job(
            to.store_id,
            plan,
            run,
            number,
            images[image_key(session.machine, run)],
            to.staging / f"{run.id}-{number}",
            by,
        )
        for run in together
    ]


def _turns(session: _Session, done: StudyState, together: Sequence[PlannedRun], images: Ready) -> TurnChoice | None:
    """Return the lengths of turns that the pilot chose, earlier or now; `None` if a run of it failed."""
    if isinstance(done.choice, TurnChoice):
        return done.choice
    spec = session.plan.study.protocol
    assert isinstance(spec, RotateSpec)  # noqa: S101 - the caller's condition
    session.observer(Preparing("turns: a pilot tries several lengths"))
    number = 1 + max(done.attempts[run.id] for run in together)
    jobs = _jobs(session, session.plan, together, number, images, None)
    chosen = choose_turns(jobs, session.machine_of(together[0]), spec)
    if isinstance(chosen, TurnChoice):
        return chosen
    session.observer(Notice(f"the pilot of turns failed: {chosen}"))
    return None


def _hosts(machine: Machine, settings: ArmSettings) -> Mapping[str, str]:
    """Node or `client` → the host it runs on; empty where one host runs everything."""
    site = machine.site
    if len(site.hosts) == 1:
        return {}
    nodes = {node.name: site.host_of(node.number).name for node in nodes_of(settings.sut.nodes)}
    return nodes if settings.client is None else {**nodes, "client": site.client.name}


def _refuse_without_hosts(session: _Session, run: PlannedRun) -> None:
    """End the study if a host is lost for good. A host that may come back is waited for, to save retries."""
    why = session.machine_of(run).host_lost()
    if why is not None:
        raise EnvironmentLacks(f"a host is lost: {why}", hint="once it is back, repeat the command to resume")


def _refuse_without_engine(session: _Session, run: PlannedRun) -> None:
    """End the study if an engine has stopped, since all later runs would fail. A restart takes some seconds."""
    settings, machine = session.settings(run), session.machine_of(run)
    why = _still_lacking(machine.clock, lambda: machine.engine_lost(settings))
    if why is not None:
        raise EnvironmentLacks(
            f"the container engine stopped answering: {why}",
            hint="start it again, then repeat the command to resume",
        )


def _refuse_without_means(session: _Session, run: PlannedRun) -> None:
    """End the study if a host has no process, file or disk space left for tare."""
    machine = session.machine_of(run)
    if (why := _still_lacking(machine.clock, machine.host_exhausted)) is not None:
        raise EnvironmentLacks(
            f"no run can be started: {why}", hint="free what is short, then repeat the command to resume"
        )


def _still_lacking(clock: Clock, lacks: Callable[[], str | None]) -> str | None:
    """Return what is still lacking after a while: better end the study with the cause than use up retries.

    The last look begins after that time, as a look at something that hangs may itself take longer.
    """
    deadline, last = Deadline(clock, _BACK_S), False
    while (why := lacks()) is not None and not last:
        last = deadline.passed
        clock.sleep(_POLL_S)
    return why


def _attempt(jobs: Sequence[Job], session: _Session) -> Kept:
    machine = session.machine_of(jobs[0].run)
    if isinstance(spec := session.plan.study.protocol, RotateSpec):
        if isinstance(choice := jobs[0].choice, TurnChoice):
            lengths = {"turn_ms": choice.turn_ms, "settle_ms": choice.settle_ms, "rounds": choice.rounds}
            spec = spec.model_copy(update=lengths)
        return attempt_generation(jobs, machine, session.observer, spec)
    if len(jobs) == 1:
        return (attempt(jobs[0], machine, session.observer),)
    if PROTOCOLS[session.plan.study.protocol.name].at_once:
        return attempt_duet(jobs, machine, session.observer)
    return attempt_stages(jobs, machine, session.observer)
