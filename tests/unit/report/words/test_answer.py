"""The answer in a sentence, and how its figures are written."""

from __future__ import annotations

import pytest
from tests.unit.analyze import synthetic

from tare.analyze.estimate import Estimate
from tare.report import figures
from tare.report.content import build_report
from tare.report.plain import distinct, plain


def answer(tps: dict[str, float], blocks: int = 4) -> str:
    arms = tuple(tps)
    wiggle = (0.99, 1.0, 1.015, 0.995)
    made = [
        synthetic.record(block, arm, value * (wiggle[(block + n) % 4] if n else 1.0), position=n)
        for block in range(blocks)
        for n, (arm, value) in enumerate(tps.items())
    ]
    return build_report(synthetic.study(arms, blocks), made).answer


def test_a_clear_loss_is_an_interval_with_its_blocks() -> None:
    assert answer({"bare": 1000, "bridge": 500}) == (
        "Against bare (95 % intervals, 4 blocks): bridge costs 49.1 to 50.9 % of throughput."
    )


def test_a_gain_is_called_a_gain() -> None:
    assert answer({"bare": 1000, "bridge": 1500}).endswith("bridge gains 47.4 to 52.6 % throughput.")


def test_an_interval_with_zero_is_never_called_no_overhead() -> None:
    text = answer({"bare": 1000, "bridge": 1001})
    assert text.endswith("bridge, no measurable difference in throughput (within ±1.8 %).")


def test_the_strongest_of_many_come_first_and_the_rest_are_counted() -> None:
    text = answer({"bare": 1000, "a": 900, "b": 500, "c": 800, "d": 700, "e": 600})
    assert text.index("b costs") < text.index("e costs") < text.index("d costs")
    assert text.endswith("and 2 more cost less.")


def test_too_few_blocks_give_points_and_say_that_they_are_no_more() -> None:
    assert answer({"bare": 1000, "bridge": 500}, blocks=2).startswith("There are too few blocks for an interval")


def test_no_good_pair_is_no_answer() -> None:
    assert build_report(synthetic.study(), []).answer == "There is no answer yet: no run has been made."


def test_where_every_run_failed_the_last_reason_is_told_at_once() -> None:
    made = [
        synthetic.record(n, arm, None, position=n, reason=f"Lost it {n}.")
        for n, arm in enumerate(("bare", "bridge"))
    ]
    answer = build_report(synthetic.study(), made).answer
    assert answer.startswith("There is no answer: no block has a good run")
    assert answer.endswith("2 attempts failed, the last in measure: Lost it 1.")


@pytest.mark.parametrize(
    ("fraction", "decimals", "text"),
    [
        (-0.58, 1, "-58.0 %"),
        (0.123, 1, "+12.3 %"),
        (0.0, 1, "0.0 %"),
        (-0.0004, 1, "0.0 %"),
        (None, 1, "—"),
        (13.0, 0, "+1,300 %"),
    ],
)
def test_percent(fraction: float | None, decimals: int, text: str) -> None:
    assert figures.percent(fraction, decimals) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(-0.5, -0.2, "[-50, -20]"), (-0.02, 0.01, "[-2.0, +1.0]"), (0.0001, 0.0003, "[+0.01, +0.03]")],
)
def test_an_interval_has_as_many_decimals_as_it_bears(low: float, high: float, text: str) -> None:
    assert figures.interval(Estimate((low + high) / 2, low, high, 5, 0.95, "t")) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1905.4, "1,905"), (30.84, "30.8"), (8.412, "8.41"), (0.0123, "0.0123"), (None, "—")]
)
def test_amount(value: float | None, text: str) -> None:
    assert figures.amount(value) == text


@pytest.mark.parametrize(("seconds", "text"), [(48.4, "48 s"), (252, "4 min 12 s"), (19_200, "5 h 20 min")])
def test_duration(seconds: float, text: str) -> None:
    assert figures.duration(seconds) == text


def test_size_and_moment() -> None:
    assert figures.size(8 << 30) == "8.0 GiB"
    assert figures.moment(synthetic.BEGAN_AT) == "2026-11-18 11:06 UTC"


def test_plain_is_one_line_without_marks_that_cannot_be_seen() -> None:
    assert plain("a\nb\u202ec\x1b[0m\ud800") == "a\ufffdb\ufffdc\ufffd[0m\ufffd"
    assert plain("x" * 300, 10) == "x" * 10 + "…"
    assert plain("naïve 名前") == "naïve 名前"


def test_labels_cut_short_stay_apart() -> None:
    labels = distinct(("a" * 40, "a" * 41, "b"), 10)
    assert len(set(labels.values())) == 3
