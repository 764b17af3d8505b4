"""`tare weigh` measures paths once, and anew in a store of its own."""

from __future__ import annotations

from pathlib import Path

from tare.cli.study.planned import planned
from tare.cli.study.weigh import newest_store
from tare.knowledge.unit_costs import STUDY


def test_the_newest_store_of_a_plan_is_the_one_with_the_highest_number(tmp_path: Path) -> None:
    plan = planned(STUDY, "quick", None, None)
    first = tmp_path / f"quick-{plan.digest[:12]}"
    assert newest_store(tmp_path, plan) == first
    for name in (f"{first.name}-2", f"{first.name}-10", f"{first.name}-old", "quick-ffffffffffff-99"):
        (tmp_path / name).mkdir()
    assert newest_store(tmp_path, plan) == tmp_path / f"{first.name}-10"
