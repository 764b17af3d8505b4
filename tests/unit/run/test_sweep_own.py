"""What a teardown could not remove, as the engine was away, goes when the study ends. Found by `make chaos`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tare.deployments.sweep import Swept
from tare.errors import EnvironmentLacks
from tare.run.events import Event, Notice
from tare.run.execute import execute
from tare.run.local import Engine, leave_clusters, sweep_abandoned, sweep_own
from tare.sites import Output
from tare.sites.layout import Layout, make_home
from tare.sites.ledger import Kind
from tare.sites.local import LocalHost
from tare.sites.process import alive, to_ident
from tare.sites.sqlite_ledger import SqliteLedger


def test_only_what_this_process_noted_and_does_not_keep_is_removed(tmp_path: Path) -> None:
    host, ledger = LocalHost(), SqliteLedger(tmp_path / "ledger.sqlite")
    output = Output(str(tmp_path / "out"), str(tmp_path / "err"))
    own, kept = (host.start(["sleep", "600"], output=output) for _ in range(2))
    ledger.note(Kind.PROCESS, to_ident(own))
    ledger.note(Kind.PROCESS, to_ident(kept), keep=True)
    try:
        removed = sweep_own(host, Engine(None, "none"), ledger)
        assert removed == (f"removed what a failed teardown had left: process {to_ident(own)} on local",)
        assert (alive(host, own), alive(host, kept)) == (False, True)
        assert [entry.ident for entry in ledger.entries()] == [to_ident(kept)]
    finally:
        os.kill(kept.pid, 9)


def test_a_namespace_of_a_cluster_is_no_remains_of_a_failed_teardown(tmp_path: Path) -> None:
    """It lasts as long as the study. Every study in pods ended with the sentence that a teardown had failed."""
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    ledger.note(Kind.NAMESPACE, "tare-0123456789ab@cluster")
    assert sweep_own(LocalHost(), Engine(None, "none"), ledger) == ()
    assert [entry.kind for entry in ledger.entries()] == [Kind.NAMESPACE]


def test_it_is_told_at_the_end_of_a_study(rig: Any, plans: Any) -> None:
    events: list[Event] = []
    rig.swap(sweep_own=lambda: ("removed container x on local",))
    for _ in execute(plans(), rig.machine, rig.destination(), events.append):
        pass
    assert Notice("removed container x on local") == events[-1]


def test_what_could_not_be_removed_is_not_called_removed() -> None:
    swept = Swept(removed=["path /a on local"], failed=["path /b on local could not be removed: busy"])
    assert swept.sentences("remains") == (
        "removed remains: path /a on local",
        "path /b on local could not be removed: busy",
    )


def test_a_ledger_that_cannot_be_read_at_the_end_of_a_study_raises_nothing(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    (tmp_path / "ledger.sqlite").mkdir()
    with pytest.raises(EnvironmentLacks):
        ledger.entries()
    assert leave_clusters(LocalHost(), ledger) == ()


def test_the_start_of_a_run_removes_files_that_a_killed_tare_was_writing(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "home")
    make_home(layout.home)
    layout.machines.mkdir()
    old, new = (layout.machines / f"accelerator.json.{digit * 32}" for digit in "ab")
    for path in (old, new):
        path.write_text("{}")
    os.utime(old, (0, 0))
    removed = sweep_abandoned(LocalHost(), Engine(None, "none"), SqliteLedger(layout.ledger), layout)
    assert removed == (f"removed remains of a killed run: path {old} on local",)
    assert (old.exists(), new.exists()) == (False, True)
