"""CPU time that an engine spends on log output is charged to the arm that prints it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.analyze.estimate import Estimate
from tare.analyze.explain.charged import charged
from tare.analyze.explain.components import DAEMONS, USER
from tare.analyze.explain.explanation import Pairing, explain_arm
from tare.analyze.explain.log_output import LOG_OUTPUT, LogOutput, log_outputs
from tare.analyze.explain.run_times import RunTimes
from tare.analyze.explain.sampled import CpuSide
from tare.record.run_record import RunRecord
from tare.report.words.log_output import on_log_output

ARMS = ("quiet", "chatty")
OVER_S = 4.0
UNKNOWN = Estimate(None, None, None, 0, 0.95, "paired-log-ratio-t")


def ran(blocks: int = 5, **of_chatty: Any) -> list[RunRecord]:
    """Runs beside a quiet baseline: engine and shim use 0.1 CPUs and nothing is printed, unless the arm differs."""
    made = []
    for run in synthetic.records(ARMS, blocks):
        assert run.usage is not None
        assert run.measurement is not None
        noise = 0.001 * (run.block % 3)
        quiet: dict[str, Any] = {"engine_cpu_s": 0.4 + noise, "sut_output_bytes": 0.0, "monotonic_s": OVER_S}
        given = quiet | (of_chatty if run.arm == "chatty" else {})
        made.append(
            run.model_copy(
                update={
                    "usage": replace(run.usage, **given),
                    "measurement": replace(run.measurement, operations=10_000),
                    "settings": {"sut": {"deployment": "container"}},
                }
            )
        )
    return made


def costs(records: list[RunRecord]) -> tuple[LogOutput, ...]:
    return log_outputs(synthetic.study(ARMS), records)


def test_what_the_engine_used_more_in_the_same_time_is_charged_to_the_arm_that_printed() -> None:
    (chatty,) = costs(ran(engine_cpu_s=2.4, sut_output_bytes=40e6))
    assert (chatty.arm, chatty.baseline) == ("chatty", "quiet")
    assert (chatty.bytes, chatty.baseline_bytes) == (4000.0, 0.0)
    assert chatty.part.change.added_us == pytest.approx(200.0, rel=0.01)
    assert chatty.part.change.shown


@pytest.mark.parametrize(
    "of_chatty",
    [
        {"engine_cpu_s": 2.4, "sut_output_bytes": 4_000.0},
        {"engine_cpu_s": 0.4, "sut_output_bytes": 40e6},
        {"engine_cpu_s": 0.1, "sut_output_bytes": 40e6},
        {"engine_cpu_s": 2.4, "sut_output_bytes": None},
        {"engine_cpu_s": None, "sut_output_bytes": 40e6},
    ],
    ids=["few-bytes", "no-more-time", "less-time", "output-unknown", "time-unknown"],
)
def test_without_more_output_and_more_time_nothing_is_charged(of_chatty: dict[str, Any]) -> None:
    assert costs(ran(**of_chatty)) == ()


def test_output_of_a_bare_arm_goes_through_no_engine() -> None:
    records = [
        run
        if run.arm == "chatty"
        else run.model_copy(
            update={
                "settings": {"sut": {"deployment": "bare"}},
                "usage": run.usage and replace(run.usage, sut_output_bytes=None),
            }
        )
        for run in ran(engine_cpu_s=2.4, sut_output_bytes=40e6)
    ]
    (chatty,) = costs(records)
    assert chatty.baseline_bytes == 0.0


def test_a_report_says_it_with_its_interval() -> None:
    (sentence,) = on_log_output(synthetic.study(ARMS), ran(engine_cpu_s=2.4, sut_output_bytes=40e6))
    assert sentence.startswith("chatty: log output takes +200 [200, 200] µs of CPU time an operation in the engine")
    assert "4,000 bytes an operation against 0" in sentence


def times(daemons_us: float, shim_us: float) -> RunTimes:
    return RunTimes(
        1000.0,
        {(CpuSide.SERVER, USER): 60.0, (CpuSide.SHIM, USER): shim_us, (CpuSide.ENGINE, USER): daemons_us},
        {CpuSide.SERVER: 60.0},
        {},
        {},
        idle_us=100.0,
        daemons_us=daemons_us,
        others_us=0.0,
        machine_us=400.0,
    )


def test_sampled_daemons_and_shim_are_one_cause_and_the_machine_s_time_still_adds_up() -> None:
    (chatty,) = costs(ran(engine_cpu_s=2.4, sut_output_bytes=40e6))
    pairing = Pairing([times(130.0, 45.0)] * 4, [times(10.0, 5.0)] * 4)
    explained = explain_arm("chatty", "quiet", pairing, UNKNOWN, chatty.part)
    (cause,) = [part for part in explained.causes if part.name == LOG_OUTPUT]
    assert (cause.title, cause.us, cause.baseline_us) == ("log output", 165.0, 5.0)
    (daemons,) = [part for part in explained.rest if part.name == DAEMONS]
    assert daemons.change.added_us == pytest.approx(0.0)
    assert explained.total is not None
    assert explained.total.us + sum(part.us for part in explained.rest) == pytest.approx(
        60.0 + 45.0 + 130.0 + 100.0
    )
    assert explained.log_output == chatty.part


def test_a_baseline_that_prints_more_is_charged_likewise() -> None:
    mine, theirs = charged(times(10.0, 5.0), times(130.0, 45.0))
    assert mine.cpu_us is not None
    assert theirs.cpu_us is not None
    assert (mine.cpu_us[CpuSide.LOG, USER], theirs.cpu_us[CpuSide.LOG, USER]) == (5.0, 165.0)
