"""Load a data directory: initialise, serve, load, stop cleanly, store as a snapshot."""

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
from tare.run.attempt.death import last_output as last_output_of
from tare.run.attempt.directory import MOST_OUTPUT_BYTES, WorkDirectory, closed_to_others, take_work_directory
from tare.run.attempt.raw_files import new_secrets
from tare.run.attempt.server import Sut, nodes_of
from tare.run.attempt.snapshot import Contents, Shelf, Snapshot
from tare.run.attempt.spread_snapshot import SpreadShelf
from tare.run.attempt.teardown import Teardown
from tare.run.machine import Machine
from tare.sites import Host
from tare.sites.reading import ending
from tare.study.model import ArmSettings
from tare.study.values import NetworkKind
from tare.workloads import ClientCommand

INITIALISE_S = 300.0


def contents_of(machine: Machine, settings: ArmSettings, images: Images) -> Contents:
    """Return what an arm's loaded data depend on."""
    workload = machine.workloads[settings.workload_name]
    return Contents(
        image_digest=images.sut.digest,
        database=settings.sut.database,
        settings=settings.sut.settings,
        workload=settings.workload_name,
        dataset=_dataset_over(
            workload.dataset(parameters_of(workload, settings)), settings.sut.nodes, machine.site.nodes
        ),
    )


def _dataset_over(dataset: Mapping[str, str | int], nodes: int, hosts: Sequence[Host]) -> Mapping[str, str | int]:
    """Distinguish data sets by their number of nodes and by their hosts.

    A data set on one node keeps the name that it had before there were clusters.
    """
    if not dataset or nodes == 1:
        return dataset
    over = {"hosts": " ".join(host.name for host in hosts)} if hosts else {}
    return {**dataset, "nodes": nodes, **over}


def shelf_of(machine: Machine) -> Shelf | SpreadShelf:
    """Return the store of snapshots on the SUT's host, or on the hosts of its nodes."""
    shelves = tuple(
        Shelf(host, machine.ledger_on(host), machine.layout_on(host)) for host in machine.site.sut_hosts
    )
    return SpreadShelf(shelves) if machine.site.nodes else shelves[0]


def loader_of(plan: Plan, settings: ArmSettings) -> ArmSettings:
    """Return the arm that loads for all that share the data: the baseline if possible, with the fewest layers."""
    names = dict.fromkeys(plan.study.baseline_of(arm.name) for arm in plan.study.arms)
    baselines = (plan.arm(name).settings for name in names)
    return without_machines(next((each for each in baselines if _same_data(each, settings)), settings))


def without_machines(settings: ArmSettings) -> ArmSettings:
    """Return the same arm deployed bare in place of virtual machines.

    The data of a virtual machine are made outside of it and copied onto its disk; the loader needs no machine
    either.
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
    """Return the snapshot that `settings` starts from; load it with these settings if there is none."""
    contents = contents_of(machine, settings, images)
    return shelf_of(machine).find(contents) or _load(machine, _without_disk_limit(settings), images, contents)


def _without_disk_limit(settings: ArmSettings) -> ArmSettings:
    """Remove the disk limit: it changes no bits of the data and would slow down a large load."""
    limits = settings.sut.limits.model_copy(update={"disk_iops": None})
    return settings.model_copy(update={"sut": settings.sut.model_copy(update={"limits": limits})})


def _load(machine: Machine, settings: ArmSettings, images: Images, contents: Contents) -> Snapshot:
    token = make_token("load", contents.key, os.getpid())
    teardown = Teardown()
    workdir = workdir_on(machine, machine.site.sut, token)
    client_workdir = client_workdir_for(machine, settings, token)
    try:
        for each in (workdir, *other_workdirs(machine, settings, token)):
            closed = closed_to_others(machine.facts_of(each.host), machine.facts_of_engines(settings, each.host))
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
            words = last_output(context.workdir_of(node), node.name)
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
    """Run the workload's load command, after its setup statements, to the end. Raises `RunFailed` on an error."""
    parameters, run_dir = parameters_of(context.workload, context.settings), context.client_run_dir("load")
    command = context.workload.load(parameters, context.target(sut), run_dir)

    def watch() -> None:
        if sut is not None:
            sut.must_live("while the data was loaded")

    _run_setup(sut, context.settings.sut.database, command.setup_statements)
    client = context.start_client("load", command, sut)
    teardown.add("stopping the loader", client.stop)
    code = client.wait(context.machine.clock, command.timeout_s, watch)
    check_output_of(context, "load", command)
    if code != 0:
        raise RunFailed(f"loading the data ended with {code}: {last_output(context.workdir_for_client, 'load')}")
    client.stop()


def _run_setup(sut: Sut | None, database: str | None, statements: Sequence[str]) -> None:
    if not statements:
        return
    if sut is None or database is None:
        raise RunFailed("there is no server to prepare for the load")
    for statement in statements:
        execute_statement(database, sut.first.plan, sut.first.inside, statement)


def check_output_of(context: RunContext, name: str, command: ClientCommand) -> None:
    """Let the command check its own output, where it can. Raises `RunFailed`."""
    if command.check_output is not None:
        workdir = context.workdir_for_client
        output = workdir.output(name)
        printed = [ending(workdir.host, path, MOST_OUTPUT_BYTES) for path in (output.stdout, output.stderr)]
        command.check_output(*(each.decode(errors="replace") for each in printed))


def last_output(workdir: WorkDirectory, name: str) -> str:
    """Return the last lines of a program's output in the attempt's work directory, for a message."""
    return last_output_of(workdir.host, workdir.output(name))
