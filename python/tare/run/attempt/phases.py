"""The phases of a run, from an empty directory to a parsed measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from tare.databases import Secrets
from tare.deployments import Instance
from tare.deployments.directories import sync_and_evict
from tare.errors import NotComparable, RunFailed
from tare.record.emulated import union_of_sides
from tare.record.loaded_data import LoadedData
from tare.record.measurement import as_stored
from tare.record.node import NodeFacts
from tare.record.observation import Observation, Side
from tare.record.run_record import Outcome, Phase, RunRecord
from tare.record.usage import Usage
from tare.run.attempt.apart import (
    must_be_routed,
    note_counters,
    proxies_of,
    read_counters,
    remeasure_wire,
    take_hosts,
    wall_clocks_ahead_s,
    with_wire,
)
from tare.run.attempt.client import Started
from tare.run.attempt.context import RunContext, parameters_of, ports_for
from tare.run.attempt.job import Draft, Job, record_of
from tare.run.attempt.loading import check_output_of, contents_of, ensure_snapshot, last_output, loader_of
from tare.run.attempt.memory_kills import explained
from tare.run.attempt.pace import ALONE, Pace, Stopwatch
from tare.run.attempt.peers import peers_of, unproved_pairs
from tare.run.attempt.server import Sut
from tare.run.attempt.snapshot import copy_snapshot, size_of
from tare.run.attempt.teardown import Teardown
from tare.run.clock import Deadline
from tare.run.duet.placement import unpinned_work
from tare.run.events import Emulated, Observer
from tare.run.machine import Machine
from tare.run.monitoring.chronicle import ask_all
from tare.run.monitoring.monitors import Monitors
from tare.run.parity.compare import KnownVariables, as_sentence, changed_during, unlike_nodes
from tare.run.parity.declared import storage_mismatch, undeclared, undeclared_encryption, undeclared_peers
from tare.run.parity.observed import RunObserver, by_node, observation, opened_to, some_unseen, unproved, why_unseen
from tare.run.parity.references import known_variables_of
from tare.run.unreadable import read_or_failed
from tare.run.usage.cpu import Meter
from tare.storage import DataRequest
from tare.workloads import ClientCommand, Parameters

GRACE_S = 5.0
"""Time limit of a server's end in the teardown; short, since its data are thrown away."""


@dataclass(frozen=True)
class Ready:
    """Servers that answer, if there are any, and what is needed to load them."""

    context: RunContext
    sut: Sut | None
    parameters: Parameters
    run_id: str
    snapshot: LoadedData | None = None


@dataclass(frozen=True)
class Phases:
    """Drives one attempt and records its observations in `draft`.

    Running programs are registered in `stops`, since their output is complete only after their end; everything else
    to remove is registered in `teardown`.
    """

    job: Job
    machine: Machine
    secrets: Secrets
    watch: Stopwatch
    draft: Draft
    stops: Teardown
    teardown: Teardown
    monitors: Monitors
    observer: Observer
    pace: Pace = ALONE

    def drive(self) -> None:
        """Run all phases up to the cool-down. Raises on the first thing that voids the run."""
        self.conduct(self.make_ready())

    def make_ready(self) -> Ready:
        """Provision and load."""
        with self.watch.phase(Phase.PROVISION):
            context = self._provision()
            parameters = parameters_of(context.workload, context.settings, self.job.run.seed)
        with self.watch.phase(Phase.LOAD):
            context = self._with_data(context)
            sut = self._load(context)
            self._start_monitors(context, sut, parameters)
        return Ready(context, sut, parameters, self.job.run.id, self.draft.snapshot)

    def take_over(self, before: Ready) -> Ready:
        """Prepare the next stage: the servers and data of the stage before, with a new work directory and trace.

        The first stage still stops and removes what the later ones took over.
        """
        sut, was = before.sut, before.context
        with self.watch.phase(Phase.PROVISION):
            self.draft.continues = before.run_id
            self.draft.snapshot = before.snapshot
            data_mounts = tuple(was.data_mount_of(node) for node in was.nodes)
            context = replace(self._provision(), ports=was.ports, data_mounts=data_mounts, first_token=was.group)
            parameters = parameters_of(context.workload, context.settings, self.job.run.seed)
        with self.watch.phase(Phase.LOAD):
            if sut is not None:
                self._note_emulation("sut", sut.first.instance)
                sut.must_live("between two stages")
                self._read_back(sut)
            self._start_monitors(context, sut, parameters)
        return Ready(context, sut, parameters, self.job.run.id, before.snapshot)

    def _start_monitors(self, context: RunContext, sut: Sut | None, parameters: Parameters) -> None:
        self.stops.add("stopping the monitors", self.monitors.end)
        self.monitors.begin(context, {} if sut is None else sut.instances, parameters)

    def _read_back(self, sut: Sut) -> None:
        """Record each node's settings in force, address and paths to its peers."""
        effective = sut.effective()
        self.draft.effective = dict(effective[sut.first.node.name])
        self.draft.of_nodes("effective", effective)
        self.draft.of_nodes("address", {name: each.address for name, each in sut.instances.items()})
        if self.machine.site.nodes:
            peers = peers_of(self.machine, sut)
            self.draft.of_nodes("peers", peers)
            self.draft.notices += [
                f"the path between {pair} could not be observed" for pair in unproved_pairs(peers)
            ]

    def conduct(self, ready: Ready) -> None:
        """Run warm-up, measure and cool-down, in step with another attempt if the pace demands it."""
        context, sut, parameters = ready.context, ready.sut, ready.parameters
        run_dir = context.client_run_dir("measure")
        command = self.pace.measure(context.workload, parameters, context.target(sut), run_dir)
        under_way = None
        self.pace.meet()
        with self.watch.phase(Phase.WARM_UP, parameters.warmup_s), explained(context, sut, self.draft):
            self._warm_up(context, sut, parameters)
            if command.own_warmup_s:
                under_way = self._start("measure", command, context, sut, parameters.opens)
                self.pace.warming_up(context.workdir_for_client, under_way.watch_client)
                warm = Deadline(self.machine.clock, command.own_warmup_s)
                self._begin_measure(context, parameters, under_way=True)
                under_way.let_run(self.machine.clock, warm)
        self.pace.meet()
        with self.watch.phase(Phase.MEASURE, parameters.measure_s), explained(context, sut, self.draft):
            self._measure(context, sut, parameters, command, under_way)
        with self.watch.phase(Phase.COOL_DOWN, parameters.cooldown_s):
            self.machine.clock.sleep(parameters.cooldown_s)
            self.monitors.must_live()
            self.monitors.end()
            if sut is not None:
                self._read_server_events(sut)
            remeasure_wire(context, self.draft)

    def _read_server_events(self, sut: Sut) -> None:
        """Query what the servers did by themselves (compactions and the like), after monitoring has ended."""
        event_source = self.machine.event_sources.get(self.job.arm.settings.sut.database or "")
        began_at, ahead_s = self.watch.times[0].began_at, wall_clocks_ahead_s(self.draft)
        asked = ask_all(sut, event_source, self.machine.clock, began_at, ahead_s)
        self.draft.chronicle = asked.whole
        self.draft.of_nodes("chronicle", asked.of_nodes)
        self.draft.notes.update(asked.files)
        self.draft.notices += asked.notices

    def _provision(self) -> RunContext:
        """Prepare work directories, names, ports and a password for the attempt."""
        job, machine, settings = self.job, self.machine, self.job.arm.settings
        workdir = take_hosts(job, machine, self.draft, self.teardown)
        ports = ports_for(machine, settings, job.token)
        whole = (machine, settings, job.images, workdir, job.token, ports, self.secrets)
        return with_wire(RunContext(*whole, files=job.files), self.draft)

    def _load(self, context: RunContext) -> Sut | None:
        """Start the servers on the data and wait until they answer; `None` where the workload itself is the SUT."""
        if context.settings.sut.database is None:
            return None
        sut = context.start_sut()
        self._note_emulation("sut", sut.first.instance)
        self.stops.add("stopping the server", lambda: sut.stop(0.0 if context.database.safe_to_kill else GRACE_S))
        sut.wait_until_ready(self.machine.clock)
        must_be_routed(context, sut)
        self._read_back(sut)
        return sut

    def _with_data(self, context: RunContext) -> RunContext:
        """Put the loaded data in place: an identical copy of the snapshot, on the arm's storage."""
        loader, spec = loader_of(self.job.plan, context.settings), context.settings.sut.storage
        snapshot = None
        if contents_of(self.machine, loader, self.job.images).dataset:
            snapshot = ensure_snapshot(self.machine, loader, self.job.images)
            self.draft.snapshot = snapshot.recorded
        for node in context.nodes:
            workdir = context.workdir_of(node)
            host, storage = workdir.host, self.machine.storage(self.job.arm.settings.sut, workdir.host)
            data_bytes = 0 if snapshot is None else size_of(host, snapshot, node.part)
            request = DataRequest(node.below(workdir.storage), node.named(f"tare-{context.token}"), data_bytes)
            self.teardown.add("removing the data", partial(storage.clear, request))
            data_mount = storage.prepare(request, spec)
            context = replace(context, data_mounts=(*context.data_mounts, data_mount))
            if snapshot is None:
                workdir.empty_data(self.job.images.of_node(node.number), data_mount.path)
            else:
                copy_snapshot(host, snapshot, data_mount.path, node.part, warmed=spec.cache == "warmed")
                if data_mount.entry is not None and spec.cache == "warmed":
                    # The mount's own page cache, in addition to its server's.
                    sync_and_evict(host, data_mount.entry, warmed=True)
        return context

    def _warm_up(self, context: RunContext, sut: Sut | None, parameters: Parameters) -> None:
        target, run_dir = context.target(sut), context.client_run_dir("warm-up")
        command = context.workload.warm_up(parameters, target, run_dir)
        if command is None:
            return
        code = self._finish(self._start("warm-up", command, context, sut, parameters.opens), command, sut)
        check_output_of(context, "warm-up", command)
        if code != 0:
            raise RunFailed(f"the warm-up ended with {code}: {last_output(context.workdir_for_client, 'warm-up')}")

    def _measure(
        self,
        context: RunContext,
        sut: Sut | None,
        parameters: Parameters,
        command: ClientCommand,
        under_way: Started | None,
    ) -> None:
        """Run the measure phase. The output is parsed here, so that bad output fails this phase."""
        meter = Meter(
            context.workdir.host,
            self.machine.clock,
            () if sut is None else tuple(sut.instances.values()),
            context.storages,
            client_host=None if context.client_workdir is None else context.client_workdir.host,
            hosts=self.machine.site.nodes,
        )
        counted = read_counters(context, self.draft, sut)
        if under_way is None:
            self._begin_measure(context, parameters)
        started = under_way or self._start("measure", command, context, sut, parameters.opens)
        code = self._finish(started, command, sut, meter)
        note_counters(context, self.draft, sut, counted)
        self.monitors.end_measure()
        if sut is not None:
            sut.must_live("during the measure phase")
        stdout, stderr = context.workdir_for_client.bring_output("measure", self.job.staging, command.output_files)
        with read_or_failed("what the load generator printed"):
            measurement = as_stored(context.workload.parse(parameters, stdout, stderr, code))
        if (lasted_s := measurement.duration_s) is None:
            raise RunFailed("the load generator did not report how long it measured")
        if sut is not None and (unseen := unproved(self.draft.nodes, lasted_s)) is not None:
            self.draft.notices.append(unseen)
        if (few := some_unseen(self.draft.path, opened_to(sut, started.client, parameters.opens))) is not None:
            self.draft.notices.append(few)
        self._check_after(sut)
        self.draft.measurement = measurement
        if wrong := undeclared_encryption(self.job.arm.settings, measurement.encryption):
            raise NotComparable(f"{self.job.run.arm} does not match the study: {as_sentence(wrong)}")
        self._must_be_like_others()
        between = self.draft.between
        ahead_s = None if between is None else between.client_wall_ahead_s
        load = meter.load_of(lasted_s, measurement.started_at, ahead_s)
        self.draft.usage = replace(self.draft.usage or Usage(), driven=load)
        self.draft.duet = self.pace.share(measurement.windows, load)

    def _begin_measure(self, context: RunContext, parameters: Parameters, *, under_way: bool = False) -> None:
        self.monitors.must_live()
        self.monitors.begin_measure(context, parameters, under_way=under_way)

    def _start(
        self, name: str, command: ClientCommand, context: RunContext, sut: Sut | None, opens: int | None
    ) -> Started:
        """Start a client; it is also observed, unless all was seen of one before it."""
        client = context.start_client(name, command, sut)
        self._note_emulation("sut" if sut is None else "client", client.instance)
        stop = self.stops.add(f"stopping the client of {name}", lambda: client.stop(GRACE_S))
        self.monitors.client_started(name, client.instance, alone=sut is None)
        opens = opened_to(sut, client, opens)
        known = why_unseen(self.draft.nodes) is None and some_unseen(self.draft.path, opens) is None
        known = known and all(self.draft.parity.of(side) for side in context.settings.sides)
        run_observer = RunObserver(self.machine, sut, client, known=known, opens=opens)

        def lives() -> None:
            if sut is not None:
                sut.must_live(f"during {name}")
            self.monitors.must_live_still()

        def look(*, last: bool) -> None:
            self._look(run_observer, context, lives, last=last)

        return Started(client, stop, lives, look)

    def _finish(self, started: Started, command: ClientCommand, sut: Sut | None, meter: Meter | None = None) -> int:
        """Wait for a client to end and return its exit code."""
        client = started.client
        if meter is not None:
            meter.begin(client.instance)
            servers = () if sut is None else tuple(sut.instances.values())
            self.pace.client_started(servers, client.instance, command.own_warmup_s)

        def watch() -> None:
            started.watch()
            if meter is not None:
                meter.look()  # last: a glance at two hosts takes a while, in which a client may end

        code = client.wait(self.machine.clock, command.timeout_s, watch)
        if meter is None:
            self.pace.warmed_up(client.instance)
        started.look(last=True)
        if meter is not None:
            seen = [node.parity for node in self.draft.nodes.values()] or [self.draft.parity.sut]
            if used := meter.end(seen, self.draft.parity.client, proxies_of(self.draft)):
                self.draft.usage = used
            self.pace.client_ended()
        started.stop()
        return code

    def _note_emulation(self, side: Side, instance: Instance) -> None:
        """Record a side's emulation and report it at once, since figures are shown live."""
        if instance.emulated and side not in self.draft.emulated:
            self.draft.emulated = union_of_sides(self.draft.emulated, (side,))
            self.observer(Emulated(self.job.run, self.draft.emulated))

    def _look(
        self, run_observer: RunObserver, context: RunContext, lives: Callable[[], None], *, last: bool = False
    ) -> None:
        """Record what can be observed of both sides; `last`: the client has ended."""
        seen = run_observer.look(last=last)
        if seen is None:
            return
        lives()  # of a server that has disappeared nothing true was seen
        self.draft.parity, self.draft.path = seen.parity, seen.path
        self.draft.of_nodes("parity", seen.of_nodes)
        self.draft.of_nodes("path", seen.paths)
        self.draft.notices += seen.notices
        self._check_before(context)

    def _check_before(self, context: RunContext) -> None:
        """Refuse the run before it is measured if it differs in more than the study declares."""
        settings, wrong = self.job.arm.settings, list[str]()
        nodes = by_node(self._so_far(), self.draft.nodes)
        for node, alone in zip(context.nodes, nodes.values(), strict=True):
            wrong += undeclared(settings, alone.parity, alone.path, context.group)
            wrong += undeclared_peers(settings, node.name, self.draft.nodes.get(node.name, NodeFacts()).peers)
            wrong += storage_mismatch(
                settings.sut.storage, context.data_mount_of(node), context.data_dir(node), alone.parity.sut
            )
        if wrong := [*dict.fromkeys(wrong), *unpinned_work(self.job.slot, self.draft.path)]:
            raise NotComparable(f"{self.job.run.arm} does not match the study: {as_sentence(wrong)}")
        if unlike := unlike_nodes(nodes, self._variables()):
            raise NotComparable(f"the nodes of {self.job.run.arm} differ from each other: {as_sentence(unlike)}")
        self._must_be_like_others()

    def _check_after(self, sut: Sut | None) -> None:
        """Check that the same is in force after the measure phase: variables and limits can be set at run time.

        A program that was itself the SUT has ended by then, so only the host is compared.
        """
        nodes = by_node(self._so_far(), self.draft.nodes)
        hosts = {host.name: self.machine.facts_of(host) for host in self.machine.site.sut_hosts}
        seen, effective = dict[str, Observation | None](), dict[str, Mapping[str, str]]()
        if sut is not None:
            notices = self.draft.notices
            seen = {each.node.name: observation(each.deployment, each.instance, notices) for each in sut.servers}
            effective = dict(sut.effective())
            self.draft.parity = self.draft.parity.model_copy(update={"sut_after": seen[sut.first.node.name]})
            self.draft.of_nodes("parity_after", seen)
        moved_to = None if sut is None else self.pace.moved_to
        changed = list[str]()
        for name, before in nodes.items():
            again = before.parity.with_sut(seen.get(name) or before.parity.sut)
            host = self.draft.nodes.get(name, NodeFacts()).on or self.machine.site.sut.name
            after = {"host": hosts[host], "parity": again, "effective": effective.get(name, before.effective)}
            changed += changed_during(before, before.model_copy(update=after), self._variables(), moved_to)
        if changed:
            raise NotComparable(
                f"{self.job.run.arm} changed while it was measured: {as_sentence(dict.fromkeys(changed))}"
            )

    def _must_be_like_others(self) -> None:
        if unlike := self.machine.references.differences(self.job.plan.study, self._so_far(), self._variables()):
            raise NotComparable(as_sentence(unlike))

    def _so_far(self) -> RunRecord:
        return record_of(self.job, self.draft, self.watch.times, Outcome(ok=True))

    def _variables(self) -> KnownVariables:
        return known_variables_of(self.machine.databases, self.job.arm.settings.sut.database)
