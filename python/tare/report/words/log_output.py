"""What an arm's log output costs its engine, in a sentence: no metric contains that CPU time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tare.analyze.explain.log_output import log_outputs
from tare.record.run_record import RunRecord
from tare.report.explain.words import added
from tare.report.plain import plain
from tare.study.model import Study


def on_log_output(study: Study, records: Sequence[RunRecord]) -> Iterator[str]:
    """Yield a sentence for each arm whose log output changes the CPU time of its engine."""
    for each in log_outputs(study, records):
        printed = f"{each.bytes:,.0f} bytes an operation against {each.baseline_bytes:,.0f}"
        yield (
            f"{plain(each.arm, 60)}: log output takes {added(each.part.change)} µs of CPU time an operation in the "
            f"engine (its daemons and the container's shim) beside {plain(each.baseline, 60)}; the server printed "
            f"{printed}. CPU time per operation does not contain it."
        )
