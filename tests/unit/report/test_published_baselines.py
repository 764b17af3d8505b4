"""A report of a published baseline, or of an invalid study, claims no more than its intervals bear."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.analyze import synthetic
from tests.unit.analyze.validity.test_control import controlled, records
from tests.unit.report.words.test_headlines import FORMATS, INVALID, SOUND, flat

from tare.record.run_record import RunRecord
from tare.report import EXPORTERS, terminal
from tare.report.content import Report, build_report
from tare.study.protocol_spec import BucketsSpec, FixedSpec, ProtocolSpec


def windowed(record: RunRecord) -> RunRecord:
    def change(tree: dict[str, Any]) -> None:
        rate = tree["measurement"]["throughput_per_s"]
        tree["measurement"]["windows"] = [
            {"end_s": n + 1.0, "throughput_per_s": rate * (1 + shift), "latency_p95_ms": None}
            for n, shift in enumerate((-0.01, 0.01, 0.02, -0.02))
        ]

    return synthetic.changed(record, change)


def under(protocol: ProtocolSpec) -> Report:
    study = controlled().model_copy(update={"protocol": protocol})
    return build_report(study, [windowed(record) for record in records(0.002)])


FIXED, BUCKETS = under(FixedSpec(name="fixed", blocks=8)), under(BucketsSpec(name="buckets", blocks=8))


def test_an_answer_counts_what_its_interval_is_made_of() -> None:
    assert ", 8 blocks)" in SOUND.answer
    assert ", 8 runs a side)" in FIXED.answer
    assert ", 32 windows a side)" in BUCKETS.answer


def test_the_baseline_has_no_number_of_runs_among_numbers_of_windows() -> None:
    tables = [terminal.render(report).splitlines() for report in (FIXED, BUCKETS)]
    fixed, buckets = (next(line.split() for line in lines if line.startswith("bare ")) for lines in tables)
    assert fixed[1] == "8"
    assert buckets[2] == "baseline"
    (row,) = (
        line
        for line in EXPORTERS["md"](BUCKETS).splitlines()
        if line.startswith("| bare |") and "| baseline |" in line
    )
    assert row.startswith("| bare |  |")


def test_an_answer_that_must_not_be_believed_begins_with_that() -> None:
    assert SOUND.answer.startswith("Against bare (95 % intervals, 8 blocks): bridge costs")
    assert INVALID.answer.startswith(
        "Do not trust these figures, since the control differs from the baseline: against bare ("
    )
    for report, name in ((FIXED, "fixed"), (BUCKETS, "buckets")):
        sentence = f"By the published method `{name}`, whose intervals are too narrow: against bare ("
        assert report.answer.startswith(sentence)


@pytest.mark.parametrize("style", FORMATS)
def test_what_the_intervals_are_is_told_of_each_protocol(style: str) -> None:
    sound, fixed, buckets = (flat(EXPORTERS[style](report)) for report in (SOUND, FIXED, BUCKETS))
    assert "adjusted for multiple comparisons" in sound
    assert "aired by block" in sound
    for text in (fixed, buckets):
        assert "adjusted for multiple comparisons" not in text
        assert "aired by block" not in text
        assert "one is expected to miss" not in text
    assert "Welch" in fixed
    assert "z = 1.96" in buckets


@pytest.mark.parametrize("style", FORMATS)
def test_a_fixed_number_of_pairs_is_told_like_any_other_study(style: str) -> None:
    paired = under(FixedSpec(name="fixed", blocks=8, paired=True))
    text = flat(EXPORTERS[style](paired))
    assert paired.answer.startswith("Against bare (95 % intervals, 8 blocks): bridge costs")
    assert "aired by block" in text
    assert "repeats what publications do" not in text
    assert "Welch" not in text


@pytest.mark.parametrize("report", [FIXED, BUCKETS], ids=["fixed", "buckets"])
def test_no_difference_is_claimed_by_intervals_that_do_not_hold(report: Report) -> None:
    finding = report.analysis.finding("bridge", "throughput")
    assert (finding.excludes_zero, finding.is_supported) == (True, False)
    assert 'class="worse"' not in EXPORTERS["html"](report)


def test_blocks_without_a_pair_count_all_the_same() -> None:
    made = [windowed(each) for each in records(0.002) if (each.arm, each.block) != ("bridge", 2)]
    for protocol, note in (
        (
            BucketsSpec(name="buckets", blocks=8),
            "bridge has no pair in block 2 (bridge was not run); its runs there still count.",
        ),
        (
            FixedSpec(name="fixed", blocks=8, paired=True),
            "bridge is compared without block 2 (bridge was not run).",
        ),
    ):
        report = build_report(controlled().model_copy(update={"protocol": protocol}), made)
        assert note in report.notes
