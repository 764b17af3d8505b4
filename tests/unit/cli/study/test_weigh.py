"""`tare weigh` measures paths once, and anew in a store of its own."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tare.calibrate.summary import Identity
from tare.cli.study import weigh
from tare.cli.study.planned import planned
from tare.cli.study.weigh import newest_store
from tare.knowledge.unit_costs import STUDY
from tare.sites.layout import Layout


def test_the_newest_store_of_a_plan_is_the_one_with_the_highest_number(tmp_path: Path) -> None:
    plan = planned(STUDY, "quick", None, None)
    first = tmp_path / f"quick-{plan.digest[:12]}"
    assert newest_store(tmp_path, plan) == first
    for name in (f"{first.name}-2", f"{first.name}-10", f"{first.name}-old", "quick-ffffffffffff-99"):
        (tmp_path / name).mkdir()
    assert newest_store(tmp_path, plan) == tmp_path / f"{first.name}-10"


def test_nobody_else_may_write_where_events_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are put there, and run with the rights of whoever runs tare."""
    modes = []

    def measured(_host: Any, _engine: Any, folder: Path) -> tuple[tuple[()], tuple[()]]:
        modes.append(folder.stat().st_mode & 0o777)
        return (), ()

    monkeypatch.setattr(weigh, "measured_events", measured)
    monkeypatch.setattr(weigh, "local_engine", lambda: nullcontext(SimpleNamespace(client=None)))
    monkeypatch.setattr(weigh, "costs_dir", lambda *_: tmp_path / "machine")
    before = os.umask(0o000)
    try:
        weigh._events(Layout(tmp_path), cast("Identity", None))
    finally:
        os.umask(before)
    assert modes == [0o755]
