"""Making a loaded data directory: initialise, serve, load, stop cleanly, keep."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from tare.databases.abilities import execute_statement
from tare.deployments import MACHINES
from tare.errors import RunFailed
from tare.plan.model import Plan
from tare.run.attempt.context import (
    Images,
    RunContext,
    client_workdir_for,
    make_token,
    other_workdirs,
    parameters_of,
    ports_for,
    workdir_on,
)
from tare.run.attempt.death import last_words as words_of
from tare.run.attempt.directory import WorkDirectory, closed_to_others, take_work_directory
from tare.run.attempt.raw_files import new_secrets
from tare.run.attempt.server import Sut, nodes_of
from tare.run.attempt.snapshot import Contents, Shelf, Snapshot
from tare.run.attempt.spread_snapshot import SpreadShelf
from tare.run.attempt.teardown import Teardown
from tare.run.machine import Machine
from tare.sites import Host
from tare.study.model import ArmSettings
from tare.study.values import NetworkKind
from tare.workloads import ClientCommand

INITIALISE_S = 300.0


def contents_of(machine: Machine, settings: ArmSettings, images: Images) -> Contents:
    """What an arm's loaded data depends on."""
    workload = machine.workloads[settings.workload_name]
    return Contents(
        image_digest=images.sut.digest,
        database=settings.sut.database,
        settings=settings.sut.settings,
        workload=settings.workload_name,
        dataset=_spread(
            workload.dataset(parameters_of(workload, settings)), settings.sut.nodes, machine.site.nodes
        ),
    )


def _spread(dataset: Mapping[str, str | int], nodes: int, hosts: Sequence[Host]) -> Mapping[str, str | int]:
    """A data set over several nodes is another one, and over other hosts too.

    Over one it is called what it was before there were more.
    """
    if not dataset or nodes == 1:
        return dataset
    over = {"hosts": " ".join(host.name for host in hosts)} if hosts else {}
    return {**dataset, "nodes": nodes, **over}


def shelf_of(machine: Machine) -> Shelf | SpreadShelf:
    """Where the snapshots of the SUT's host stand, or of its nodes' hosts."""
    shelves = tuple(
        Shelf(host, machine.ledger_on(host), machine.layout_on(host)) for host in machine.site.sut_hosts
    )
    return SpreadShelf(shelves) if machine.site.nodes else shelves[0]


def loader_of(plan: Plan, settings: ArmSettings) -> ArmSettings:
    """The arm that loads for all that share the data: the baseline where it does, for it has the least around it.

    Which one it is makes no difference to the bits; the snapshot says which one it was.
    """
    names = dict.fromkeys(plan.study.baseline_of(arm.name) for arm in plan.study.arms)
    baselines = (plan.arm(name).settings for name in names)
    return without_machines(next((each for each in baselines if _same_data(each, settings)), settings))


def without_machines(settings: ArmSettings) -> ArmSettings:
    """The same bare: a virtual machine's data are made outside of it, and copied onto its disk.

    Whoever loads them needs no machine either.
    """
    sut, client = settings.sut, settings.client
    bare = {"deployment": "bare", "network": NetworkKind.HOST}
    if sut.deployment in MACHINES:
        sut = sut.model_copy(update={**bare, "vm": None})
    if client is not None and client.deployment in MACHINES:
        client = client.model_copy(update=bare)
    return settings.model_copy(update={"sut": sut, "client": client})


def _same_data(one: ArmSettings, other: ArmSettings) -> bool:
    return (
        one.sut.image == other.sut.image
        and one.sut.database == other.sut.database
        and one.sut.nodes == other.sut.nodes
        and one.sut.settings == other.sut.settings
        and one.workload_name == other.workload_name
        and one.workload == other.workload
    )


def ensure_snapshot(machine: Machine, settings: ArmSettings, images: Images) -> Snapshot:
    """The snapshot that `settings` starts from, loaded by these very settings when there is none."""
    contents = contents_of(machine, settings, images)
    return shelf_of(machine).find(contents) or _load(machine, _unhindered(settings), images, contents)


def _unhindered(settings: ArmSettings) -> ArmSettings:
    """What a disk may do changes no bits of the data, and would make a large load last."""
    limits = settings.sut.limits.model_copy(update={"disk_iops": None})
    return settings.model_copy(update={"sut": settings.sut.model_copy(update={"limits": limits})})


def _load(machine: Machine, settings: ArmSettings, images: Images, contents: Contents) -> Snapshot:
    token = make_token("load", contents.key, os.getpid())
    teardown = Teardown()
    workdir = workdir_on(machine, machine.site.sut, token)
    client_workdir = client_workdir_for(machine, settings, token)
    try:
        for each in (workdir, *other_workdirs(machine, settings, token)):
            closed = closed_to_others(machine.facts_of(each.host), machine.facts_of_engine(settings, each.host))
            ledger = machine.ledger_on(each.host)
            take_work_directory(each, ledger, teardown, named=bool(machine.parts), closed=closed)
        ports = ports_for(machine, settings, token)
        secrets = new_secrets(tls=settings.sut.tls)
        context = RunContext(
            machine, settings, images, workdir, token, ports, secrets, client_workdir=client_workdir
        )
        for node in context.nodes:
            place = context.workdir_of(node)
            place.empty_data(images.of_node(node.number), node.below(place.data))
        if settings.sut.database is None:
            load_data(context, None, teardown)
        else:
            _initialise(context, teardown)
            _fill(context, teardown)
        made_by = {
            side: {"deployment": placement.deployment, "network": placement.network.value}
            for side, placement in settings.sides.items()
        }
        shelf = shelf_of(machine)
        if isinstance(shelf, SpreadShelf):
            return shelf.keep(contents, [context.workdir_of(node).data for node in context.nodes], made_by)
        return shelf.keep(contents, workdir.data, made_by, [node.part for node in context.nodes])
    finally:
        teardown.run()


def _initialise(context: RunContext, teardown: Teardown) -> None:
    for node in nodes_of(context.settings.sut.nodes, "initialise"):
        one_shot = context.start_server(node, initialise=True)
        teardown.add("stopping the initialisation", one_shot.stop)
        code = one_shot.deployment.wait(one_shot.instance, INITIALISE_S)
        if code != 0:
            words = last_words(context.workdir_of(node), node.name)
            raise RunFailed(f"initialising the data directory ended with {code}: {words}")
        one_shot.stop()


def _fill(context: RunContext, teardown: Teardown) -> None:
    clock = context.machine.clock
    sut = context.start_sut()
    teardown.add("stopping the server", sut.stop)
    sut.wait_until_ready(clock)
    load_data(context, sut, teardown)
    sut.shut_down()
    sut.stop()


def load_data(context: RunContext, sut: Sut | None, teardown: Teardown) -> None:
    """Run the workload's load command, and what comes before it, to the end; `RunFailed` when it ends in error."""
    parameters, run_dir = parameters_of(context.workload, context.settings), context.client_run_dir("load")
    command = context.workload.load(parameters, context.target(sut), run_dir)

    def watch() -> None:
        if sut is not None:
            sut.must_live("while the data was loaded")

    _tell(sut, context.settings.sut.database, command.setup_statements)
    client = context.start_client("load", command, sut)
    teardown.add("stopping the loader", client.stop)
    code = client.wait(context.machine.clock, command.timeout_s, watch)
    judge(context, "load", command)
    if code != 0:
        raise RunFailed(f"loading the data ended with {code}: {last_words(context.workdir_for_client, 'load')}")
    client.stop()


def _tell(sut: Sut | None, database: str | None, statements: Sequence[str]) -> None:
    if not statements:
        return
    if sut is None or database is None:
        raise RunFailed("there is no server to prepare for the load")
    for statement in statements:
        execute_statement(database, sut.first.plan, sut.first.inside, statement)


def judge(context: RunContext, name: str, command: ClientCommand) -> None:
    """Have the command check its output, where it does so; raises `RunFailed`."""
    if command.check_output is not None:
        workdir = context.workdir_for_client
        output = workdir.output(name)
        printed = [workdir.host.read(path) or b"" for path in (output.stdout, output.stderr)]
        command.check_output(*(each.decode(errors="replace") for each in printed))


def last_words(workdir: WorkDirectory, name: str) -> str:
    """The last lines that a program of an attempt wrote in its work directory, for a message."""
    return words_of(workdir.host, workdir.output(name))
