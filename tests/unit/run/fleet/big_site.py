"""The process of a site whose one run hands over a trace of `BIG_BYTES`, with holes: it takes no disk there."""

from __future__ import annotations

import os
import sys
import time

from bench.fleet.made_up import made_up
from tare.record.run_record import Phase, PhaseTime
from tare.run.fleet.block_task import BlockTask, Send, spool_of
from tare.run.fleet.handover import hand_over, staged_name
from tare.run.fleet.site_process import main
from tare.run.interrupts import Interrupts
from tare.sites.file import SiteSpec


class BigSite:
    """As `Maker`."""

    def __init__(self, spec: SiteSpec, interrupts: Interrupts) -> None:
        del interrupts
        self._site = spec.name

    def make(self, task: BlockTask, send: Send) -> int:
        """As `Maker`."""
        spool = spool_of(task)
        for times, run in enumerate(task.plan.runs, start=1):
            measured = PhaseTime(phase=Phase.MEASURE, began_at=time.time(), seconds=0.0)
            record = made_up(task.plan, run, 1, self._site, measured).model_copy(update={"raw": ("trace",)})
            (spool / staged_name(record)).mkdir()
            with (spool / staged_name(record) / "trace").open("wb") as trace:
                trace.truncate(int(os.environ["BIG_BYTES"]))
                trace.write(run.id.encode())
            hand_over(spool, times, (record,))
            send({"what": "kept", "task": task.name})
        return len(task.plan.runs)

    def leave(self) -> None:
        """As `Maker`."""


if __name__ == "__main__":
    sys.exit(main(BigSite))
