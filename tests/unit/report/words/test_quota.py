"""A report tells how often a CPU quota held a server back, since throughput and latency do not name the cause."""

from __future__ import annotations

from tests.unit.analyze.synthetic import record
from tests.unit.record.parts import with_parts

from tare.record.run_record import RunRecord
from tare.report.words.notes import made


def held_back(arm: str, block: int, share: float | None, tps: float | None = 100.0) -> RunRecord:
    saturation = {"sut": {"throttled": share}, "client": {"throttled": 0.9}}
    return with_parts(record(block, arm, tps), usage={"saturation": saturation})


def test_the_share_of_throttled_periods_is_told_of_each_arm_with_a_quota() -> None:
    half = [held_back("half-quota", block, share) for block, share in enumerate((0.7, 0.6, 0.1))]
    whole = [held_back("quota", block, 0.0) for block in range(3)]
    cpuset = [held_back("cpuset", block, None) for block in range(3)]
    (sentence,) = made([*half, *whole, *cpuset])
    assert sentence == (
        "The server's CPU quota ran out in this share of its periods (median of the runs): half-quota 60.0 %; "
        "others: none."
    )


def test_failed_runs_tell_nothing_of_it() -> None:
    assert made([held_back("quota", 0, 0.5, tps=None)]) == ()


def test_nothing_is_told_where_no_quota_ran_out_or_none_is_set() -> None:
    assert made([held_back("quota", 0, 0.0), held_back("cpuset", 0, None)]) == ()
    assert made([record(0, "host", 100.0)]) == ()


def test_of_many_arms_those_that_were_held_back_most_are_named() -> None:
    shares = {f"quota-{number:02}": number / 20 for number in range(11)}
    (sentence,) = made([held_back(arm, 0, share) for arm, share in shares.items()])
    assert "runs): quota-10 50.0 %, quota-09 45.0 %, " in sentence
    assert sentence.endswith("quota-03 15.0 % and 2 more arms; others: none.")


def test_the_one_arm_that_was_held_back_is_named_wherever_it_ran_first() -> None:
    arms = [held_back(f"quota-{number}", 0, 0.0) for number in range(11)]
    (sentence,) = made([*arms, held_back("half-quota", 0, 0.25)])
    assert sentence.endswith("runs): half-quota 25.0 %; others: none.")


def test_an_arm_that_was_held_back_in_few_runs_is_named_too() -> None:
    few = [held_back("quota", block, share) for block, share in enumerate((0.0, 0.0, 0.1))]
    (sentence,) = made(few)
    assert sentence.endswith("runs): quota 0.0 %.")
