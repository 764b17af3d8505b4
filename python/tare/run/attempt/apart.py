"""What an attempt does more where its client stands on another host than its server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tare.run.attempt.context import RunContext, client_workdir_for
from tare.run.attempt.directory import clear_work_directory, make_work_directory
from tare.run.attempt.job import Draft
from tare.run.attempt.server import Sut
from tare.run.attempt.teardown import Teardown
from tare.run.between.clocks import must_agree
from tare.run.between.wire import counters, growth
from tare.run.record import to_tree
from tare.study.values import NetworkKind

Counters = Mapping[str, Mapping[str, int | None]]
"""Side → counters of its host: see `run.between.wire.counters`. Empty where one host plays both parts."""


def with_client_workdir(context: RunContext, draft: Draft, teardown: Teardown) -> RunContext:
    """Add a work directory on the client's host, and measure the wire; unchanged on a shared host."""
    machine = context.machine
    part = machine.client_part
    workdir = client_workdir_for(machine, context.settings, context.token)
    if part is None or workdir is None:
        return context
    draft.client_host, draft.client_engine = part.host_facts(), part.engine_facts()
    teardown.add("removing the client's work directory", lambda: clear_work_directory(workdir, part.ledger))
    make_work_directory(workdir, part.ledger)
    if machine.wire is not None:
        draft.between = machine.wire.before(context.workdir.path)
    return replace(context, client_workdir=workdir)


def sound_again(context: RunContext, draft: Draft) -> None:
    """Whether the clocks of both hosts can be laid on one over the whole run; `RunFailed` where they cannot."""
    wire, before = context.machine.wire, draft.between
    if wire is None or before is None:
        return
    draft.between = sounded = wire.after(context.workdir.path, before)
    if sounded.after is not None:
        must_agree(sounded.before.clocks, sounded.after.clocks, (sounded.sut, sounded.client))


def counted_so_far(context: RunContext, draft: Draft, sut: Sut | None) -> Counters:
    """TCP's counters are the server's own where it has a network namespace; of a client they are its host's."""
    wire = context.machine.wire
    if wire is None or draft.between is None:
        return {}
    boxed = sut is not None and context.settings.sut.network is not NetworkKind.HOST
    pid = sut.first.instance.process.pid if sut is not None and boxed else None
    return {
        "sut": counters(wire.sut, wire.devices["sut"].device, pid),
        "client": counters(wire.client, wire.devices["client"].device, None),
    }


def note_counters(context: RunContext, draft: Draft, sut: Sut | None, before: Counters) -> None:
    """Keep what has been counted since `before`, with the interface of each host."""
    wire, between = context.machine.wire, draft.between
    if wire is None or between is None:
        return
    sides = {
        side: {**to_tree(wire.devices[side]), "counters": growth(before[side], after)}
        for side, after in counted_so_far(context, draft, sut).items()
    }
    draft.between = replace(between, sides=sides)
