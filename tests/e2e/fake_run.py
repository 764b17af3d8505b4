"""A `tare run` that makes nothing: it holds a store and does what one does, a line of its standard input at a time.

`start`: the next run begins and measures. `figures`: its generator prints some. `end`: it is committed, good.
`fail`: it is committed, failed. Each is answered by `ok`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.unit.live.conftest import HOSTILE, commit, plan_of
from tests.unit.store.conftest import make_record

from tare.live.output import raw_of
from tare.live.status_file import StatusWriter
from tare.record.run_record import Outcome, Phase, RunRecord
from tare.run.events import Notice, PhaseStarted, Preparing, RunEnded, RunStarted
from tare.store import Writer, resume_store

PRINTED = Path(__file__).resolve().parents[1] / "data" / "sysbench" / "closed.stdout"
PLAN = plan_of(("a", HOSTILE), blocks=4, question=f"Which? {HOSTILE}", workload="sysbench")


class Run:
    """Goes through the plan."""

    def __init__(self, writer: Writer, herald: StatusWriter) -> None:
        self._writer, self._herald, self._index = writer, herald, len(writer.records())

    def start(self) -> None:
        run = PLAN.runs[self._index]
        self._herald.take(RunStarted(run, 1))
        self._herald.take(PhaseStarted(run, Phase.MEASURE, 30.0))
        self._herald.take(Notice(HOSTILE))

    def figures(self) -> None:
        raw = raw_of(self._herald.now, self._herald.now.runs[0])
        assert raw is not None
        raw.mkdir(parents=True)
        (raw / "measure.stdout").write_bytes(PRINTED.read_bytes())
        (raw / "sut.stderr").write_text(f"{HOSTILE}\n")

    def end(self) -> None:
        rate = 100.0 + self._index
        self._done(make_record(PLAN, self._index, measurement={"throughput_per_s": rate, "unit": "transactions"}))

    def fail(self) -> None:
        outcome = Outcome(ok=False, reason=HOSTILE, failed_in=Phase.MEASURE)
        self._done(make_record(PLAN, self._index, ok=False, outcome=outcome))

    def _done(self, record: RunRecord) -> None:
        commit(self._writer, record)
        self._herald.take(RunEnded(record))
        self._index += 1


def _answer() -> None:
    sys.stdout.write("ok\n")
    sys.stdout.flush()


def main() -> None:
    """`fake_run.py STORE WORK`."""
    with resume_store(Path(sys.argv[1]), PLAN) as writer:
        herald = StatusWriter(writer.now, PLAN, writer.id, Path(sys.argv[2]))
        herald.take(Preparing(HOSTILE))
        run = Run(writer, herald)
        steps = {"start": run.start, "figures": run.figures, "end": run.end, "fail": run.fail}
        _answer()
        for line in sys.stdin:
            steps[line.strip()]()
            _answer()


if __name__ == "__main__":
    main()
