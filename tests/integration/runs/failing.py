"""One run of a study to which something is done while it is measured, for integration tests."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from tare.cli.study.planned import planned
from tare.record.run_record import Phase, RunRecord
from tare.run.attempt.server import Server
from tare.run.events import Event, PhaseStarted
from tare.run.execute import Destination, execute
from tare.run.local import local_engine, local_machine
from tare.run.resume import StudyState
from tare.sites.layout import default_layout
from tare.sites.sqlite_ledger import SqliteLedger

INTO_IT_S = 1.5


def first_run(
    study: str, tmp_path: Path, harm: Callable[[], None] | None = None, into_it_s: float = INTO_IT_S
) -> RunRecord:
    """The record of a study's first run; `harm` is done to it a moment into its measure phase."""
    path = tmp_path / "study.yaml"
    path.write_text(study)
    plan = planned(str(path), None, 1, None)
    timers = []

    def observe(event: Event) -> None:
        if isinstance(event, PhaseStarted) and event.phase is Phase.MEASURE and harm is not None:
            timers.append(threading.Timer(into_it_s, harm))
            timers[-1].start()

    staging = tmp_path / "staging"
    staging.mkdir()
    with local_engine() as engine:
        machine = local_machine(plan, engine)
        (record,) = next(
            execute(plan, machine, Destination(tmp_path.name, StudyState.from_records(()), staging), observe)
        )
    for timer in timers:
        timer.join()
    return record


def assert_told(record: RunRecord, *words: str) -> None:
    """Failed while it was measured, in one line with these words, and nothing of it is left."""
    reason = record.outcome.reason or ""
    assert not record.outcome.ok
    assert record.outcome.failed_in is Phase.MEASURE, reason
    assert "\n" not in reason
    for word in words:
        assert word in reason, reason
    left = SqliteLedger(default_layout().ledger).entries()
    assert not [entry for entry in left if not entry.keep and record.run_id in entry.ident]


def signalled(servers: list[Server], number: signal.Signals) -> Callable[[], None]:
    """Harm to the server that was started last, whichever that will be."""
    return lambda: os.kill(servers[-1].instance.process.pid, number)


def filled(servers: list[Server]) -> Callable[[], None]:
    """Something else takes all the room that the data's file system has."""

    def fill() -> None:
        server = servers[-1]
        fill_up(Path(f"/proc/{server.instance.process.pid}/root{server.plan.data_dir}"))

    return fill


def fill_up(directory: Path) -> None:
    """Write until there is no room for more."""
    with (directory / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 20))
