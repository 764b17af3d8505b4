"""Studies of a calibration made up: what sysbench and the kernel would have told, with effects of known size."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tare.calibrate.injections import LOG_NAME
from tare.calibrate.kinds import KINDS, TRACE
from tare.calibrate.outcome import CalibrationStudy, ContrastResult, Estimator, by_product, outcome
from tare.plan.expand import expand
from tare.record.host_facts import HostFacts
from tare.record.measurement import Measurement
from tare.record.observation import Parity
from tare.record.run_record import Outcome, Phase, PhaseTime, RunRecord
from tare.record.usage import Usage
from tare.study.model import ArmSettings

NOISE = 0.015
"""Standard deviation of a run's log throughput."""
MEASURE_S = 2.0
Log = dict[str, str]
"""Run → what its proxy has written."""


def effect_of(settings: ArmSettings) -> Mapping[str, float]:
    """What the settings of an arm really do: `cost` of a transaction, share of `cpu` time, share of time `held`."""
    queries = int(settings.workload.get("point_selects", 100))
    quota = settings.sut.limits.cpu_quota
    limit = 0.905 if settings.sut.deployment == "bare-900-reads" else 1.0
    return {
        "cost": queries / 100,
        "cpu": limit if quota is None else quota + 0.023,  # as was measured: 0.9 gave 0.923
        "held": 0.12 if settings.sut.deployment == "bare-behind-delay" else 0.001,
    }


class World:
    """A machine on which studies run in no time; each run starts anew and so has a speed of its own."""

    def __init__(self, seed: int, noise: float = NOISE, drift: float = 0.0) -> None:
        self.rng = np.random.default_rng(seed)
        self.noise = noise
        self.drift = drift
        """Log speed that is lost from one run to the next."""
        self.logs: Log = {}
        self.reads: dict[str, float] = {}
        """Run → reads a second."""

    def make(self, name: str, number: int, directory: Path) -> CalibrationStudy:
        """All runs of a study."""
        kind = KINDS[name]
        plan = expand(kind.make(number))
        records = []
        for run in plan.runs:
            arm = plan.arm(run.arm)
            speed = math.exp(self.rng.normal(0, self.noise) - self.drift * run.index)
            records.append(self.record(run.model_dump(), arm.settings, speed))

        def raw(record: RunRecord, file: str) -> Path:
            path = directory / f"{name}-{number}-{record.run_id}-{file.replace('/', '-')}"
            if file == TRACE and name == "io":
                write_trace(path, self.reads[record.run_id])
            if file == LOG_NAME and name == "delay":
                path.write_text(self.logs[record.run_id])
            return path

        return CalibrationStudy(name, number, kind, plan.study, tuple(records), raw)

    def record(self, run: Mapping[str, Any], settings: ArmSettings, speed: float) -> RunRecord:
        """A run that went well."""
        effect = effect_of(settings)
        per_s = 200 * speed * effect["cpu"] / effect["cost"] * (1 - effect["held"])
        began = 1e9 + 10 * run["index"]
        cpu_s = MEASURE_S * effect["cpu"]
        lines = [(began - 2, 0.1), (began + 0.01, MEASURE_S * effect["held"])]
        self.logs[run["id"]] = "".join(
            json.dumps({"accepted_at": at, "messages": 9, "held_ns": round(held_s * 1e9)}) + "\n"
            for at, held_s in lines
        )
        self.reads[run["id"]] = 1000 * effect["cpu"]
        return RunRecord(
            run_id=run["id"],
            attempt=1,
            study="calibrate",
            scale="full",
            plan_digest="0" * 64,
            block=run["block"],
            position=run["position"],
            index=run["index"],
            arm=run["arm"],
            levels={},
            settings=settings.model_dump(mode="json"),
            seed=1,
            phases=(PhaseTime(phase=Phase.MEASURE, began_at=began, seconds=4.5),),
            host=HostFacts(),
            engine=None,
            images={"sut": None, "client": None},
            effective=None,
            parity=Parity(),
            path=None,
            usage=Usage(sut_cpu_s=cpu_s, sut_io_source="control group"),
            measurement=Measurement(round(per_s * MEASURE_S), "transactions", MEASURE_S, per_s),
            raw=(),
            outcome=Outcome(ok=True),
        )


def write_trace(path: Path, reads_per_s: float) -> None:
    """The counters of a program that starts and ends between samples, as tare-probe writes them."""
    path.mkdir(exist_ok=True)
    at_ns = [n * 100_000_000 for n in range(20)]
    read = [max(0, round(reads_per_s * (at / 1e9 - 0.25) * 16384)) for at in at_ns]
    rows = {"name": ["sut"] * 20, "io_t0_ns": at_ns, "read_bytes": read}
    pl.DataFrame(rows).write_parquet(path / "cgroup.parquet")


Series = Callable[..., tuple[ContrastResult, ...]]


def series_in(place: Path) -> Series:
    """Contrasts of so many studies of each kind, by the product's estimator or another; stores lie in `place`."""

    @cache
    def made(studies: int, kinds: tuple[str, ...], world: tuple[tuple[str, Any], ...]) -> list[CalibrationStudy]:
        by = World(seed=7, **dict(world))
        return [by.make(name, number, place) for name in kinds for number in range(1, studies + 1)]

    def of(
        studies: int, kinds: Sequence[str] = tuple(KINDS), estimator: Estimator = by_product, **world: Any
    ) -> tuple[ContrastResult, ...]:
        those = made(studies, tuple(kinds), tuple(world.items()))
        return tuple(seen for each in those for seen in outcome(each, estimator))

    return of


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Series:
    """As `series_in`, for one file of tests: studies are made once."""
    return series_in(tmp_path_factory.mktemp("series"))
