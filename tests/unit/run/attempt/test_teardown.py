"""Undoing what a run has made, in time or early; and how much time its server is given."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from tare.databases.fake import FakeDatabase
from tare.deployments import Instance
from tare.deployments.fake import FakeDeployment
from tare.run.attempt.phases import GRACE_S
from tare.run.attempt.teardown import Teardown


def test_the_last_made_goes_first_and_no_failure_keeps_the_next() -> None:
    taken: list[str] = []
    steps = Teardown()
    steps.add("a", lambda: taken.append("a"))
    steps.add("b", lambda: 1 / 0)
    steps.add("c", lambda: taken.append("c"))
    assert steps.run() == ("b failed: division by zero",)
    assert taken == ["c", "a"]
    assert steps.run() == ()


def test_a_step_that_was_taken_early_is_not_taken_again_unless_it_failed() -> None:
    taken: list[str] = []

    def fail() -> None:
        taken.append("b")
        raise ZeroDivisionError("division by zero")

    steps = Teardown()
    early, failing = steps.add("a", lambda: taken.append("a")), steps.add("b", fail)
    early()
    with pytest.raises(ZeroDivisionError):
        failing()
    assert steps.run() == ("b failed: division by zero",)
    assert taken == ["a", "b", "b"]


@pytest.mark.parametrize(("safe_to_kill", "given"), [(False, GRACE_S), (True, 0.0)])
def test_a_server_is_given_time_to_end_unless_it_is_of_those_that_are_killed(
    rig: Any, plans: Any, *, safe_to_kill: bool, given: float
) -> None:
    graces: dict[str, list[float]] = {}

    class WatchedProcess(FakeDeployment):
        def stop(self, instance: Instance, grace_s: float = 10.0) -> None:
            graces.setdefault(instance.task.name.rpartition("-")[2], []).append(grace_s)
            super().stop(instance, grace_s)

    class Database(FakeDatabase):
        safe_to_kill: ClassVar[bool] = False

    Database.safe_to_kill = safe_to_kill
    rig.swap(deployments={"fake": WatchedProcess}, databases={"fake": Database()})
    (record,) = rig.execute(plans())
    assert record.outcome.ok
    assert graces["sut"][-1] == given  # the last: the server that loads the data was stopped before
    assert graces["measure"] == [GRACE_S]
    assert rig.leftovers == []
