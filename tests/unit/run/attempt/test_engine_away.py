"""An engine that is away, or can start no container, is waited for; then the study ends, to be resumed."""

from __future__ import annotations

import math
from typing import Any, ClassVar
from unittest.mock import MagicMock

import pytest
from docker.errors import APIError, DockerException
from requests.exceptions import ConnectionError as Broken
from urllib3.exceptions import ProtocolError

from tare.deployments import Instance, Task
from tare.deployments.fake import FakeDeployment
from tare.errors import EngineSilent, EnvironmentLacks
from tare.plan.model import Plan
from tare.record.run_record import RunRecord
from tare.requirements import Requirement
from tare.requirements.engines import ENGINE
from tare.run.execute import execute
from tare.sites.engine import Client


class NeedsEngine(FakeDeployment):
    needs: ClassVar[tuple[Requirement, ...]] = (ENGINE,)


def _take(rig: Any, plan: Plan, into: list[RunRecord]) -> None:
    """Keep each record as it comes: what comes before the study's end counts."""
    for kept in execute(plan, rig.machine, rig.destination(), lambda _: None):
        into.extend(kept)


def test_an_engine_that_stopped_answering_ends_the_study_with_its_record_kept(
    rig: Any, plans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tare.run.execute._BACK_S", 0.0)
    monkeypatch.setattr("tare.run.execute._POLL_S", 0.01)

    class Gone:
        api = MagicMock()

        def version(self) -> dict[str, Any]:
            raise DockerException("connection refused")

    rig.swap(engine=Gone(), deployments={"fake": NeedsEngine})
    records: list[RunRecord] = []
    with pytest.raises(EnvironmentLacks, match=r"stopped answering: connection refused .*repeat the command"):
        _take(rig, plans(retries=3, arms=("a", "b"), fault="crash"), records)
    assert [record.outcome.ok for record in records] == [False]
    assert rig.leftovers == []


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            Broken(ProtocolError("Connection aborted.", ConnectionRefusedError(111, "Connection refused"))),
            "the container engine does not answer: Connection refused",
        ),
        (
            APIError("500 Server Error", explanation="layer does not exist"),
            "the container engine refused a call: layer does not exist",
        ),
    ],
)
def test_an_engine_that_does_not_answer_for_its_facts_is_the_reason(
    error: Exception, reason: str, rig: Any, plans: Any
) -> None:
    """Found by `make chaos` on a cluster: the reason was a tuple of Python's."""
    rig.swap(engine_facts=MagicMock(side_effect=error))
    (record,) = rig.execute(plans(retries=0))
    assert (record.outcome.ok, record.outcome.reason) == (False, reason)


def test_an_engine_that_was_away_when_the_study_began_costs_no_retries(
    rig: Any, plans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by `make chaos`: 304 attempts failed at once, as none asks for it again."""
    monkeypatch.setattr("tare.run.execute._BACK_S", 0.0)
    monkeypatch.setattr("tare.run.execute._POLL_S", 0.01)

    rig.swap(engine=None, deployments={"fake": NeedsEngine})
    records: list[RunRecord] = []
    with pytest.raises(EnvironmentLacks, match=r"stopped answering: none answered on local when the study started"):
        _take(rig, plans(retries=3, fault="crash"), records)
    assert len(records) == 1


def test_an_engine_that_hangs_is_asked_again_after_all_patience_went_into_one_look(
    rig: Any, plans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its /version answers only after the client's time limit of 60 s; the study ended after the first."""
    monkeypatch.setattr("tare.run.execute._BACK_S", 0.0)
    monkeypatch.setattr("tare.run.execute._POLL_S", 0.01)
    engine = MagicMock()
    engine.version.side_effect = [DockerException("Read timed out"), {}, {}]  # the last for the client's side
    rig.swap(engine=engine, deployments={"fake": NeedsEngine})
    (record,) = rig.execute(plans(retries=0, fault="crash"))
    assert not record.outcome.ok
    assert engine.version.call_count == 3


def test_a_misuse_of_the_engine_s_client_keeps_its_traceback(rig: Any, plans: Any) -> None:
    rig.swap(observe_path=MagicMock(side_effect=DockerException("no such option")))
    (record,) = rig.execute(plans(retries=0))
    assert record.outcome.reason == "DockerException: no such option"
    assert "observe_path" in (rig.staging / f"{record.run_id}-1" / "traceback.txt").read_text()


def test_an_engine_that_is_restarted_is_waited_for(rig: Any, plans: Any) -> None:
    class Back:
        """Answers on an old connection all the time, and on a new one from its second time on."""

        asked = new = 0

        @property
        def api(self) -> Any:
            self.new += 1
            return MagicMock()

        def version(self) -> dict[str, Any]:
            self.asked += 1
            if self.new == 1:
                raise DockerException("connection refused")
            return {}

    engine = Back()
    rig.swap(engine=engine, deployments={"fake": NeedsEngine})
    first, second = rig.execute(plans(retries=1, fault="crash"))
    assert (first.outcome.ok, second.outcome.ok) == (False, False)
    assert engine.asked >= 2


class WithoutContainerd(Client):
    """An engine that listed its containerd, and does again after it was asked so many times; `None`: never."""

    had_containerd = True

    def __init__(self, back_after: int | None) -> None:
        self.api: Any = MagicMock()
        self.asked, self.back_after = 0, back_after

    def version(self, *_args: Any, **_kwargs: Any) -> dict[str, Any]:
        self.asked += 1
        back = self.back_after is not None and self.asked > self.back_after
        parts = ["Engine", *(["containerd"] if back else []), "runc"]
        return {"ApiVersion": "1.41", "Components": [{"Name": name} for name in parts]}


@pytest.mark.parametrize("back_after", [2, None])
def test_an_engine_whose_containerd_is_away_is_waited_for_and_costs_no_retries(
    back_after: int | None, rig: Any, plans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by `make chaos`: 16 attempts failed within seconds, as dockerd answered but could start nothing."""

    class Refused(NeedsEngine):
        def start(self, task: Task) -> Instance:
            if engine.asked <= (math.inf if back_after is None else back_after):
                raise EngineSilent("the engine on fake does not answer")
            return super().start(task)

    engine = WithoutContainerd(back_after)
    monkeypatch.setattr("tare.run.execute._BACK_S", 0.0 if back_after is None else 30.0)
    monkeypatch.setattr("tare.run.execute._POLL_S", 0.01)
    rig.swap(engine=engine, deployments={"fake": Refused})
    records: list[RunRecord] = []
    if back_after is None:
        with pytest.raises(EnvironmentLacks, match=r"stopped answering: its containerd does not answer .*repeat"):
            _take(rig, plans(retries=3), records)
        assert [record.outcome.ok for record in records] == [False]
    else:
        _take(rig, plans(retries=3), records)
        assert [record.outcome.ok for record in records] == [False, True]
