"""Plans and records to fill stores with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.record.run_record import Outcome, Phase, PhaseTime, RunRecord
from tare.store import Writer, resume_store
from tare.study.model import Arm, ArmSettings, ClientSpec, Study, SutSpec
from tare.study.protocol_spec import FixedSpec


def make_plan(
    *, seed: int = 1, scale: str = "full", question: str = "Which?", measure_s: float = 1.0,
              **changes: Any) -> Plan:  # fmt: skip
    """Two arms in two blocks; `changes`: of the protocol, and `margins`."""
    margins = changes.pop("margins", {})
    settings = ArmSettings(
        sut=SutSpec(image="tar:fake", deployment="fake", database="fake"),
        client=ClientSpec(image="tar:fake", deployment="fake"),
        workload_name="fake",
        workload={"warmup_s": 0.0, "measure_s": measure_s, "window_s": 1.0, "cooldown_s": 0.0},
    )
    study = Study(
        name="tiny",
        scale=scale,
        question=question,
        source=None,
        arms=tuple(Arm(name=name, levels={"arm": name}, settings=settings) for name in ("a", "b")),
        baseline="a",
        factors={"arm": ("a", "b")},
        protocol=FixedSpec(**{"name": "fixed", "blocks": 2, "control": False, **changes}),
        margins=margins,
        published=(),
        deviations=("It is small.",),
        text="format: 1\nname: tiny\n",
    )
    return expand(study, seed)


def make_record(plan: Plan, index: int, *, attempt: int = 1, ok: bool = True, **parts: Any) -> RunRecord:
    """A record with something in every field."""
    run = plan.runs[index]
    failure = Outcome(ok=False, reason="told to fail", failed_in=Phase.MEASURE)
    whole: dict[str, Any] = {
        "run_id": run.id,
        "attempt": attempt,
        "study": plan.study.name,
        "scale": plan.study.scale,
        "plan_digest": plan.digest,
        "block": run.block,
        "position": run.position,
        "index": run.index,
        "arm": run.arm,
        "levels": {"arm": run.arm},
        "settings": plan.arm(run.arm).settings.model_dump(mode="json"),
        "seed": run.seed,
        "phases": (PhaseTime(phase=Phase.MEASURE, began_at=1_700_000_000.5, seconds=1.25, monotonic_s=7.5),),
        "host": {"name": "local", "cpus": 2, "governor": None},
        "engine": {"version": "20.10.24"},
        "images": {"sut": {"digest": "ab"}, "client": {"digest": "ab"}},
        "snapshot": {"key": "k", "made_by": {"sut": {"deployment": "fake"}}},
        "effective": {"port": "3306", "ein Wert": "größer"},
        "parity": {"sut": {"cpus_allowed": "0"}, "client": None},
        "path": {"hop": "loopback"},
        "monitors": {"probe": {"interval_s": 0.1, "samples": 12, "cpu_s": 0.003}},
        "measurement": {"throughput_per_s": 1234.5678901234567, "unit": "requests", "windows": [{"end_s": 1.0}]}
        if ok
        else None,
        "raw": ("measure.stdout",),
        "notices": ("a notice",),
        "outcome": Outcome(ok=True) if ok else failure,
    }
    return RunRecord.model_validate({**whole, **parts}, strict=False)


def stage(writer: Writer, record: RunRecord, content: str = "out\n") -> None:
    """Put the raw files that a record names into the store's staging directory."""
    directory = writer.staging / f"{record.run_id}-{record.attempt}"
    directory.mkdir(parents=True)
    for name in record.raw:
        (directory / name).write_text(content)


@pytest.fixture
def plan() -> Plan:
    """A plan of four runs."""
    return make_plan()


@pytest.fixture
def make() -> Callable[..., RunRecord]:
    """Makes records."""
    return make_record


@pytest.fixture
def plan_of() -> Callable[..., Plan]:
    """Makes plans."""
    return make_plan


@pytest.fixture
def staged() -> Callable[..., None]:
    """Stages raw files."""
    return stage


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a store is to be."""
    return tmp_path / "store"


@pytest.fixture
def committed(path: Path, plan: Plan) -> RunRecord:
    """The one record of the store at `path`."""
    record = make_record(plan, 0)
    with resume_store(path, plan) as writer:
        stage(writer, record)
        writer.commit(record)
    return record
