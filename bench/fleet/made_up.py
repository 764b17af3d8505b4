"""The process of a site that measures nothing: each run is a sleep of `MADE_UP_S` seconds, its throughput made up.

Throughput depends on the run's seed and arm alone, so a plan gives the same figures on whatever sites it is made.
"""

from __future__ import annotations

import hashlib
import math
import os
import sys
import time
from random import Random

from tare.plan.model import Plan, PlannedRun
from tare.record.host_facts import HostFacts
from tare.record.measurement import Latency, Measurement
from tare.record.observation import Parity
from tare.record.run_record import Outcome, Phase, PhaseTime, RunRecord
from tare.run.fleet.block_task import BlockTask, Maker, Send, spool_of
from tare.run.fleet.handover import hand_over
from tare.run.fleet.site_process import main
from tare.run.interrupts import Interrupts
from tare.sites.file import SiteSpec

SECONDS = "MADE_UP_S"
_TYPICAL_PER_S = 2000.0
_NOISE = 0.01
_EFFECT = 0.05


def throughput(run: PlannedRun, effect_of: str) -> float:
    """Operations a second: the effect of an arm, noise of the block and noise of the run."""
    effect = _EFFECT * (int(hashlib.sha256(effect_of.encode()).hexdigest()[:4], 16) / 0xFFFF - 0.5)
    block, own = Random(f"{run.seed}"), Random(f"{run.seed} {run.arm}")
    return _TYPICAL_PER_S * math.exp(effect + block.gauss(0, 2 * _NOISE) + own.gauss(0, _NOISE))


def made_up(plan: Plan, run: PlannedRun, attempt: int, site: str, measured: PhaseTime) -> RunRecord:
    """The record of a good run that nobody made."""
    arm = plan.arm(run.arm)
    rate = throughput(run, plan.study.baseline if arm.control else arm.name)
    return RunRecord(
        run_id=run.id,
        attempt=attempt,
        study=plan.study.name,
        scale=plan.study.scale,
        plan_digest=plan.digest,
        block=run.block,
        position=run.position,
        index=run.index,
        arm=arm.name,
        levels=arm.levels,
        settings=arm.settings.model_dump(mode="json"),
        seed=run.seed,
        phases=(measured,),
        site=site,
        host=HostFacts(name=f"{site}-sut", kernel="none", cpu_model="none", cpu_count=1),
        engine=None,
        images={"sut": None, "client": None},
        effective=None,
        parity=Parity(),
        path=None,
        measurement=_measurement(rate),
        raw=(),
        outcome=Outcome(ok=True),
    )


def _measurement(rate: float) -> Measurement:
    mean = 2000.0 / rate
    return Measurement(
        operations=round(rate),
        duration_s=1.0,
        throughput_per_s=rate,
        errors=0,
        latency=Latency(
            mean_ms=mean, min_ms=mean / 3, max_ms=mean * 6, p50_ms=mean * 0.97, p95_ms=mean * 1.5,
            p99_ms=mean * 2.1, resolution=0.0, blind_to_stalls=True,
        ),
    )  # fmt: skip


class MadeUp:
    """A site as its process knows it."""

    def __init__(self, spec: SiteSpec, interrupts: Interrupts) -> None:
        self._site, self._interrupts = spec.name, interrupts
        self._seconds = float(os.environ.get(SECONDS, "0"))

    def make(self, task: BlockTask, send: Send) -> int:
        """As `Maker`; runs of a block are kept one by one."""
        spool, times = spool_of(task), 0
        for run in task.plan.runs:
            if run.id in task.done.good:
                continue
            began_at = time.time()
            with self._interrupts.allowed():
                time.sleep(self._seconds)
            times += 1
            attempt = task.done.attempts[run.id] + 1
            measured = PhaseTime(phase=Phase.MEASURE, began_at=began_at, seconds=self._seconds)
            hand_over(spool, times, (made_up(task.plan, run, attempt, self._site, measured),))
            send({"what": "kept", "task": task.name})
        return times

    def leave(self) -> None:
        """As `Maker`."""


def maker(spec: SiteSpec, interrupts: Interrupts) -> Maker:
    """For `site_process.main`."""
    return MadeUp(spec, interrupts)


if __name__ == "__main__":
    sys.exit(main(maker))
